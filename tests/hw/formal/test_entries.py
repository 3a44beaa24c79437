"""What LOAD writes of the beats that come (hw/load/write.py, memory_ports.py).

1. A memory that takes single beats has each in its column of the entry, in the order in which they
   come.
2. ACC, and INP where STORE writes it too, take an entry at once: with its last beat, and made of
   the beats that were taken since the entry before it was complete, no more and no fewer.
3. An entry of padding takes no beat, and is written at once.
4. LOAD says that it writes INP in those cycles in which it does, and in no other.

Instructions are free, but fetch lets only memories pass that exist. Beats are free, and may be
there or not in any cycle.
"""

from __future__ import annotations

import pytest
from amaranth import Cat, Const, Mux, Signal
from planting import plant

from vdla.hw.layout import beats
from vdla.hw.load import Load, memory_ports, write
from vdla.hw.load.memories import direct
from vdla.isa.config import load_config
from vdla.isa.instructions import Mem, memories

SIZES = ["block_in=8", "block_out=4", "inp_bytes=32", "wgt_bytes=64", "acc_bytes=64",
         "uop_bytes=16", "burst_beats=4", "read_buffer_beats=4", "reads_in_flight=2"]  # fmt: skip
CONFIGS = {
    "beats": load_config("tiny", SIZES),
    "whole entries": load_config("tiny", [*SIZES, "forwarding=1"]),
    "four engines": load_config("tiny", [*SIZES, "forwarding=1", "vector_engine=1"]),
}


class Taken:
    """The beats that were taken since an entry was complete: how many, and their values."""

    def __init__(self, proof, load, consume, beat):
        config = load.config
        longest = max(beats(config, name) for name in (*direct(config), "acc"))
        bits = 8 * config.port_bytes
        self.before = Signal(range(longest + 1), name="taken_before")
        history = Signal((longest - 1) * bits, reset_less=True, name="history")
        self.history, self.every = history, Cat(history, beat)  # the latest on top
        with proof.m.If(consume):
            proof.m.d.sync += history.eq(self.every[bits:])
        whole = load.writer.whole
        proof.m.d.sync += self.before.eq(Mux(whole, 0, self.before + consume))


def build(proof, state, config):
    """LOAD with free beats, and what is known of its position; per memory whether it is written."""
    load = Load(config)
    inner = proof.add(load)
    buffer = inner.submodules.buffer
    proof.cut(inner, "buffer", buffer.r_data, buffer.r_rdy, buffer.w_rdy)
    known = max(memories(config))
    proof.assume(~load.command.start | (load.head.memory <= known))
    tile, position = load.tiles.tile, load.writer.position
    consume, beat = state(inner, "consume"), buffer.r_data
    taken = Taken(proof, load, consume, beat)
    works, size = load.writer.works, Signal(8)
    proof.m.d.comb += size.eq(beats(config, "acc8"))
    for name in (*direct(config), "acc"):
        with proof.m.If(tile.memory == Mem.named(name.upper())):
            proof.m.d.comb += size.eq(beats(config, name))
    left = position.beats.left
    proof.check((left >= 1) & (left <= size) & (taken.before == size - left), when=works)
    proof.check(position.beats.end == (left == 1), when=works)
    proof.check(taken.before == 0, when=~works | ~position.is_data)
    holds = tile.memory == Mem.ACC
    if config.forwarding:
        holds |= tile.memory == Mem.INP
    held, bits = state(inner, "held"), len(beat)
    for n in range(1, len(held) // bits + 1):  # what is held is what was taken
        kept = held[-n * bits :][:bits] == taken.history[-n * bits :][:bits]
        proof.check(kept, when=works & holds & (taken.before >= n))
    written = {}
    for name in direct(config):
        port, here = getattr(load, name), works & (tile.memory == Mem.named(name.upper()))
        whole = name == "inp" and config.forwarding
        check = check_entries if whole else check_beats
        written[name] = check(proof, port, here, (taken, consume, beat), position, tile)
    computes = load.computed.enable
    if config.vector_engine:
        computes |= load.vectored.enable
    proof.assume(load.acc_taken == computes)
    acc = load.acc.enable & ~computes
    proof.check(works, when=acc)
    full = acc & position.is_data & (tile.memory == Mem.ACC)
    proof.check((taken.before + consume == size) & consume, when=acc & position.is_data)
    proof.check(load.acc.data == taken.every[-len(load.acc.data) :], when=full)
    written["acc"] = full
    if config.forwarding:
        proof.check(load.writes_inp == load.inp.enable.any())
    return load, written


def check_entries(proof, port, here, of_beats, position, tile):
    """A memory that takes whole entries; whether one of data is written."""
    taken, consume, beat = of_beats
    columns, writes = len(port.enable), port.enable.any()
    bits = columns * len(beat)
    proof.check(here & port.enable.all() & (port.address == position.entry[: len(port.address)]),
                when=writes)  # fmt: skip
    ends = here & consume & (position.beats.left == 1)
    proof.check(writes == (ends | (here & ~position.is_data)))
    entry = writes & position.is_data
    proof.check((taken.before + 1 == columns) & consume, when=entry)
    proof.check(port.data == taken.every[-bits:], when=entry)
    padding = tile.pad_value.as_unsigned().replicate(bits // 8)
    proof.check((port.data == padding) & ~consume, when=writes & ~position.is_data)
    return entry


def check_beats(proof, port, here, of_beats, position, tile):
    """A memory that takes single beats; whether one is written."""
    taken, consume, beat = of_beats
    columns, bits = len(port.enable), len(beat)
    proof.check(port.enable.any() == (here & (consume | ~position.is_data)))
    takes = here & consume
    proof.check(port.enable == (Const(1, columns) << taken.before)[:columns], when=takes)
    for column in range(columns):
        value = port.data[column * bits : (column + 1) * bits]
        proof.check(value == beat, when=takes & port.enable[column])
    padding = tile.pad_value.as_unsigned().replicate(columns * bits // 8)
    padded = here & ~position.is_data
    proof.check(port.enable.all() & (port.data == padding) & ~consume, when=padded)
    return takes


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_entries_are_made_of_the_beats_that_come(proof, state, config):
    load, written = build(proof, state, config)
    for name, data in written.items():
        proof.cover(data if name == "uop" else data & (load.writer.position.beats.end))
    proof.cover(written["inp"] & ~proof.past(load.writer.ports.consume))
    proof.prove(depth=4, reach=16)


@pytest.mark.parametrize(
    "fault",
    [
        (memory_ports, "MemoryWrites", "_hold", "holds |= memory == Mem.named(name.upper())",
         "pass"),
        (memory_ports, "MemoryWrites", "_write_entries", "taken[-len(port.data) :]",
         "taken[: len(port.data)]"),
        (write, "Writer", "__init__", "completes = ~is_data |", "completes ="),
    ],
    ids=["not held", "other beats", "padding not said"],
)  # fmt: skip
def test_faults_are_found(proof, state, fault, monkeypatch, tmp_path):
    plant(fault, monkeypatch, tmp_path)
    build(proof, state, CONFIGS["whole entries"])
    proof.refute(depth=12)
