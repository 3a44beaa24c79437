"""Schedules in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.schedule_words import schedule_words
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import ConvTile
from vdla.compiler.targets.accelerator.operators.custom import UserTile
from vdla.compiler.targets.accelerator.operators.pool import PoolTile
from vdla.compiler.targets.accelerator.operators.template import Tile, tile_text


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        (ConvTile(1, 4, 8, 1, 1, 2, True, "wgt", 16),
         "4 × 8 pixels, 1 output block, 1 input block, 2 threads, parameters stay on chip, "
         "weights stationary, 16 stages"),
        (ConvTile(4, 4, 4, 2, 2, 1, False),
         "4 × 4 pixels, 4 output blocks, 2 input blocks, weights of 2 blocks at a time, 1 thread"),
        (ConvTile(1, 1, 1, 1, 1, 2, False, "inp", 2),
         "1 × 1 pixels, 1 output block, 1 input block, 2 threads, image stationary, 2 stages"),
        (PoolTile(1, 2, 4, 2, "y"), "2 × 4 pixels, 1 block, 2 threads, threads share rows"),
        (PoolTile(1, 2, 4, 1, "c", 3), "2 × 4 pixels, 1 block, 1 thread, 3 rows of the window at "
         "a time"),
        (UserTile(), "the user's"),
    ],
)  # fmt: skip
def test_a_schedule_in_words(tile, words):
    assert schedule_words(tile_text(tile)) == words


def test_every_knob_has_words():
    kinds, todo = set(), [Tile]
    while todo:
        kind = todo.pop()
        kinds.add(kind)
        todo += kind.__subclasses__()
    names = {name for kind in kinds for name in getattr(kind, "__dataclass_fields__", {})}
    assert len(names) > 8
    for name in names:
        assert "=" not in schedule_words(f"{name}=3")
        assert f"{name} 3" not in schedule_words(f"{name}=3") or name == "vthreads", name


@given(st.text())
def test_any_text_of_a_module_is_shown(text):
    assert isinstance(schedule_words(text), str)
    if "=" not in text:
        assert schedule_words(text) == text
