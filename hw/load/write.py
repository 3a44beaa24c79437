"""LOAD's write side: writes the tiles of the instructions that have started, in order.

1. It works on the oldest unfinished instruction: one entry of padding a cycle, or one beat; an
   entry is complete with its last beat.
2. ACC has one write port, and what COMPUTE writes goes first. Only what completes an entry needs
   the port, so only that waits.
3. A memory of results takes one a cycle, of padding too, unless it is read in that cycle: so a beat
   stays in the buffer until its last one.
4. INP has one write port. Where others write INP too, only what completes an entry needs it. LOAD
   goes before them, and says early in the cycle that it writes.
5. An instruction finishes with its last entry, one whose tile is empty as soon as it is the oldest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value

from vdla.hw.interfaces import Cause, Port, pushes
from vdla.hw.load.memories import stepped, takes_beats, to_acc
from vdla.hw.load.memory_ports import MemoryPorts, MemoryWrites, Written
from vdla.hw.load.position import Position
from vdla.hw.load.tiles import Tiles
from vdla.isa.config import Config
from vdla.isa.instructions import Mem


@dataclass(frozen=True)
class WriterPorts:
    """Ports that the write side is connected to. It drives ``consume``, ``activity``, the memories,
    ``writes_inp``, and what ``command`` says of the instruction that finishes.
    """

    command: Port  # interfaces.command
    activity: Port  # interfaces.activity
    beat: Value  # the oldest beat in the read buffer
    beat_waits: Value  # whether there is one
    consume: Signal  # the beat is taken out of the buffer
    acc_taken: Value  # COMPUTE writes ACC in this cycle
    read: Mapping[str, Value]  # memories of results, each whether it is read in this cycle
    writes_inp: Signal | None  # INP is written in this cycle, where others may write it too
    memories: MemoryPorts


class Writer:
    """``fails`` says that an entry is written that lies beyond its buffer."""

    def __init__(self, m: Module, config: Config, ports: WriterPorts, tiles: Tiles) -> None:
        self.m, self.config, self.ports, self.tiles = m, config, ports, tiles
        self.position = position = Position(m, config, tiles)
        self.taken, self.whole = (Signal(name=n) for n in ("taken", "whole"))
        tile, is_data = tiles.tile, position.is_data
        taken, waits = to_acc(tile.memory) & ports.acc_taken, position.beats.end | ~is_data
        for name, is_read in ports.read.items():
            to_memory = tile.memory == stepped(config)[name]
            taken, waits = taken | (to_memory & is_read), waits | to_memory
        m.d.comb += self.taken.eq(taken)
        self.works, unused = tiles.writing & ~tile.empty, ~tiles.writing | tile.empty
        self.blocked = self.taken & waits
        step = self._write_in_steps() if ports.read else self._write()
        position.go_on(self.whole, step, unused)
        self._report()
        beat, left = ports.beat, position.beats.left
        consume = ports.consume
        written = Written(tile, position.entry, is_data, beat, left, consume, step, self.whole)
        MemoryWrites(m, config, ports.memories, written)
        self.fails: Value = self.whole & position.beyond
        if ports.writes_inp is not None:
            # Nothing else keeps a write of INP waiting.
            completes = ~is_data | (ports.beat_waits & position.beats.end)
            m.d.comb += ports.writes_inp.eq(self.works & (tile.memory == Mem.INP) & completes)

    def _write(self) -> Value:
        """Takes a beat, or completes an entry, or both; returns whether it takes one."""
        ports, is_data, ends = self.ports, self.position.is_data, self.position.beats.end
        self.m.d.comb += [
            ports.consume.eq(self.works & is_data & ports.beat_waits & ~self.blocked),
            self.whole.eq(Mux(is_data, ports.consume & ends, self.works & ~self.taken)),
        ]
        return ports.consume

    def _write_in_steps(self) -> Value:
        """With memories of results: takes a beat, writes a result, or completes an entry; returns
        whether it makes a step of one."""
        ports, position, ends = self.ports, self.position, self.position.beats.end
        is_last = ends | takes_beats(self.config, self.tiles.tile.memory)  # of a beat
        step = Signal(name="step")
        self.m.d.comb += [
            step.eq(self.works & (~position.is_data | ports.beat_waits) & ~self.blocked),
            ports.consume.eq(step & position.is_data & is_last),
            self.whole.eq(Mux(position.in_steps, step & ends, self.works & ~self.taken)),
        ]
        return step

    def _report(self) -> None:
        """Says what finishes in this cycle, and why nothing is written if nothing is."""
        ports, command, tiles = self.ports, self.ports.command, self.tiles
        no_beat = self.works & self.position.is_data & ~ports.beat_waits
        blocked = Mux(self.works & self.blocked, Cause.BANK, Cause.BUSY)
        self.m.d.comb += [
            command.finish.eq(
                (self.whole & self.position.last) | (tiles.writing & tiles.tile.empty)
            ),
            *(getattr(command, flag).eq(tiles.tile[flag]) for flag in pushes(self.config)),
            # Where nothing is under way, what is ready starts.
            ports.activity.idle.eq(~tiles.writing & ~tiles.fifo.r_rdy & ~command.ready),
            ports.activity.cause.eq(Mux(no_beat, Cause.MEMORY, blocked)),
        ]
