"""LOAD: a request side that runs ahead and a write side that follows in order.

1. The request side takes the next instruction when it is free or sends its last burst; one cycle
   later it sends the first burst of that one. Runs go in the order z, y, x: a run is a row of
   entries that lie together, else one entry. Runs are cut into bursts that end with their page.
2. A burst needs room for its beats in the buffer, so that beats are always taken.
3. The write side works on the oldest unfinished instruction: one entry of padding a cycle, or one
   beat; an entry is complete with its last beat. ACC has one write port and COMPUTE goes first.
4. INP, WGT and UOP take each beat in its column as it comes; ACC takes whole entries, so the beats
   of one are held until its last.
5. Addresses only grow, and never wrap: bit 32 says that the 32-bit space was left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import Component, In, Out

from vdla.hw import layout as layouts
from vdla.hw.bursts import PAGE_BITS, burst_beats, is_outside
from vdla.hw.interfaces import (
    Cause,
    Fault,
    activity,
    command,
    fault,
    read_data,
    read_request,
    write_port,
)
from vdla.hw.layout import beats, grow, layout, scaled
from vdla.hw.loops import Loop, inner_ends
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import DRAM_BITS, Mem
from vdla.isa.registers import INDEX_BITS

IN_FLIGHT = 8  # instructions started and not finished
DIRECT = ("inp", "wgt", "uop")  # memories that take single beats


class Axis(Loop):
    """Rows or entries of a tile, and whether the one that is due is data or padding.

    ``left`` falls: data are those with more than ``after`` left, and no more than ``until``.
    """

    def __init__(self, m: Module, axis: str, tile: data.View, fresh: Value) -> None:
        super().__init__(m, axis, tile[f"{axis}_tile"], fresh)
        self.after, self.until = tile[f"{axis}_after"], tile[f"{axis}_until"]
        self.first = tile[f"{axis}_first"]  # whether the first is data
        self.kept_is_data = Signal(name=f"{axis}_kept_is_data")
        self.is_data = Mux(fresh, self.first, self.kept_is_data)

    def advance(self, steps: Value | int = 1) -> None:
        super().advance(steps)
        follows = (self.left > self.after + 1) & (self.left <= self.until + 1)
        following = Mux(self.end, self.first, follows)
        self.m.d.sync += self.kept_is_data.eq(Mux(steps, following, self.is_data))


class Load(Component):
    """LOAD's two sides, its read buffer and its write ports."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.layout = layout(isa.Load, config)
        writes = {
            name: Out(
                write_port(config.depth(name), 8 * config.entry(name), beats(config, name))
            )
            for name in DIRECT
        }
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "fault": Out(fault()),
                "oldest": Out(INDEX_BITS),
                "request": Out(read_request(config)),
                "data": In(read_data(config)),
                **writes,
                "acc": Out(write_port(config.depth("acc"), 8 * config.acc_entry)),
                "acc_taken": In(1),
                "dram_pages": In(DRAM_BITS - PAGE_BITS + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.head = data.View(self.layout, self.command.word[: isa.Load.bits(self.config)])
        self.consume = Signal()  # the write side takes a beat from the buffer
        request_fault = self._request(m)
        self._buffer(m)
        self._context(m)
        write_fault = self._write(m)
        m.d.comb += [
            self.fault.valid.eq(request_fault | write_fault),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(Mux(request_fault, self.index, self.oldest)),
        ]
        return m

    # Request side ----------------------------------------------------------------------------

    def _request(self, m: Module) -> Value:
        """Sends bursts; returns whether the next one would be out of bounds."""
        config, request, head = self.config, self.request, self.head
        now = Signal(self.layout)  # the instruction at work
        self.index = Signal(INDEX_BITS)
        address = Signal(DRAM_BITS + 1)
        run = Signal(range(self._longest_run() + 1))  # beats of a run
        left = Signal.like(run)
        length = Signal(range(config.burst_beats + 1))  # of the next burst: ready in advance
        active, empty, sent, last_run = (
            Signal(name=n) for n in ("active", "empty", "sent", "last_run")
        )
        outside = Signal()  # whether ``address`` is: known with it, too
        wanted = active & ~empty & self._credit(m, sent, length)
        ends_run = left == length
        free = ~active | empty | (sent & ends_run & last_run)
        m.d.comb += [
            request.valid.eq(wanted & ~outside),
            request.address.eq(address),
            request.beats.eq(length),
            sent.eq(request.valid & request.ready),
            self.command.start.eq(self.command.ready & free & self._may_start(m)),
        ]
        with m.If(free):
            m.d.sync += active.eq(0)
        next_run, is_last = self._walk(m, now, sent & ends_run)
        m.d.comb += last_run.eq(is_last)
        beyond, left_beyond = Signal.like(address), Signal.like(left)
        m.d.comb += [
            beyond.eq(Mux(ends_run, next_run, grow(address, scaled(length, config.port_bytes)))),
            left_beyond.eq(Mux(ends_run, run, left - length)),
        ]
        with m.If(sent):
            m.d.sync += [
                address.eq(beyond),
                outside.eq(is_outside(beyond, config, self.dram_pages)),
                left.eq(left_beyond),
                length.eq(burst_beats(m, config, beyond[:DRAM_BITS], left_beyond)),
            ]
        with m.If(self.command.start):
            entries = Mux(head.x_stride == 1, head.x_size, 1)
            beats_of_run = self._of_memory(m, head.memory, entries, self._beats)
            m.d.sync += [
                length.eq(burst_beats(m, config, head.dram_base, beats_of_run)),
                now.eq(head),
                self.index.eq(self.command.index),
                address.eq(head.dram_base),
                outside.eq(is_outside(head.dram_base, config, self.dram_pages)),
                run.eq(beats_of_run),
                left.eq(beats_of_run),
                active.eq(1),
                empty.eq((head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)),
            ]
        return wanted & outside & request.ready

    def _credit(self, m: Module, sent: Value, length: Value) -> Value:
        """Whether another burst of ``length`` beats may be under way."""
        config = self.config
        bursts = Signal(range(config.reads_in_flight + 1))
        held = Signal(range(config.read_buffer_beats + 1))  # beats requested and not yet written
        m.d.sync += [
            bursts.eq(bursts + sent - (self.data.valid & self.data.last)),
            held.eq(held + Mux(sent, length, 0) - self.consume),
        ]
        return (bursts != config.reads_in_flight) & (held + length <= config.read_buffer_beats)

    def _may_start(self, m: Module) -> Value:
        in_flight = Signal(range(IN_FLIGHT + 1))
        m.d.sync += in_flight.eq(in_flight + self.command.start - self.command.finish)
        return in_flight != IN_FLIGHT

    def _walk(self, m: Module, now: data.View, next_run: Value) -> tuple[Value, Value]:
        """Goes to the next run, x before y before z: where it is, and whether this is the last."""
        start, head = self.command.start, self.head
        bases = [Signal(DRAM_BITS + 1, name=f"base_{a}") for a in "xyz"]
        strides = [Signal(self._step_bits(), name=f"step_{a}") for a in "xyz"]
        loops = [Loop(m, f"runs_{a}", size) for a, size in zip("xyz", _runs(now), strict=True)]
        x_ends, y_ends, z_ends = (loop.end for loop in loops)
        x, y, z = (grow(base, step) for base, step in zip(bases, strides, strict=True))
        following = Mux(x_ends, Mux(y_ends, z, y), x)
        with m.If(next_run):
            for loop, base, inner in zip(loops, bases, inner_ends(loops), strict=True):
                loop.advance(inner)
                m.d.sync += base.eq(Mux(inner, following, base))
        with m.If(start):
            for axis, base, step in zip("xyz", bases, strides, strict=True):
                stride = self._of_memory(m, head.memory, head[f"{axis}_stride"], self.config.entry)
                m.d.sync += [base.eq(head.dram_base), step.eq(stride)]
            for loop, size in zip(loops, _runs(head), strict=True):
                loop.start(size)
        return following, x_ends & y_ends & z_ends

    # Write side ------------------------------------------------------------------------------

    def _buffer(self, m: Module) -> None:
        bits = 8 * self.config.port_bytes
        m.submodules.buffer = fifo = SyncFIFO(width=bits, depth=self.config.read_buffer_beats)
        m.d.comb += [
            fifo.w_en.eq(self.data.valid),
            fifo.w_data.eq(self.data.data),
            fifo.r_en.eq(self.consume),
        ]
        self.beat, self.beat_there = fifo.r_data, fifo.r_rdy

    def _context(self, m: Module) -> None:
        """The started instructions, oldest first, with their tiles: data and the padding around."""
        head = self.head
        tile: dict[str, Value] = {}
        for axis in "xy":
            before, after = head[f"pad_{axis}0"], head[f"pad_{axis}1"]
            size = head[f"{axis}_size"]
            tile |= {
                f"{axis}_tile": before + size + after,
                f"{axis}_until": size + after,
                f"{axis}_after": after,
                f"{axis}_first": (before == 0) & (size != 0),
            }
        empty = (tile["x_tile"] == 0) | (tile["y_tile"] == 0) | (head.z_size == 0)
        derived = data.StructLayout(
            {
                "row": self.layout,
                "index": INDEX_BITS,
                "empty": 1,
                **{name: len(value) for name, value in tile.items()},
            }
        )
        m.submodules.context = fifo = SyncFIFO(width=derived.size, depth=IN_FLIGHT)
        entry, self.oldest_context = Signal(derived), data.View(derived, fifo.r_data)
        m.d.comb += [
            entry.row.eq(head),
            entry.index.eq(self.command.index),
            entry.empty.eq(empty),
            *(entry[name].eq(value) for name, value in tile.items()),
            fifo.w_data.eq(entry),
            fifo.w_en.eq(self.command.start),
            fifo.r_en.eq(self.command.finish),
            self.oldest.eq(self.oldest_context.index),
        ]
        self.writing = fifo.r_rdy

    def _write(self, m: Module) -> Value:
        """Writes an entry or takes a beat; returns whether the entry lies beyond its buffer."""
        here, row = self.oldest_context, self.oldest_context.row
        fresh = Signal(init=1)  # nothing of the oldest instruction is written
        x, y = (Axis(m, axis, here, fresh) for axis in "xy")
        planes = Loop(m, "planes", row.z_size, fresh)
        beat = Signal(range(self._most_beats()))
        is_data, last_beat, taken, whole = (
            Signal(name=n) for n in ("is_data", "last_beat", "taken", "whole")
        )
        to_acc = row.memory.matches(Mem.ACC, Mem.ACC8)
        m.d.comb += [
            is_data.eq(x.is_data & y.is_data),
            last_beat.eq(beat == self._of_memory(m, row.memory, Const(1), self._beats) - 1),
            taken.eq(to_acc & self.acc_taken),
        ]
        works = self.writing & ~here.empty
        blocked = taken & (last_beat | ~is_data)
        m.d.comb += [
            self.consume.eq(works & is_data & self.beat_there & ~blocked),
            whole.eq(Mux(is_data, self.consume & last_beat, works & ~taken)),
        ]
        with m.If(self.consume):
            m.d.sync += beat.eq(Mux(last_beat, 0, beat + 1))
        nest = (x, y, planes)
        last = Cat(level.end for level in nest).all()
        finish = whole & last
        with m.If(whole):
            m.d.sync += fresh.eq(last)
            for level, steps in zip(nest, inner_ends(nest), strict=True):
                level.advance(steps)
        m.d.comb += [
            self.command.finish.eq(finish | (self.writing & here.empty)),
            self.command.push_prev.eq(row.push_prev),
            self.command.push_next.eq(row.push_next),
            self.activity.idle.eq(~self.writing & ~self.command.start),
            self.activity.cause.eq(
                Mux(
                    works & is_data & ~self.beat_there,
                    Cause.MEMORY,
                    Mux(works & blocked, Cause.BANK, Cause.BUSY),
                )
            ),
        ]
        entry = self._entry(m, row, whole)
        self._to_memories(m, row, entry, is_data, whole, beat)
        depth = self._of_memory(m, row.memory, Const(1), self.config.depth)
        return whole & (entry >= depth)

    def _entry(self, m: Module, row: data.View, whole: Value) -> Value:
        """The buffer entry that is being written: entries of a tile lie densely."""
        written = Signal(range(1 << len(row.sram_base)))  # one beyond the buffer is a fault already
        with m.If(self.command.finish):
            m.d.sync += written.eq(0)
        with m.Elif(whole):
            m.d.sync += written.eq(written + 1)
        entry = Signal(len(written) + 1, name="entry")
        m.d.comb += entry.eq(row.sram_base + written)
        return entry

    def _to_memories(
        self, m: Module, row: data.View, entry: Value, is_data: Value, whole: Value, beat: Value
    ) -> None:
        bits = 8 * self.config.port_bytes
        padding = row.pad_value.replicate(self.config.port_bytes)
        value = Mux(is_data, self.beat, padding)
        for name in DIRECT:
            port: Any = getattr(self, name)
            columns = len(port.enable)
            with m.If(row.memory == Mem[name.upper()]):
                with m.If(self.consume):
                    m.d.comb += port.enable.eq(1 << beat)
                with m.Elif(whole & ~is_data):
                    m.d.comb += port.enable.eq((1 << columns) - 1)
            m.d.comb += [port.address.eq(entry), port.data.eq(value.replicate(columns))]
        held = Signal(max(self._beats("acc") - 1, 0) * bits)  # the last beats, the latest on top
        with m.If(self.consume):
            m.d.sync += held.eq(Cat(held, self.beat)[bits:])
        m.d.comb += [
            self.acc.enable.eq(whole & row.memory.matches(Mem.ACC, Mem.ACC8)),
            self.acc.address.eq(entry),
            self.acc.data.eq(self._vector(m, row, Cat(held, self.beat), is_data)),
        ]

    def _vector(self, m: Module, row: data.View, taken: Value, is_data: Value) -> Value:
        """An ACC entry: int32 lanes as they came, or bytes (padding is one) less a zero point."""
        lanes = self.config.block_out
        narrow = data.View(layouts.lanes(8, lanes), taken[-8 * lanes :])
        zero = Mux(row.memory == Mem.ACC8, row.zero, 0)
        widened = []
        for lane in range(lanes):
            byte = Mux(is_data, narrow[lane], row.pad_value)
            value = Signal(signed(32), name=f"widened_{lane}")
            m.d.comb += value.eq(byte - zero)
            widened.append(value)
        return Mux(is_data & (row.memory == Mem.ACC), taken, Cat(widened))

    # Per memory --------------------------------------------------------------------------------

    def _beats(self, name: str) -> int:
        return layouts.beats(self.config, name)

    def _of_memory(
        self, m: Module, memory: Value, value: Value, factor: Callable[[str], int]
    ) -> Signal:
        """``value`` times what ``factor`` says of the memory."""
        largest = max(factor(each.name.lower()) for each in Mem)
        result = Signal(len(value) + largest.bit_length(), name="of_memory")
        with m.Switch(memory):
            for each in Mem:
                with m.Case(each):
                    m.d.comb += result.eq(scaled(value, factor(each.name.lower())))
        return result

    def _most_beats(self) -> int:
        return max(self._beats(each.name.lower()) for each in Mem)

    def _longest_run(self) -> int:
        return (1 << isa.Load.x_size.width(self.config)) * self._most_beats()

    def _step_bits(self) -> int:
        most = max(self.config.entry(each.name.lower()) for each in Mem)
        return isa.STRIDE_BITS + most.bit_length()


def _runs(instruction: data.View) -> tuple[Value, Value, Value]:
    """Runs of a row, rows, planes: a row of entries that lie together is one run."""
    x = Mux(instruction.x_stride == 1, 1, instruction.x_size)
    return x, instruction.y_size, instruction.z_size
