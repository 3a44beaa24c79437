"""Combinations of parameters that tests are given: those of ``make test`` have every pair of values
at least once, as what fails mostly fails where two things cross; all others are long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import pytest

Row = tuple[Any, ...]


def crossed(*axes: Sequence[Any]) -> list[Any]:
    """Every combination of a value of each axis, as pytest's parameters."""
    places = [range(len(axis)) for axis in axes]
    quick = set(by_pairs(places))
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(axes, row, strict=True)),
            marks=() if row in quick else pytest.mark.long,
        )
        for row in product(*places)
    ]


def by_pairs(axes: Sequence[Iterable[Any]]) -> list[Row]:
    """Some combinations with every pair of values of two axes: in each step the first that has the
    most pairs that none before has."""
    rows = list(product(*axes))
    left = {pair for row in rows for pair in pairs(row)}
    result = []
    while left:
        best = max(rows, key=lambda row: len(left.intersection(pairs(row))))
        result.append(best)
        left.difference_update(pairs(best))
    return result


def pairs(row: Row) -> Iterator[tuple[Any, ...]]:
    """The pairs of a combination's values, with their axes; of a single axis, its value."""
    return combinations(enumerate(row), min(2, len(row)))
