"""How many RAMs yosys makes of a memory: known cases, and yosys itself."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from amaranth.back import rtlil

from vdla.explore.area.families import FAMILIES
from vdla.explore.area.rams import ECP5, SERIES_7, Memory, Rams, rams_of
from vdla.explore.area.structure import block_rams, fifo
from vdla.hw.fifo import Fifo
from vdla.hw.scratchpad import Scratchpad
from vdla.hw.verilog import Top, run_yosys
from vdla.isa.config import load_config

BLOCKS = {"RAMB18E1": 0.5, "RAMB36E1": 1, "DP16KD": 1}
LUTS = {"RAM32M": 4, "RAM64M": 4, "RAM64X1D": 2, "RAM128X1D": 4, "TRELLIS_DPR16X4": 4}
SYNTHESIS = {SERIES_7: "synth_xilinx -family xc7 -flatten", ECP5: "synth_ecp5"}
KINDS = pytest.mark.parametrize("kinds", SYNTHESIS, ids=["xc7", "ecp5"])


def by_yosys(units, kinds, tmp_path):
    """The RAMs that yosys makes of units, each a scratchpad or a FIFO, by the family's kinds."""
    script = ""
    for number, unit in enumerate(units):
        (tmp_path / f"{number}.il").write_text(rtlil.convert(unit, name="unit"))
        script += (
            f"design -reset; read_rtlil {number}.il\n"
            "setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2 r:CLK_ENABLE=1 %i\n"
            f"{SYNTHESIS[kinds]} -top unit -run begin:map_ffram\n"
            f"tee -q -o {number}.json stat -json -top unit\n"
        )
    (tmp_path / "units.ys").write_text(script)
    run_yosys(["-q", "units.ys"], tmp_path)
    result = []
    for number in range(len(units)):
        cells = json.loads((tmp_path / f"{number}.json").read_text())["design"]
        count = Counter(cells["num_cells_by_type"])
        result.append(
            (
                sum(n * count[k] for k, n in BLOCKS.items()),
                sum(n * count[k] for k, n in LUTS.items()),
            )
        )
    return result


@pytest.mark.parametrize(
    ("memory", "blocks"),
    [
        (Memory(2048, (64, 64)), 8),  # paper's INP: 2,048 x 18 in a RAMB36, 8 of them
        (Memory(128, (64,) * 32), 32),  # paper's WGT: columns of 64 bits, 72 wide
        (Memory(2048, (512,), reads=2), 57),  # paper's ACC, twice: a RAMB18 for each 9 bits
        (Memory(256, (64,)), 1),  # LOAD's read buffer
        (Memory(1024, (16,), reads=2, shared=1), 0.5),  # four tables for two lanes
        (Memory(2048, (16,), reads=2, shared=1), 1),
    ],
)
def test_block_rams(memory, blocks):
    assert rams_of(memory, SERIES_7).blocks == blocks
    assert rams_of(memory, SERIES_7).luts == 0


def test_shallow_memories_are_luts():
    assert rams_of(Memory(16, (280,), combinational=True), SERIES_7) == Rams(luts=4 * 47)
    assert rams_of(Memory(64, (32,)), SERIES_7).blocks == 0
    assert rams_of(Memory(2, (8,), combinational=True), SERIES_7).luts == 8


def test_where_rams_lie_behind_each_other_bits_are_chosen():
    deep = rams_of(Memory(65536, (32,)), SERIES_7)
    assert deep.chosen == deep.decoded == 0  # 32 cascades of one bit
    assert rams_of(Memory(131072, (8,)), SERIES_7).chosen == 8


SCRATCHPADS = [  # depth, width, columns, reads
    (512, 32, 1, 1), (1000, 64, 2, 1), (33, 128, 1, 2), (5000, 96, 3, 1), (70000, 8, 1, 1),
    (2048, 512, 1, 2), (20, 1024, 16, 2), (3, 2048, 4, 1), (300, 72, 1, 3),
]  # fmt: skip
FIFOS = [(2, 100), (32, 50), (33, 50), (64, 280), (256, 64), (1000, 280)]  # depth, width


def pairs_of(scratchpads, fifos):
    """Units, and the memories that they are."""
    for depth, width, columns, reads in scratchpads:
        memory = Memory(depth, (width // columns,) * columns, reads)
        yield Scratchpad(depth, width, columns, reads), memory
    for depth, width in fifos:
        yield Fifo(width, depth), fifo(depth, width)


@KINDS
@pytest.mark.parametrize(
    ("scratchpads", "fifos"),
    [
        ([(96, 512, 8, 2)], [(33, 20)]),
        pytest.param(SCRATCHPADS, FIFOS, marks=pytest.mark.long),
    ],
)
def test_units_as_yosys_maps_them(tmp_path, kinds, scratchpads, fifos):
    units, memories = zip(*pairs_of(scratchpads, fifos), strict=True)
    expected = [rams_of(each, kinds) for each in memories]
    assert by_yosys(units, kinds, tmp_path) == [(each.blocks, each.luts) for each in expected]


def core_by_yosys(config, tmp_path):
    """RAMB36 of a core whose units aren't kept apart, once RAMs that nobody reads are gone."""
    (tmp_path / "vdla.il").write_text(rtlil.convert(Top(config), name="vdla", emit_src=False))
    script = (
        "read_rtlil vdla.il; setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2 r:CLK_ENABLE=1 %i; "
        "synth_xilinx -family xc7 -flatten -nosrl -top vdla -run begin:map_cells; opt_clean; "
        "tee -q -o cells.json stat -json -top vdla"
    )
    run_yosys(["-q", "-p", script], tmp_path)
    cells = json.loads((tmp_path / "cells.json").read_text())["design"]["num_cells_by_type"]
    return sum(n * cells.get(kind, 0) for kind, n in BLOCKS.items())


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("tiny", ["command_queue=1000"]),  # words of which STORE reads few bits
        ("tiny", ["command_queue=300", "vector_engine=1", "reciprocal_units=2"]),
        ("narrow", ["vector_engine=1", "port_bytes=4", "uop_bytes=16384", "window_taps=2",
                    "window_rows=2"]),
        ("narrow", ["uop_bytes=65536", "acc_bytes=524288", "inp_bytes=524288", "port_bytes=4"]),
        ("paper", []),
    ],
)  # fmt: skip
def test_cores_as_yosys_maps_them(tmp_path, name, settings):
    config = load_config(name, settings)
    assert core_by_yosys(config, tmp_path) == sum(block_rams(config, FAMILIES["xc7"]).values())
