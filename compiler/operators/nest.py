"""What the loops around an operator's tiles touch, move and repeat.

A template declares the loops that its schedule makes around a tile, outermost first, and inside how
many of them each tensor crosses the port. All sizes follow from that and from the indices of its
expression (``access.py``); ``tests/compiler/tune/test_features.py`` holds them against the lowered
streams.

    nest     := loop … transfer … work …
    loop     := level axis size              cuts what is left of an axis into portions of ``size``
    level    := "tile" | "step" | "part"     a tile of the output, a step of its reduction, a part
                                             of the step
    transfer := role tensor inside commands  once per iteration of the ``inside`` outermost loops
    work     := role inside commands         the same, of instructions that move nothing

Lowering a candidate to read this off its loops takes half a second, and a search looks at
thousands. So sizes may be columns, with one entry per candidate: a nest then describes all
candidates that make the same loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.operators.access import Index, Portions, accesses
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import IterVar
from vdla.compiler.tir.ir import Var

Floats = NDArray[np.float64]
Columns = dict[str, Any]  # by name, a number or one for each candidate
Size = Any  # a number, or one for each candidate
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
class Transfer:
    """A tensor that crosses the port once per iteration of the ``inside`` outermost loops.

    Tensors of one ``role`` are counted together; ``commands`` are the instructions of one transfer.
    """

    role: str
    tensor: Tensor
    inside: int
    commands: Size = 1


@dataclass(frozen=True)
class Work:
    """Instructions of COMPUTE per iteration of the ``inside`` outermost loops."""

    role: str
    inside: int
    commands: Size = 1


class Nest:
    """The loops around the tiles of an expression ``out``, and all that follows from them."""

    def __init__(
        self,
        out: Tensor,
        loops: Sequence[Loop],
        transfers: Sequence[Transfer],
        work: Sequence[Work],
    ) -> None:
        self.out, self.loops, self.transfers, self.work = out, loops, transfers, work
        self.indices = accesses(out)
        self._portions: dict[tuple[Index, int], _Cut] = {}

    @cached_property
    def ops(self) -> int:
        """Multiply-adds, or operations of the ALU where there are none: iterations of all axes."""
        axes = {axis for each in self.indices.values() for index in each for axis in index.axes}
        return prod(axis.extent for axis in axes if isinstance(axis, IterVar))

    @cached_property
    def trips(self) -> Columns:
        """Iterations of each level in all."""
        return {level: self._trips(self._inside(level)) for level in LEVELS}

    @cached_property
    def touched(self) -> dict[str, Columns]:
        """By role, the bytes of the layer, and of one iteration of each level that cuts it."""
        found: dict[str, Columns] = {}
        for role, group in self._roles.items():
            levels = {"layer": 0, **{each: self._inside(each) for each in LEVELS}}
            axes = {axis for t in group for index in self._of(t) for axis in index.axes}
            cut = {loop.level for loop in self.loops if loop.axis in axes}
            found[role] = {
                level: sum(self._bytes(t, inside, _most) for t in group)
                for level, inside in levels.items()
                if level == "layer" or level in cut
            }
        return found

    @cached_property
    def moved(self) -> Columns:
        """By role, the bytes that cross the port in all."""
        return {role: sum(map(self._moved, group)) for role, group in self._roles.items()}

    @cached_property
    def commands(self) -> Columns:
        """By role, instructions in all."""
        found: Columns = {}
        for each in (*self.transfers, *self.work):
            count = self._trips(each.inside) * each.commands
            found[each.role] = found.get(each.role, 0) + count
        return found

    @cached_property
    def ends(self) -> Size:
        """The bytes that nothing hides: what the first operation waits for, and what is stored
        after the last."""
        inside = len(self.loops)
        first = (t for role in OPERANDS for t in self._roles.get(role, ()))
        last = self._roles["out"]
        return sum(self._bytes(t, inside, _first) for t in first) + sum(
            self._bytes(t, inside, _last) for t in last
        )

    # How ------------------------------------------------------------------------------------------

    @cached_property
    def _roles(self) -> dict[str, list[Transfer]]:
        roles = dict.fromkeys(t.role for t in self.transfers)
        return {role: [t for t in self.transfers if t.role == role] for role in roles}

    def _inside(self, level: str) -> int:
        """How many loops there are down to a level."""
        outer = LEVELS[: LEVELS.index(level) + 1]
        return sum(loop.level in outer for loop in self.loops)

    def _trips(self, inside: int, without: Iterable[Var] = ()) -> Size:
        """Iterations of the outermost loops, but for those over some axes."""
        left: dict[Var, Size] = {}
        trips: Size = 1
        for loop in self.loops[:inside]:
            assert isinstance(loop.axis, IterVar)
            if loop.axis not in without:
                trips = trips * -(-left.get(loop.axis, loop.axis.extent) // loop.size)
                left[loop.axis] = loop.size
        return trips

    def _of(self, transfer: Transfer) -> tuple[Index, ...]:
        return self.indices[transfer.tensor]

    def _moved(self, transfer: Transfer) -> Size:
        axes = {axis for index in self._of(transfer) for axis in index.axes}
        again = self._trips(transfer.inside, without=axes)
        return again * self._bytes(transfer, transfer.inside, _total)

    def _bytes(self, transfer: Transfer, inside: int, what: Callable[[Portions], int]) -> Size:
        """Bytes of a tensor, a product over its dimensions."""
        size = np.dtype(transfer.tensor.dtype).itemsize
        return prod((self._entries(i, inside, what) for i in self._of(transfer)), start=size)

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
    """What the loops around it cut a dimension into: each way once, and which one is whose."""
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
