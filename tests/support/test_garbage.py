"""How often Python looks for cycles of garbage."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from vdla.support.garbage import RARELY, rare_collection


@pytest.mark.parametrize("before", [(700, 10, 5), (RARELY + 1, 3, 4), (0, 10, 10)], ids=str)
def test_the_threshold_comes_back(before):
    usual = gc.get_threshold()
    gc.set_threshold(*before)
    try:
        with rare_collection():
            assert gc.get_threshold()[0] == (max(before[0], RARELY) if before[0] else 0)
            assert gc.get_threshold()[1:] == before[1:]
        assert gc.get_threshold() == before
        with suppress(KeyError), rare_collection():
            raise KeyError
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*usual)
