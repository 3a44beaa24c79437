"""Every pair of values is in some combination that isn't long."""

from __future__ import annotations

import pytest
from combinations import by_pairs, crossed, pairs
from hypothesis import given
from hypothesis import strategies as st


def pairs_of(rows):
    return {pair for row in rows for pair in pairs(row)}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_every_pair_is_quick_once_at_least(sizes):
    axes = [[f"{axis}{place}" for place in range(size)] for axis, size in enumerate(sizes)]
    rows = crossed(*axes)
    every = {row.values for row in rows}
    quick = [row.values for row in rows if not row.marks]
    assert len(rows) == len(every)
    assert {pair for row in every for pair in pairs(row)} == {
        p for row in quick for p in pairs(row)
    }


def test_few_combinations_have_every_pair():
    axes = [range(2)] * 3
    assert len(by_pairs(axes)) == 4
    assert len(crossed(*axes)) == 8


def test_values_need_no_order_and_no_hash():
    rows = crossed([[1], {}], [None])
    assert [row.values for row in rows] == [([1], None), ({}, None)]
    assert not any(pytest.mark.long in row.marks for row in rows)
