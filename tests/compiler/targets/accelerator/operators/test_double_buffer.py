"""Copies of a buffer: steps take them in turn, and nothing else changes."""

from __future__ import annotations

import pytest

from vdla.compiler.schedule import ScheduleError
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile
from vdla.compiler.tir.printer import show
from vdla.isa.config import load_config

CONFIG = load_config("paper")
CONV = Conv2d(
    batch=1, groups=1, inputs=4, outputs=4, height=6, width=6, kernel=(3, 3), strides=(1, 1),
    pads=(0, 0, 0, 0), dilations=(1, 1), in_zero=0, zero=0, low=-128, high=127,
)  # fmt: skip


def places(tile: ConvTile, stage: str, key: str = "sram_base") -> list[int]:
    """Where each instruction of a stage starts on chip, in program order."""
    ops = lower_schedule(CONV.schedule(tile, CONFIG), CONFIG).ops
    return [getattr(op.instruction, key) for op in ops if op.name == stage]


def test_steps_take_copies_in_turn():
    tile = ConvTile(2, 4, 4, 1, 2, 2, stages=3)
    assert places(tile, "load_inp") == [0, 36, 72, 0, 36, 72, 0, 36]  # 2 tiles of 4 steps
    assert places(tile, "load_wgt")[:4] == [0, 18, 36, 0]


def test_tiles_take_accumulators_in_turn():
    tile = ConvTile(1, 4, 4, 4, 1, 2, stages=2)
    first, second, *rest = places(tile, "store8")
    assert second - first == 16
    assert rest == [first, second]


def test_what_is_kept_is_loaded_once_in_the_steps_portions():
    tile = ConvTile(1, 4, 4, 2, 1, 2, stages=2, stationary="inp")
    assert places(tile, "load_inp") == [0, 72]
    tile = ConvTile(2, 2, 4, 4, 1, 1, stages=2, stationary="wgt")
    assert places(tile, "load_wgt") == [0, 36, 0, 36]


def test_one_copy_is_the_default():
    assert '" x' not in show(CONV.schedule(ConvTile(2, 4, 4, 1, 2, 1), CONFIG).mod)
    text = show(CONV.schedule(ConvTile(2, 4, 4, 1, 2, 1, stages=2), CONFIG).mod)
    assert 'alloc padded_inp: int8[1, 1, 1, 6, 6, 1, 16] @"vdla.inp" x2' in text


def test_copies_count_where_memory_is_given_out():
    with pytest.raises(AllocationError, match="expected wgt buffers within 128 entries"):
        lower_schedule(CONV.schedule(ConvTile(2, 4, 4, 1, 2, 2, stages=8), CONFIG), CONFIG)


def test_errors():
    s = CONV.schedule(ConvTile(2, 4, 4, 1, 2, 2), CONFIG)
    with pytest.raises(ScheduleError) as caught:
        s["acc"].double_buffer(0)
    assert str(caught.value) == "double_buffer acc: expected at least 1 copy, found 0"
    with pytest.raises(ScheduleError) as caught:
        s["out"].double_buffer()
    expected = "double_buffer out: expected an intermediate stage, found the output out"
    assert str(caught.value) == expected
