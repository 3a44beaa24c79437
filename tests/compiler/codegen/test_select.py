"""How loops become instructions: merged, padded, micro-ops, or unrolled where they don't fit."""

from __future__ import annotations

import dataclasses

import pytest

from vdla.compiler.lower import lower_schedule
from vdla.compiler.operators.add import Add
from vdla.compiler.operators.conv2d import Conv2d, ConvTile
from vdla.compiler.operators.pairwise import VectorTile
from vdla.isa.config import load_config

CONV = Conv2d(
    batch=1, groups=1, inputs=2, outputs=2, height=6, width=6, kernel=(1, 1), strides=(1, 1),
    pads=(0, 0, 0, 0), dilations=(1, 1), in_zero=5, zero=0, low=-128, high=127,
)  # fmt: skip
PADDED = dataclasses.replace(CONV, kernel=(3, 3), pads=(1, 1, 1, 1))


def lowered(shape, tile, config):
    return lower_schedule(shape.schedule(tile, config), config).ops


def instructions(shape, tile, config="paper"):
    """Instructions by stage."""
    stages = {}
    for op in lowered(shape, tile, load_config(config)):
        stages.setdefault(op.name, []).append(op.instruction)
    return stages


def fields(instruction, *names):
    return tuple(getattr(instruction, name) for name in names)


def sizes(instruction):
    return fields(instruction, "z_size", "y_size", "x_size")


def test_contiguous_loops_become_one_row():
    stages = instructions(CONV, ConvTile(2, 6, 6, 2, 2))
    (load,) = stages["load_inp"]
    assert sizes(load) == (1, 1, 2 * 6 * 6)
    (gemm,) = stages["gemm"]
    assert gemm.steps() == 2 * 36 * 2


def test_rows_and_planes_that_are_not_there_have_size_and_stride_one():
    stages = instructions(CONV, ConvTile(2, 6, 6, 2, 2))
    for each in (*stages["load_inp"], *stages["load_acc"], *stages["store8"]):
        for axis in "zyx":
            if getattr(each, f"{axis}_size") == 1:
                assert getattr(each, f"{axis}_stride") == 1


def test_a_tile_of_rows_is_a_plane_per_channel_block():
    loads = instructions(CONV, ConvTile(2, 2, 6, 2, 2))["load_inp"]
    assert [sizes(load) for load in loads] == [(1, 2, 12)] * 3
    assert {load.y_stride for load in loads} == {36}


def test_padding_is_part_of_the_load():
    loads = instructions(PADDED, ConvTile(2, 3, 6, 2, 2))["load_inp_pad"]
    assert [sizes(load) for load in loads] == [(2, 4, 6)] * 2
    pads = ("pad_y0", "pad_y1", "pad_x0", "pad_x1", "pad_value")
    assert [fields(load, *pads) for load in loads] == [(1, 0, 1, 1, 5), (0, 1, 1, 1, 5)]


def test_a_padded_loop_grows_with_its_pixels():
    """Where 16 channels are two INP vectors, a padded row has two entries for each pixel."""
    (load,) = instructions(PADDED, ConvTile(2, 6, 6, 2, 2), "narrow")["load_inp_pad"]
    assert sizes(load) == (2, 6, 12)
    assert fields(load, "pad_y0", "pad_y1", "pad_x0", "pad_x1") == (1, 1, 2, 2)


def test_four_loops_of_a_load_are_unrolled():
    """Pixels two apart whose channels are two INP vectors: one LOAD per channel block."""
    shape = dataclasses.replace(CONV, strides=(2, 2))
    loads = instructions(shape, ConvTile(2, 2, 3, 2, 2), "narrow")["load_inp"]
    assert [sizes(load) for load in loads[:2]] == [(2, 3, 2)] * 2
    assert loads[1].dram_base - loads[0].dram_base == 6 * 6 * 16


def test_a_partial_tile_does_less():
    """Six rows in tiles of four: the second store has two."""
    stages = instructions(PADDED, ConvTile(2, 4, 6, 2, 2))
    assert [sizes(store) for store in stages["store8"]] == [(2, 1, 24), (2, 1, 12)]
    assert [gemm.steps() for gemm in stages["gemm"]] == [2 * 24 * 18, 2 * 12 * 18]


def test_reductions_are_micro_ops():
    ops = lowered(PADDED, ConvTile(2, 6, 6, 2, 2), load_config("paper"))
    (gemm,) = (op for op in ops if op.name == "gemm")
    assert len(gemm.uops) == 2 * 9
    assert gemm.first == (True, *[False] * 17)
    assert gemm.instruction.extents() == (2, 6, 6)


def test_a_later_step_of_a_reduction_starts_nothing():
    ops = lowered(PADDED, ConvTile(2, 6, 6, 1, 2), load_config("paper"))
    start, rest = (op for op in ops if op.name == "gemm")
    assert (start.instruction.init, rest.instruction.init) == (2, 0)
    assert start.uops == rest.uops
    assert not any(rest.first)


def test_too_many_micro_ops_are_unrolled():
    """A 17×17 kernel is 289 taps and tiny holds 256 micro-ops: a pixel's rows go one by one."""
    shape = dataclasses.replace(CONV, kernel=(17, 17), inputs=1, outputs=1, height=17, width=17)
    config = dataclasses.replace(load_config("tiny"), wgt_bytes=8192, inp_bytes=2048)
    ops = [op for op in lowered(shape, ConvTile(1, 1, 1, 1, 1), config) if op.name == "gemm"]
    assert [len(op.uops) for op in ops] == [17] * 17
    assert [any(op.first) for op in ops] == [True, *[False] * 16]


@pytest.mark.parametrize(("vectors", "counts"), [(12, [12]), (5, [5, 5, 2])])
def test_an_addition(vectors, counts):
    stages = instructions(Add(12, 1, 1, 0, 0, 0, -128, 127), VectorTile(vectors), "tiny")
    assert [load.x_size for load in stages["load_acc8"]] == [n for n in counts for _ in range(2)]
    assert [store.x_size for store in stages["store8"]] == counts
