"""Loops around an operator's tiles: the entries that they touch, move and repeat.

A template declares the loops that its schedule makes around a tile, outermost first, and inside how
many of them each tensor crosses the port. All sizes follow from that and from the indices of its
expression (``access.py``); ``search/test_tile_features.py`` of this target's tests holds them
against the lowered streams.

    nest  := loop … issue …
    loop  := level axis size           cuts what is left of an axis into portions of ``size``
    level := "tile" | "step" | "part"  a tile of the output, a step of its reduction, a part of that
    issue := role inside count tensor  instructions, once per iteration of the ``inside`` outermost
                                       loops; they move a tensor, or compute

Lowering a candidate to read this off its loops takes half a second, and a search looks at
thousands. So sizes may be columns, with one entry per candidate: a nest then describes all
candidates that make the same loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.operators.access import (
    Accesses,
    Index,
    Portions,
    Size,
    extent,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Var

Floats = NDArray[np.float64]
Columns = dict[str, Size]  # by name, a number or one for each candidate
_Cut = tuple[list[Portions], NDArray[np.int64]]  # and which of them each candidate has
LEVELS = ("tile", "step", "part")
OPERANDS = ("inp", "wgt")  # the roles of what an operation waits for


@dataclass(frozen=True)
class Loop:
    """A loop over portions of ``size`` of what the loops around it leave of an axis."""

    level: str
    axis: Var
    size: Size = 1


@dataclass(frozen=True)
class Issue:
    """``count`` instructions per iteration of the ``inside`` outermost loops.

    They move what the loops further in need of a ``tensor``; without one they compute. Those of one
    ``role`` are counted together.
    """

    role: str
    inside: int
    count: Size = 1
    tensor: Tensor | None = None


class Nest:
    """The loops around the tiles of an expression, and all that follows from them.

    ``indices`` are the ``accesses`` of its result ``out``.
    """

    def __init__(
        self, out: Tensor, indices: Accesses, loops: Sequence[Loop], issues: Sequence[Issue]
    ) -> None:
        self.out, self.indices, self.loops, self.issues = out, indices, loops, issues
        self._portions: dict[tuple[Index, int], _Cut] = {}

    @cached_property
    def ops(self) -> int:
        """Multiply-adds, or operations of the ALU where there are none: iterations of all axes."""
        axes = {axis for each in self.indices.values() for index in each for axis in index.axes}
        return prod(map(extent, axes))

    def inside(self, level: str) -> int:
        """Number of loops down to a level."""
        outer = LEVELS[: LEVELS.index(level) + 1]
        return sum(loop.level in outer for loop in self.loops)

    def tensor(self, role: str) -> Tensor:
        """The first that is moved in a role."""
        return self._moves[role][0][0]

    def spans(self, tensor: Tensor, inside: int) -> tuple[Size, ...]:
        """By dimension, a tensor's entries under a full portion of so many loops, with padding."""
        sizes = {loop.axis: loop.size for loop in self.loops[:inside]}
        return tuple(index.span(sizes) for index in self.indices[tensor])

    def held(self, tensor: Tensor, inside: int) -> Size:
        """Elements of a tensor that a buffer holds for a full portion of so many loops."""
        return prod(self.spans(tensor, inside))

    def tiles(self, axis: Var) -> Size:
        """Tiles along an axis."""
        loop = next(i for i, loop in enumerate(self.loops) if loop.axis == axis)
        return self._trips(loop + 1, without={each.axis for each in self.loops} - {axis})

    @cached_property
    def trips(self) -> Columns:
        """Iterations of each level in all."""
        return {level: self._trips(self.inside(level)) for level in LEVELS}

    @cached_property
    def touched(self) -> dict[str, Columns]:
        """By role, the bytes of the layer, and of one iteration of each level that cuts it."""
        return {
            role: {level: self.portion(role, level) for level in self._cuts(role)}
            for role in self._moves
        }

    def portion(self, role: str, level: str) -> Size:
        """Bytes of a role that one iteration of a level, or the "layer", touches."""
        inside = self._cuts(role)[level]
        return sum(self._bytes(tensor, inside, _most) for tensor, _ in self._moves[role])

    @cached_property
    def moved(self) -> Columns:
        """By role, the bytes that cross the port in all."""
        groups = self._moves.items()
        return {role: sum(self._moved(*each) for each in group) for role, group in groups}

    @cached_property
    def commands(self) -> Columns:
        """By role, instructions in all."""
        result: Columns = {}
        for each in self.issues:
            count = self._trips(each.inside) * each.count
            result[each.role] = result.get(each.role, 0) + count
        return result

    @cached_property
    def ends(self) -> Size:
        """The bytes that nothing hides: what the first operation waits for, and what is stored
        after the last."""
        inside = len(self.loops)
        operands = [tensor for role in OPERANDS for tensor, _ in self._moves.get(role, ())]
        waits = sum(self._bytes(tensor, inside, _first) for tensor in operands)
        return waits + self._bytes(self.out, inside, _last)

    # How ------------------------------------------------------------------------------------------

    @cached_property
    def _moves(self) -> dict[str, list[tuple[Tensor, int]]]:
        """By role, the tensors that are moved, and inside how many loops."""
        result: dict[str, list[tuple[Tensor, int]]] = {}
        for each in self.issues:
            if each.tensor is not None:
                result.setdefault(each.role, []).append((each.tensor, each.inside))
        return result

    def _cuts(self, role: str) -> dict[str, int]:
        """Inside how many loops each level lies that cuts what is moved in a role."""
        axes = {axis for tensor, _ in self._moves[role] for axis in self._axes(tensor)}
        levels = (loop.level for loop in self.loops if loop.axis in axes)
        return {"layer": 0, **{level: self.inside(level) for level in levels}}

    def _trips(self, inside: int, without: Iterable[Var] = ()) -> Size:
        """Iterations of the outermost loops, but for those over some axes."""
        left: dict[Var, Size] = {}
        trips: Size = 1
        for loop in self.loops[:inside]:
            if loop.axis not in without:
                trips = trips * -(-left.get(loop.axis, extent(loop.axis)) // loop.size)
                left[loop.axis] = loop.size
        return trips

    def _axes(self, tensor: Tensor) -> set[Var]:
        """Axes that a tensor's indices depend on."""
        return {axis for index in self.indices[tensor] for axis in index.axes}

    def _moved(self, tensor: Tensor, inside: int) -> Size:
        again = self._trips(inside, without=self._axes(tensor))
        return again * self._bytes(tensor, inside, _total)

    def _bytes(self, tensor: Tensor, inside: int, what: Callable[[Portions], int]) -> Size:
        """Bytes of a tensor, a product over its dimensions."""
        size = np.dtype(tensor.dtype).itemsize
        return prod((self._entries(i, inside, what) for i in self.indices[tensor]), start=size)

    def _entries(self, index: Index, inside: int, what: Callable[[Portions], int]) -> Size:
        """Entries of one dimension, with its axes cut by the outermost loops."""
        around = tuple(loop for loop in self.loops[:inside] if loop.axis in index.axes)
        if not around:
            return what(index.portions({}))
        key = index, len(around)
        if key not in self._portions:
            self._portions[key] = _cut(index, around)
        portions, where = self._portions[key]
        return np.array([what(each) for each in portions], np.float64)[where]


def _cut(index: Index, around: Sequence[Loop]) -> _Cut:
    """Portions that the loops around it cut a dimension into: each way once, and which one is
    whose.
    """
    sizes = {loop.axis: loop.size for loop in around}
    rows = np.stack(np.broadcast_arrays(*map(np.atleast_1d, sizes.values())))
    keys = np.ravel_multi_index(tuple(rows), tuple(rows.max(axis=1) + 1))
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    different = rows[:, first].T.tolist()
    return [index.portions(dict(zip(sizes, row, strict=True))) for row in different], where


def _most(portions: Portions) -> int:
    return portions.most


def _first(portions: Portions) -> int:
    return portions.first


def _last(portions: Portions) -> int:
    return portions.last


def _total(portions: Portions) -> int:
    return portions.total
