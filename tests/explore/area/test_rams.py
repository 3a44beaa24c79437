"""How many RAMs yosys makes of a memory: known cases, and yosys itself."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from amaranth.back import rtlil

from vdla.explore.area.rams import Memory, Rams, rams_of
from vdla.explore.area.structure import block_rams, fifo
from vdla.hw.fifo import Fifo
from vdla.hw.scratchpad import Scratchpad
from vdla.hw.verilog import Top, run_yosys
from vdla.isa.config import load_config

HALVES = {"RAMB18E1": 1, "RAMB36E1": 2}
LUTS = {"RAM32M": 4, "RAM64M": 4, "RAM64X1D": 2, "RAM128X1D": 4}


def by_yosys(unit, tmp_path):
    """The RAMs that yosys makes a unit of, a scratchpad or a FIFO."""
    (tmp_path / "unit.il").write_text(rtlil.convert(unit, name="unit"))
    script = (
        "read_rtlil unit.il; setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2 r:CLK_ENABLE=1 %i; "
        "synth_xilinx -family xc7 -flatten -top unit -run begin:map_ffram; "
        "tee -q -o cells.json stat -json -top unit"
    )
    run_yosys(["-q", "-p", script], tmp_path)
    text = (tmp_path / "cells.json").read_text()
    cells = Counter(json.loads(text)["design"]["num_cells_by_type"])
    return (
        sum(n * cells[kind] for kind, n in HALVES.items()),
        sum(n * cells[kind] for kind, n in LUTS.items()),
    )


@pytest.mark.parametrize(
    ("memory", "halves"),
    [
        (Memory(2048, (64, 64)), 2 * 8),  # paper's INP: 2,048 x 18 in a RAMB36, 8 of them
        (Memory(128, (64,) * 32), 2 * 32),  # paper's WGT: columns of 64 bits, 72 wide
        (Memory(2048, (512,), reads=2), 2 * 57),  # paper's ACC, twice: a RAMB18 for each 9 bits
        (Memory(256, (64,)), 2),  # LOAD's read buffer
        (Memory(1024, (16,), reads=2, shared=1), 1),  # four tables for two lanes
        (Memory(2048, (16,), reads=2, shared=1), 2),
    ],
)
def test_block_rams(memory, halves):
    assert rams_of(memory).halves == halves
    assert rams_of(memory).luts == 0


def test_shallow_memories_are_luts():
    assert rams_of(Memory(16, (280,), combinational=True)) == Rams(luts=4 * 47)
    assert rams_of(Memory(64, (32,))).halves == 0
    assert rams_of(Memory(2, (8,), combinational=True)).luts == 8


def test_where_rams_lie_behind_each_other_bits_are_chosen():
    deep = rams_of(Memory(65536, (32,)))
    assert deep.chosen == deep.decoded == 0  # 32 cascades of one bit
    assert rams_of(Memory(131072, (8,))).chosen == 8


@pytest.mark.parametrize(
    ("depth", "width", "columns", "reads"),
    [
        (96, 512, 8, 2),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in ((512, 32, 1, 1), (1000, 64, 2, 1), (33, 128, 1, 2))
        ),
        pytest.param(5000, 96, 3, 1, marks=pytest.mark.long),
        pytest.param(70000, 8, 1, 1, marks=pytest.mark.long),
        pytest.param(2048, 512, 1, 2, marks=pytest.mark.long),
        pytest.param(20, 1024, 16, 2, marks=pytest.mark.long),
        pytest.param(3, 2048, 4, 1, marks=pytest.mark.long),
        pytest.param(300, 72, 1, 3, marks=pytest.mark.long),
    ],
)
def test_scratchpads_as_yosys_maps_them(tmp_path, depth, width, columns, reads):
    expected = rams_of(Memory(depth, (width // columns,) * columns, reads))
    actual = by_yosys(Scratchpad(depth, width, columns, reads), tmp_path)
    assert actual == (expected.halves, expected.luts)


@pytest.mark.long
@pytest.mark.parametrize(
    ("depth", "width"), [(2, 100), (32, 50), (33, 50), (64, 280), (256, 64), (1000, 280)]
)
def test_fifos_as_yosys_maps_them(tmp_path, depth, width):
    expected = rams_of(fifo(depth, width))
    assert by_yosys(Fifo(width, depth), tmp_path) == (expected.halves, expected.luts)


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
    return sum(n * cells.get(kind, 0) for kind, n in HALVES.items()) / 2


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
    assert core_by_yosys(config, tmp_path) == sum(block_rams(config).values())
