"""LOADs of WGT4: what they write to WGT, how long they take, and where the checker stops them."""

from __future__ import annotations

import numpy as np

from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.instructions import Load
from vdla.isa.options.weights4 import WGT4
from vdla.sim.checker import check
from vdla.sim.counts import Access, counts_of
from vdla.sim.machine import simulate
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream, memory_image

CONFIG = load_config("tiny", ["weights4=1"])
TILE = CONFIG.wgt_entry  # weights
LOAD = Load(memory=WGT4, sram_base=1, dram_base=64, x_size=2, y_size=1, z_size=1)


def nibbles(weights):
    """Bytes of weights, two in each, the first in the low nibble; by hexadecimal digits."""
    pairs = np.asarray(weights).reshape(-1, 2)
    return bytes(int(f"{high & 15:x}{low & 15:x}", 16) for low, high in pairs.tolist())


def loaded(load, dram):
    state = State(CONFIG, np.frombuffer(dram.ljust(1024, b"\x5a"), np.uint8).copy())
    state.wgt[:] = 99
    (row,) = Stream.of(CONFIG, [load]).rows
    execute(state, row)
    return state.wgt.reshape(len(state.wgt), -1)


def test_every_nibble_is_widened():
    weights = np.arange(2 * TILE) * 5 % 16 - 8
    wgt = loaded(LOAD, bytes(64) + nibbles(weights))
    assert set(weights.tolist()) == set(range(-8, 8))
    np.testing.assert_array_equal(wgt[1:3], weights.reshape(2, -1))
    assert (wgt[0] == 99).all()
    assert (wgt[3:] == 99).all()


def test_strides_count_entries_of_half_the_bytes():
    weights = np.random.default_rng(0).integers(-8, 8, (7, TILE))
    load = LOAD.replace(x_size=2, y_size=2, x_stride=2, y_stride=3)
    wgt = loaded(load, bytes(64) + nibbles(weights))
    np.testing.assert_array_equal(wgt[1:5], weights[[0, 2, 3, 5]])


def test_padding_is_int8():
    weights = np.full(TILE, -8)
    load = LOAD.replace(x_size=1, pad_x0=1, pad_y1=1, pad_value=-100)
    wgt = loaded(load, bytes(64) + nibbles(weights))
    assert [set(entry.tolist()) for entry in wgt[1:5]] == [{-100}, {-8}, {-100}, {-100}]


# Timing, checker, counts --------------------------------------------------------------------------


def assembled(text):
    return assemble(f".base 0x2000\n{text}\nFINISH", CONFIG)


def test_an_entry_takes_half_the_beats():
    """Of the bus and of the write side: a tile of 4 × 4 has four beats as int8, and two here."""
    spans = []
    for memory in ("WGT", "WGT4"):
        program = assembled(f"LOAD memory={memory} x_size=9 y_size=1 z_size=1")
        dram = memory_image(program, 1 << 14)
        run = simulate(CONFIG, program.instructions, dram, program.base)
        spans.append(int(run.finish[0] - run.start[0]) - 2 - 1 - CONFIG.memory.latency)
    assert spans == [9 * 4, 9 * 2]


def findings(text):
    program = assembled(text)
    image = memory_image(program, 1 << 14)
    return check(CONFIG, program.instructions, image, program.base)


def test_the_checker_knows_its_entries():
    depth, size = CONFIG.depth("wgt"), TILE // 2
    load = "LOAD memory=WGT4 y_size=1 z_size=1"
    assert findings(f"{load} x_size=2 sram_base={depth - 2}") == []
    (found,) = findings(f"{load} x_size=2 sram_base={depth - 1}")
    assert f"expected entries of WGT below {depth}, found {depth}" in found.text
    assert findings(f"{load} x_size=3 dram_base={(1 << 14) - 3 * size}") == []
    (found,) = findings(f"{load} x_size=4 dram_base={(1 << 14) - 3 * size}")
    assert found.kind == "range"


def test_a_gemm_must_wait_for_it():
    gemm = "GEMM uop_count=1 wgt_base=1"
    (found,) = findings(f"LOAD memory=WGT4 sram_base=1 x_size=1 y_size=1 z_size=1\n{gemm}")
    assert found.text.startswith("GEMM 1 reads WGT[1] that LOAD 0 may not have written yet")


def test_a_beat_writes_two():
    """One access of the scratchpad for each beat, twice as wide as the port; padding writes all."""
    program = assembled("LOAD memory=WGT4 x_size=3 y_size=1 z_size=1 pad_x1=1")
    stream = Stream.of(CONFIG, program.instructions, program.base)
    counted = counts_of(stream, memory_image(program, 1 << 14))
    port = 8 * CONFIG.port_bytes
    assert counted.accesses[Access("wgt", True, 2 * port)] == 3 * 2
    assert counted.accesses[Access("wgt", True, 8 * TILE)] == 1
    assert counted.loaded_bytes == 3 * TILE // 2
