"""Index maps of loop nests: which ones go to another element in every iteration."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.tir.injective import injective, stores_once
from vdla.compiler.tir.ir import Store, Var
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.visitor import walk

I, J, F = (Var(name, "int32") for name in "ijf")


@pytest.mark.parametrize(
    ("index", "extents", "known"),
    [
        (I * 4 + J, {I: 3, J: 4}, True),
        (I * 4 + J, {I: 3, J: 5}, False),  # two iterations meet
        (I * 5 + J, {I: 3, J: 4}, True),  # with gaps
        (I, {I: 3, J: 2}, False),  # a loop that changes nothing
        (I, {I: 3, J: 1}, True),
        (7 - I, {I: 3}, True),
        (F // 4 * 10 + F % 4, {F: 12}, True),  # a fused variable, taken apart
        (F % 4 * 10 + F // 4, {F: 12}, True),
        (F // 4, {F: 12}, False),
        (F % 4, {F: 12}, False),
        (F // 2 // 3 * 20 + F // 2 % 3 * 6 + F % 2, {F: 12}, True),
        (F // 5 * 10 + F % 5, {F: 12}, False),  # 5 doesn't divide 12: not known
    ],
)
def test_maps(index, extents, known):
    assert injective(index, extents) is known


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=2), st.integers(1, 5), st.integers(1, 12),
       st.sampled_from([1, 2, 3, 4]))  # fmt: skip
def test_what_is_known_holds(coefficients, extent, fused, divisor):
    """Every map that is said to be injective takes each value once."""
    a, b = coefficients
    index = I * a + F // divisor * b + F % divisor
    if injective(index, {I: extent, F: fused}):
        values = [
            i * a + f // divisor * b + f % divisor for i, f in product(range(extent), range(fused))
        ]
        assert len(set(values)) == len(values)


def program(index, extent=4):
    """A copy of four numbers that stores to ``index``."""
    func = parse(
        f"""func f(a: int32[4], y: int32[4]):
    for i in {extent}:
        y[{index}] = a[i % 4]
"""
    )
    (store,) = (stmt for stmt in walk(func.body) if isinstance(stmt, Store))
    return func, store


def test_a_store():
    for index, extent, known in (("3 - i", 4, True), ("min(i, 2)", 4, False), ("i % 4", 8, False)):
        func, store = program(index, extent)
        assert stores_once(func.body, store) is known


def test_a_store_of_another_function():
    with pytest.raises(ValueError, match="expected a store in the body, found one to y elsewhere"):
        stores_once(program("i")[0].body, program("i")[1])
