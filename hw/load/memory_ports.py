"""LOAD's write ports: one for each memory, as ``memories.py`` sorts them.

1. Direct memories, as INP, WGT and UOP, take each beat in its column of the entry as it comes, and
   a whole entry of padding at once. Options add forms of them, whose beats fill several columns.
2. ACC takes whole entries, so the beats of one are held until its last. An entry of ACC8 is widened
   on the way: each byte, less the zero point, becomes an int32 lane. INP takes whole entries too
   where others write it, which have its port in the other cycles.
3. What COMPUTE or another engine writes to ACC passes here, and goes first: one LUT for each bit
   chooses between their data, an entry as it came, and a widened one.
4. A memory of results takes one in each step: of a beat that stays until the last, or padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from amaranth import Array, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from vdla.hw.hooks import Hooks, hooks_of
from vdla.hw.interfaces import Port
from vdla.hw.layout import beats, lanes, subtract_selected
from vdla.hw.load.memories import stepped, to_acc
from vdla.isa.config import Config
from vdla.isa.instructions import Mem
from vdla.isa.ring import ring_of


@dataclass(frozen=True)
class Written:
    """Activity of the write side in this cycle."""

    tile: data.View  # to which the entry belongs: its memory, and what it is padded with
    entry: Value  # the place in the memory
    is_data: Value  # it has beats, else it is padding
    beat: Value  # the beat that is due
    beats_left: Value  # of the entry, that one among them
    consume: Value  # that beat is taken
    step: Value  # that beat is taken, or a result written
    whole: Value  # the entry is complete


@dataclass(frozen=True)
class MemoryPorts:
    """Ports of interfaces.write_port to the scratchpads, and COMPUTE's, which ``acc`` passes on."""

    direct: Mapping[str, Port]  # by the memories' names
    acc: Port
    computed: Sequence[Port]  # writes of the engines that compute, in different cycles
    stepped: Mapping[str, Port]  # by the memories' names


class FormHooks(Hooks):
    """Seam of direct memories: an option's ``memory`` is one of them in another form."""

    memory: ClassVar[Mem]

    def columns(self, beat: Value) -> Value:
        """The beats of the memory itself that a beat of the form becomes."""
        raise NotImplementedError


class MemoryWrites:
    """Drives ``ports`` with what is ``written``."""

    def __init__(self, m: Module, config: Config, ports: MemoryPorts, written: Written) -> None:
        self.m, self.config, self.ports, self.written = m, config, ports, written
        shared = {"inp"} if len(ring_of(config).writers("inp")) > 1 else set()
        taken = self._hold(shared)
        for name, port in ports.direct.items():
            if name in shared:
                self._write_entries(name, port, taken)
            else:
                self._write_beats(name, port)
        self._write_acc(taken)
        for name, port in ports.stepped.items():
            self._write_results(stepped(config)[name], port)

    def _hold(self, shared: Set[str]) -> Value:
        """The last beats of an entry that is written whole, the latest on top."""
        config, written = self.config, self.written
        bits, memory = 8 * config.port_bytes, written.tile.memory
        longest = max(beats(config, name) for name in ("acc", *shared))
        held = Signal((longest - 1) * bits, reset_less=True)
        holds = to_acc(memory)
        for name in shared:
            holds |= memory == Mem.named(name.upper())
        with self.m.If(written.consume & holds):
            self.m.d.sync += held.eq(Cat(held, written.beat)[bits:])
        return Cat(held, written.beat)

    def _write_beats(self, name: str, port: Port) -> None:
        m, written, beat = self.m, self.written, self.written.beat
        forms = [each for each in hooks_of(FormHooks, self.config) if each.memory.buffer == name]
        self._enable(port, Mem.named(name.upper()), 1)
        for form in forms:
            value = form.columns(written.beat)
            count = len(value) // len(written.beat)
            self._enable(port, form.memory, count)
            beat = Mux(written.tile.memory == form.memory, value, beat.replicate(count))
        value = Mux(
            written.is_data, beat, self._padding().replicate(len(beat) // len(written.beat))
        )
        data = value.replicate(len(port.data) // len(value))
        m.d.comb += [port.address.eq(written.entry), port.data.eq(data)]

    def _enable(self, port: Port, memory: Mem, count: int) -> None:
        """The columns of a direct memory that a beat fills, ``count`` of them; all of padding."""
        m, written, columns = self.m, self.written, len(port.enable)
        with m.If(written.tile.memory == memory):
            with m.If(written.consume):
                beats = columns // count
                column = (written.beats_left == beats - n // count for n in range(columns))
                m.d.comb += port.enable.eq(Cat(column))
            with m.Elif(written.whole & ~written.is_data):
                m.d.comb += port.enable.eq((1 << columns) - 1)

    def _write_entries(self, name: str, port: Port, taken: Value) -> None:
        written, columns = self.written, len(port.enable)
        enable = written.whole & (written.tile.memory == Mem.named(name.upper()))
        padding = self._padding().replicate(columns)
        self.m.d.comb += [
            port.enable.eq(enable.replicate(columns)),
            port.address.eq(written.entry),
            port.data.eq(Mux(written.is_data, taken[-len(port.data) :], padding)),
        ]

    def _padding(self) -> Value:
        """A beat of padding."""
        return self.written.tile.pad_value.replicate(self.config.port_bytes)

    def _write_results(self, memory: Mem, port: Port) -> None:
        """One result of a word. The first comes first, then the last and those before it: the
        count that falls gives their numbers as it is."""
        written, bits = self.written, len(port.data)
        number = written.beats_left[: (memory.results(self.config) - 1).bit_length()]
        padding = Signal(signed(bits))
        results = Array(written.beat[i * bits : (i + 1) * bits] for i in range(1 << len(number)))
        self.m.d.comb += [
            padding.eq(written.tile.pad_value),
            port.enable.eq(written.step & (written.tile.memory == memory)),
            port.address.eq(Cat(number, written.entry)),
            port.data.eq(Mux(written.is_data, results[number], padding)),
        ]

    def _write_acc(self, taken: Value) -> None:
        m, written, acc = self.m, self.written, self.ports.acc
        vector = self._vector(taken)
        enable, address, value = written.whole & to_acc(written.tile.memory), written.entry, vector
        for port in self.ports.computed:
            enable = port.enable | enable
            address = Mux(port.enable, port.address, address)
            value = Mux(port.enable, port.data, value)
        m.d.comb += [acc.enable.eq(enable), acc.address.eq(address), acc.data.eq(value)]

    def _vector(self, taken: Value) -> Value:
        """An ACC entry: int32 lanes as they came, or bytes (padding is one) less a zero point."""
        count, tile, is_data = self.config.block_out, self.written.tile, self.written.is_data
        narrow = data.View(lanes(8, count), taken[-8 * count :])
        zero = Mux(tile.memory == Mem.ACC8, tile.zero, 0)
        widened = []
        for lane in range(count):
            byte = Mux(is_data, narrow[lane], tile.pad_value)
            value = Signal(signed(32), name=f"widened_{lane}")
            # The byte less the zero point.
            self.m.d.comb += value.eq(~subtract_selected(zero, byte))
            widened.append(value)
        whole = taken[-8 * self.config.acc_entry :]
        return Mux(is_data & (tile.memory == Mem.ACC), whole, Cat(widened))
