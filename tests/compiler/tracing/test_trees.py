"""Nested values flatten and come back."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.tracing.trees import flatten

Pair = namedtuple("Pair", ["a", "b"])


@dataclass
class State:
    """A dataclass."""

    h: object
    c: object


KEYS = st.text("abc", min_size=1, max_size=2)
TREES = st.recursive(
    st.integers() | st.none(),
    lambda part: (
        st.lists(part, max_size=3)
        | st.lists(part, max_size=3).map(tuple)
        | st.dictionaries(KEYS, part, max_size=3)
        | st.builds(Pair, part, part)
        | st.builds(State, part, part)
    ),
    max_leaves=8,
)


@given(TREES)
def test_it_comes_back(tree):
    leaves, structure = flatten(tree)
    assert structure.build(leaves) == tree
    assert len(list(structure.paths())) == len(leaves)
    assert flatten(structure.build(leaves)) == (leaves, structure)
    assert hash(structure) == hash(flatten(tree)[1])


def test_a_dict_is_ordered_by_its_keys():
    assert flatten({"b": 1, "a": 2}) == flatten({"a": 2, "b": 1})


@pytest.mark.parametrize(
    ("tree", "text", "paths"),
    [
        (3, "·", ["x"]),
        ((1, [2, None]), "(·, [·, None])", ["x[0]", "x[1][0]"]),
        ({"k": Pair(1, 2)}, "dict(k=Pair(a=·, b=·))", ["x['k'].a", "x['k'].b"]),
        (State(1, ()), "State(h=·, c=())", ["x.h"]),
    ],
)
def test_people_read_it(tree, text, paths):
    structure = flatten(tree)[1]
    assert str(structure) == text
    assert list(structure.paths("x")) == paths
