"""How loops become instructions: merged, padded, micro-ops, or unrolled where they don't fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import vdla
from vdla.compiler.targets.accelerator.codegen.axes import Iteration
from vdla.compiler.targets.accelerator.lower import lower_function, lower_schedule
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile
from vdla.compiler.targets.accelerator.operators.pairwise import VectorTile
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


def computed(text, *arrays, out):
    """(what a program in the loop IR's text gives on tiny, its instructions by stage)."""
    kernel = vdla.build(func := vdla.parse(text, "tiny"), target="tiny")
    assert kernel.check() == []
    found = np.zeros(out, np.int32)
    kernel(*arrays, found)
    stages = {}
    for op in lower_function(func, load_config("tiny")).ops:
        stages.setdefault(op.name, []).append(op)
    return found, stages


ROWS = np.arange(32, dtype=np.int32).reshape(8, 4) * 7 - 50


def test_three_loops_of_a_store_are_planes_rows_and_entries():
    text = """
func main(a: int32[32, 4], out: int32[12, 4]):
    alloc x: int32[32, 4] @"vdla.acc":
        for i in 32:
            load_acc(dst=x[i, 0], src=a[i, 0])
        for p in 2:
            for q in 3:
                for r in 2:
                    store32(out=out[p * 6 + q * 2 + r, 0], acc=x[p * 16 + q * 4 + r, 0])
"""
    rows = np.arange(128, dtype=np.int32).reshape(32, 4)
    found, stages = computed(text, rows, out=(12, 4))
    want = rows.reshape(2, 4, 4, 4)[:, :3, :2].reshape(12, 4)
    np.testing.assert_array_equal(found, want)
    (store,) = (op.instruction for op in stages["store32"])
    assert sizes(store) == (2, 3, 2)


def test_loops_beyond_three_become_micro_ops_in_their_order():
    text = """
func main(a: int32[32, 4], out: int32[32, 4]):
    alloc x: int32[32, 4] @"vdla.acc":
        for i in 32:
            load_acc(dst=x[i, 0], src=a[i, 0])
        alloc y: int32[32, 4] @"vdla.acc":
            for p in 2:
                for q in 2:
                    for r in 2:
                        for s in 2:
                            for t in 2:
                                alu_copy(dst=y[FORWARD, 0], y=x[MIRRORED, 0])
            for j in 32:
                store32(out=out[j, 0], acc=y[j, 0])
"""
    text = text.replace("FORWARD", "p * 16 + q * 8 + r * 4 + s * 2 + t")
    text = text.replace("MIRRORED", "t * 16 + s * 8 + r * 4 + q * 2 + p")
    rows = np.arange(128, dtype=np.int32).reshape(32, 4)
    found, stages = computed(text, rows, out=(32, 4))
    want = rows.reshape(2, 2, 2, 2, 2, 4).transpose(4, 3, 2, 1, 0, 5).reshape(32, 4)
    np.testing.assert_array_equal(found, want)
    (copy,) = stages["alu_copy"]
    assert copy.instruction.extents() == (2, 2, 2)
    assert [dst for dst, _, _ in copy.uops] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["", " unrolled"])
def test_a_load_of_nothing_but_padding(kind):
    """It leaves what lies behind it as it is."""
    text = f"""
func main(a: int32[8, 4], out: int32[7, 4]):
    alloc x: int32[6, 4] @"vdla.acc":
        alloc y: int32[1, 4] @"vdla.acc":
            load_acc(dst=y[0, 0], src=a[7, 0])
            for i in 6{kind}:
                load_acc_pad(dst=x[i, 0], src=a[i, 0], inside=i < 0, pad_value=7)
            for j in 6:
                store32(out=out[j, 0], acc=x[j, 0])
            store32(out=out[6, 0], acc=y[0, 0])
"""
    found, stages = computed(text, ROWS, out=(7, 4))
    np.testing.assert_array_equal(found, [[7] * 4] * 6 + [ROWS[7].tolist()])
    assert len(stages["load_acc_pad"]) == (6 if kind else 1)


@pytest.mark.parametrize(("first", "start"), [("False", 0), ("k == 0", 1)])
def test_where_a_reduction_starts(first, start):
    """From its first term, or from what lies at the result's place."""
    text = f"""
func main(a: int32[8, 4], out: int32[1, 4]):
    alloc sum: int32[1, 4] @"vdla.acc":
        load_acc(dst=sum[0, 0], src=a[0, 0])
        alloc x: int32[7, 4] @"vdla.acc":
            for i in 7:
                load_acc(dst=x[i, 0], src=a[i + 1, 0])
            for k in 7:
                alu_add_reduce(dst=sum[0, 0], y=x[k, 0], first={first})
            store32(out=out[0, 0], acc=sum[0, 0])
"""
    found, _ = computed(text, ROWS, out=(1, 4))
    np.testing.assert_array_equal(found[0], ROWS[start:].sum(axis=0))


@pytest.mark.parametrize(("start", "alike"), [(3, True), (2, False)])
def test_operands_lie_in_one_place_where_their_axes_begin_there(start, alike):
    """One is three entries behind the buffer's first by itself, the other by a loop of one step."""
    iteration = object.__new__(Iteration)
    iteration.first, iteration.start = {"a": 3, "b": 0}, {"a": 0, "b": start}
    iteration.space, iteration.axes = {"a": "acc", "b": "acc"}, []
    assert iteration.same_place("a", "b") is alike
