"""A minimum cut against all placements there are."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.cut import least_cut

NAMES = "abcdef"
TIMES = st.integers(0, 20).map(float)


def cost(costs, values, first) -> float:
    """What a placement costs."""
    whole = sum(pair[0] if name in first else pair[1] for name, pair in costs.items())
    for giver, readers, to_first, to_second in values:
        own = giver in first
        whole += to_first if not own and any(name in first for name in readers) else 0
        whole += to_second if own and any(name not in first for name in readers) else 0
    return whole


@st.composite
def networks(draw):
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    costs = {name: (draw(st.one_of(TIMES, st.just(inf))), draw(TIMES)) for name in names}
    readers = st.lists(st.sampled_from(names), min_size=1, unique=True)
    giver = st.one_of(st.none(), st.sampled_from(names))
    return costs, draw(st.lists(st.tuples(giver, readers, TIMES, TIMES), max_size=6))


@given(networks())
def test_no_placement_is_cheaper(network):
    costs, values = network
    best = min(
        cost(costs, values, {n for n, side in zip(costs, sides, strict=True) if side})
        for sides in product((True, False), repeat=len(costs))
    )
    assert cost(costs, values, least_cut(costs, values)) == pytest.approx(best)


def test_a_transfer_counts_once_for_all_that_read_it():
    """Two readers on the first side win 3 each and share a transfer of 5."""
    costs = {"a": (1.0, 4.0), "b": (1.0, 4.0)}
    assert least_cut(costs, [(None, ["a", "b"], 5.0, 5.0)]) == {"a", "b"}
    assert least_cut(costs, [(None, ["a", "b"], 7.0, 7.0)]) == set()
