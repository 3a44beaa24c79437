"""LOAD: a request side that runs ahead and a write side that follows in order.

1. The request side takes the next instruction when it is free or sends its last burst; one cycle
   later it sends the first burst of that one. Runs go in the order z, y, x: a run is a row of
   entries that lie together, else one entry. Runs are cut into bursts that end with their page.
2. A burst needs room for its beats in the buffer, so that beats are always taken.
3. The write side works on the oldest unfinished instruction: one entry of padding a cycle, or one
   beat; an entry is complete with its last beat. ACC has one write port, and what COMPUTE has
   ``computed`` goes first.
4. INP, WGT and UOP take each beat in its column as it comes; ACC takes whole entries, so the beats
   of one are held until its last.
5. Places in DRAM only grow, and never wrap: the top bit says that the 32-bit space was left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth import Array, Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw import layout as layouts
from vdla.hw.bursts import PAGES_BITS, beat_bits, cut, is_outside, offset_bits, to_bytes
from vdla.hw.count import Count
from vdla.hw.fifo import Fifo
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
from vdla.hw.layout import add_sticky, beats, layout, scaled, subtract_selected
from vdla.hw.loops import Countdown, Loop, Nest
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import Mem
from vdla.isa.registers import INDEX_BITS

IN_FLIGHT = 8  # instructions started and not finished
DIRECT = ("inp", "wgt", "uop")  # memories that take single beats
OF_HEAD = ("memory", "pad_value", "zero", "push_prev", "push_next")
KEPT = (*OF_HEAD, "index", "empty")  # of a tile, what its last entry still needs


class Axis(Countdown):
    """Rows or entries of a tile, and whether the one that is due is data or padding.

    ``left`` falls: data are those with more than ``after`` left, and no more than ``until``.
    """

    def __init__(self, m: Module, axis: str, tile: data.View) -> None:
        super().__init__(m, axis, tile[f"{axis}_tile"])
        self.axis = axis
        self.after, self.until = tile[f"{axis}_after"], tile[f"{axis}_until"]
        self.first = tile[f"{axis}_first"]  # whether the first is data
        self.is_data = Signal(name=f"{axis}_is_data")

    def move(self, moves: Value, begins: Value, tile: data.View, inner: Value | int = 1) -> None:
        """``go``, to the first one of ``tile`` if it begins."""
        self.go(moves, begins, tile[f"{self.axis}_tile"], inner)
        less = self.left_after
        follows = (less > self.after) & (less <= self.until)
        following = Mux(self.end, self.first, follows)
        with self.m.If(moves & (begins | inner)):
            self.m.d.sync += self.is_data.eq(Mux(begins, tile[f"{self.axis}_first"], following))


class Load(Component):
    """LOAD's two sides, its read buffer and its write ports.

    ``computed`` is COMPUTE's port to ACC, ``acc_taken`` its ``enable``, which is late. It passes
    here, where one LUT for each bit chooses between its data, an entry, and a widened one.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.layout = layout(isa.Load, config)
        writes = {
            name: Out(write_port(config.depth(name), 8 * config.entry(name), beats(config, name)))
            for name in DIRECT
        }
        acc = write_port(config.depth("acc"), 8 * config.acc_entry)
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "request_fault": Out(fault()),
                "fault": Out(fault()),
                "request": Out(read_request(config)),
                "data": In(read_data(config)),
                **writes,
                "acc": Out(acc),
                "computed": In(acc),
                "acc_taken": In(1),
                "dram_pages": In(PAGES_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The side that requests bursts, the buffer of their beats, and the side that writes."""
        m = Module()
        self.head = data.View(self.layout, self.command.word[: isa.Load.bits(self.config)])
        self.consume = Signal()  # the write side takes a beat from the buffer
        request_fault = self._request(m)
        self._buffer(m)
        self._context(m)
        write_fault = self._write(m)
        m.d.comb += [
            self.request_fault.valid.eq(request_fault),
            self.request_fault.cause.eq(Fault.ADDRESS),
            self.request_fault.index.eq(self.index),
            self.fault.valid.eq(write_fault),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(self.tile.index),
        ]
        return m

    # Request side ----------------------------------------------------------------------------

    def _request(self, m: Module) -> Value:
        """Sends bursts; returns whether the next one would be out of bounds."""
        config, request, head = self.config, self.request, self.head
        now = Signal(self.layout, reset_less=True)  # the instruction at work
        self.index = Signal(INDEX_BITS, reset_less=True)
        place = Signal(beat_bits(config) + 1, reset_less=True)  # the beat it asks for next
        run = Signal(range(self._longest_run() + 1), reset_less=True)  # beats of a run
        asked = Signal.like(run, name="asked")  # complement of the beats left of it: it counts up
        length = Signal(range(config.burst_beats + 1))  # of the next burst: ready in advance
        active, empty, sent, ends_run, last_run = (
            Signal(name=n) for n in ("active", "empty", "sent", "ends_run", "last_run")
        )
        outside = Signal()  # whether ``place`` is: known with it, too
        wanted = active & ~empty & self._credit(m, sent, length)
        unused = ~active | empty
        begins = unused | (ends_run & last_run)  # what comes next is the next instruction
        moves = unused | sent
        may_start = self.command.ready & self._may_start(m)
        m.d.comb += [
            request.valid.eq(wanted & ~outside),
            request.address.eq(to_bytes(config, place)),
            request.beats.eq(length),
            sent.eq(request.valid & request.ready),
            self.command.start.eq(may_start & begins & moves),
        ]
        next_run, is_last = self._walk(m, now, moves, begins, ends_run)
        entries = Mux(head.x_stride == 1, head.x_size, 1)
        first_run = self._of_memory(head.memory, entries, self._beats)
        there, rest = Signal.like(place), Signal.like(run)
        m.d.comb += last_run.eq(is_last)
        with m.If(begins):
            m.d.comb += [there.eq(head.dram_base[offset_bits(config) :]), rest.eq(first_run)]
            m.d.sync += [now.eq(head), run.eq(first_run)]
        with m.Elif(ends_run):
            m.d.comb += [there.eq(next_run), rest.eq(run)]
        with m.Else():
            m.d.comb += there.eq(add_sticky(place, length))
            m.d.comb += rest.eq(~(asked + length))
        following, is_all = cut(config, there, rest)
        with m.If(moves):
            m.d.sync += [
                place.eq(there),
                outside.eq(is_outside(there, config, self.dram_pages)),
                asked.eq(~rest),
                length.eq(following),
                ends_run.eq(is_all),
            ]
        with m.If(moves & begins):
            m.d.sync += [
                active.eq(may_start),
                self.index.eq(self.command.index),
                empty.eq((head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)),
            ]
        return wanted & outside & request.ready

    def _credit(self, m: Module, sent: Value, length: Value) -> Value:
        """Whether another burst of ``length`` beats may be under way."""
        config = self.config
        bursts = Count(m, "bursts", config.reads_in_flight)
        bursts.move(sent, self.data.valid & self.data.last)
        most = config.read_buffer_beats
        room = Signal(range(most + 1), init=most)  # for beats that nobody has asked for
        m.d.sync += room.eq(room - Mux(sent, length, 0) + self.consume)
        return ~bursts.full & (length <= room)

    def _may_start(self, m: Module) -> Value:
        in_flight = Count(m, "in_flight", IN_FLIGHT)
        in_flight.move(self.command.start, self.command.finish)
        return ~in_flight.full

    def _walk(
        self, m: Module, now: data.View, moves: Value, begins: Value, ends_run: Value
    ) -> tuple[Value, Value]:
        """Goes to the next run, x before y before z: where it is, and whether this is the last."""
        head = self.head
        bits = beat_bits(self.config) + 1
        bases = [Signal(bits, name=f"base_{a}", reset_less=True) for a in "xyz"]
        loops = [Loop(m, f"runs_{a}", size) for a, size in zip("xyz", _runs(now), strict=True)]
        first = head.dram_base[offset_bits(self.config) :], _runs(head)
        strides = [now[f"{a}_stride"] for a in "xyz"]

        def scale(stride: Value) -> Value:
            return self._of_memory(now.memory, stride, self._beats)

        nest = Nest(loops, bases, strides, scale)
        following = nest.advance(m, moves, begins, first, ends_run)
        x, y, z = loops
        return following, x.end & y.end & z.end

    # Write side ------------------------------------------------------------------------------

    def _buffer(self, m: Module) -> None:
        bits = 8 * self.config.port_bytes
        m.submodules.buffer = fifo = Fifo(width=bits, depth=self.config.read_buffer_beats)
        m.d.comb += [
            fifo.w_en.eq(self.data.valid),
            fifo.w_data.eq(self.data.data),
            fifo.r_en.eq(self.consume),
        ]
        self.beat, self.beat_there = fifo.r_data, fifo.r_rdy

    def _context(self, m: Module) -> None:
        """The oldest instruction's tile, in registers, and those of the others that have started.

        A tile is the data and the padding around them. It comes out of the queue or, where that is
        empty, right from the instruction that starts.
        """
        head, start = self.head, self.command.start
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
        tile |= {
            "empty": (tile["x_tile"] == 0) | (tile["y_tile"] == 0) | (head.z_size == 0),
            "index": self.command.index,
            **{name: head[name] for name in ("sram_base", "z_size", *OF_HEAD)},
        }
        layout = data.StructLayout(
            {name: Shape.cast(value.shape()) for name, value in tile.items()}
        )
        m.submodules.context = fifo = Fifo(width=layout.size, depth=IN_FLIGHT)
        started, waits = Signal(layout), fifo.r_rdy
        self.tile, self.following = Signal(layout, reset_less=True), Signal(layout)
        self.writing = Signal()
        free = ~self.writing | self.command.finish
        m.d.comb += [
            *(started[name].eq(value) for name, value in tile.items()),
            self.following.eq(Mux(waits, fifo.r_data, started.as_value())),
            fifo.w_data.eq(started),
            fifo.w_en.eq(start & (waits | ~free)),
            fifo.r_en.eq(free),
        ]
        with m.If(free):  # what the registers take over in vain isn't written
            m.d.sync += self.writing.eq(waits | start)

    def _write(self, m: Module) -> Value:
        """Writes an entry or takes a beat; returns whether the entry lies beyond its buffer."""
        config, tile = self.config, self.tile
        x, y = (Axis(m, axis, tile) for axis in "xy")
        planes = Loop(m, "planes", tile.z_size)
        beats = Countdown(m, "beats", self._beats_of(tile))
        entry = Signal(len(tile.sram_base) + 1, reset_less=True)  # those of a tile lie densely
        beyond = Signal()  # whether ``entry`` is: known with it
        is_data, taken, whole = (Signal(name=n) for n in ("is_data", "taken", "whole"))
        m.d.comb += [
            is_data.eq(x.is_data & y.is_data),
            taken.eq(_to_acc(tile) & self.acc_taken),
        ]
        works, unused = self.writing & ~tile.empty, ~self.writing | tile.empty
        blocked = taken & (beats.end | ~is_data)
        m.d.comb += [
            self.consume.eq(works & is_data & self.beat_there & ~blocked),
            whole.eq(Mux(is_data, self.consume & beats.end, works & ~taken)),
        ]
        nest = (x, y, planes)
        last = Cat(level.end for level in nest).all()
        begins, following = unused | last, self.following  # what comes next is the next tile
        moves = unused | whole
        begins_beats = unused | (last & (beats.end | ~is_data))
        beats.go(moves | self.consume, begins_beats, self._beats_of(following), is_data)
        planes.go(moves, begins, following.z_size, x.end & y.end)
        x.move(moves, begins, following)
        y.move(moves, begins, following, x.end)
        for name in following.shape().members:
            # The last entry needs what is kept of the instruction, but no sizes any more.
            with m.If(begins & moves if name in KEPT else begins):
                m.d.sync += tile[name].eq(following[name])
        at = Mux(begins, following.sram_base, entry + 1)
        depth = self._of_memory(Mux(begins, following.memory, tile.memory), Const(1), config.depth)
        with m.If(moves):
            m.d.sync += [entry.eq(at), beyond.eq(at >= depth)]
        m.d.comb += [
            self.command.finish.eq((whole & last) | (self.writing & tile.empty)),
            self.command.push_prev.eq(tile.push_prev),
            self.command.push_next.eq(tile.push_next),
            # Where nothing is under way, what is ready starts.
            self.activity.idle.eq(~self.writing & ~self.command.ready),
            self.activity.cause.eq(
                Mux(
                    works & is_data & ~self.beat_there,
                    Cause.MEMORY,
                    Mux(works & blocked, Cause.BANK, Cause.BUSY),
                )
            ),
        ]
        self._to_memories(m, entry, is_data, whole, beats)
        return whole & beyond

    def _to_memories(
        self, m: Module, entry: Value, is_data: Value, whole: Value, beats: Countdown
    ) -> None:
        bits, tile = 8 * self.config.port_bytes, self.tile
        padding = tile.pad_value.replicate(self.config.port_bytes)
        value = Mux(is_data, self.beat, padding)
        for name in DIRECT:
            port: Any = getattr(self, name)
            columns = len(port.enable)
            with m.If(tile.memory == Mem[name.upper()]):
                with m.If(self.consume):
                    column = (beats.left == columns - n for n in range(columns))
                    m.d.comb += port.enable.eq(Cat(column))
                with m.Elif(whole & ~is_data):
                    m.d.comb += port.enable.eq((1 << columns) - 1)
            m.d.comb += [port.address.eq(entry), port.data.eq(value.replicate(columns))]
        # The last beats, the latest on top.
        held = Signal(max(self._beats("acc") - 1, 0) * bits, reset_less=True)
        with m.If(self.consume & _to_acc(tile)):
            m.d.sync += held.eq(Cat(held, self.beat)[bits:])
        computed = self.computed
        vector = self._vector(m, Cat(held, self.beat), is_data)
        m.d.comb += [
            self.acc.enable.eq(computed.enable | (whole & _to_acc(tile))),
            self.acc.address.eq(Mux(computed.enable, computed.address, entry)),
            self.acc.data.eq(Mux(computed.enable, computed.data, vector)),
        ]

    def _vector(self, m: Module, taken: Value, is_data: Value) -> Value:
        """An ACC entry: int32 lanes as they came, or bytes (padding is one) less a zero point."""
        lanes, tile = self.config.block_out, self.tile
        narrow = data.View(layouts.lanes(8, lanes), taken[-8 * lanes :])
        zero = Mux(tile.memory == Mem.ACC8, tile.zero, 0)
        widened = []
        for lane in range(lanes):
            byte = Mux(is_data, narrow[lane], tile.pad_value)
            value = Signal(signed(32), name=f"widened_{lane}")
            m.d.comb += value.eq(~subtract_selected(zero, byte))  # the byte less the zero point
            widened.append(value)
        return Mux(is_data & (tile.memory == Mem.ACC), taken, Cat(widened))

    # Per memory --------------------------------------------------------------------------------

    def _beats(self, name: str) -> int:
        return layouts.beats(self.config, name)

    def _of_memory(self, memory: Value, value: Value, factor: Callable[[str], int]) -> Value:
        """``value`` times what ``factor`` says of the memory: a choice of factors that differ."""
        factors = [factor(each.name.lower()) for each in Mem]
        distinct = sorted(set(factors))
        which = Array(Const(distinct.index(f), range(len(distinct))) for f in factors)[memory]
        return Array(scaled(value, f) for f in distinct)[which]

    def _beats_of(self, tile: data.View) -> Value:
        """Beats of an entry."""
        return self._of_memory(tile.memory, Const(1), self._beats)

    def _most_beats(self) -> int:
        return max(self._beats(each.name.lower()) for each in Mem)

    def _longest_run(self) -> int:
        return (1 << isa.Load.x_size.width(self.config)) * self._most_beats()


def _to_acc(tile: data.View) -> Value:
    return tile.memory.matches(Mem.ACC, Mem.ACC8)


def _runs(instruction: data.View) -> tuple[Value, Value, Value]:
    """Runs of a row, rows, planes: a row of entries that lie together is one run."""
    x = Mux(instruction.x_stride == 1, 1, instruction.x_size)
    return x, instruction.y_size, instruction.z_size
