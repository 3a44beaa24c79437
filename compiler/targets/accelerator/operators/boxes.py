"""Boxes of the tensors behind a result: what a portion of that is computed from.

``access.py`` looks at placeholders, through all stages. Here each stage counts: operators that keep
what lies between their stages on chip have room for its box. The rule is that of ``compute_at``
(``tir/region.py``), for sizes that may be columns:

    stage[y, x] = … source[2 * y + ky - 1, x] …       3 rows of ``stage``, 3 of ky: 7 of ``source``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.targets.accelerator.operators.access import AccessError, Size, extent
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import producers
from vdla.compiler.tir.arith import affine
from vdla.compiler.tir.ir import Expr, Var
from vdla.compiler.tir.visitor import loads

Box = tuple[Size, ...]  # entries of each dimension


@dataclass(frozen=True)
class _Reach:
    """One dimension that a stage reads: entries from the first to the last one, of ``size``.

    They are ``first`` entries for one step of all axes, and further ones for each further step.
    """

    size: int
    first: int
    steps: tuple[tuple[Var, int], ...] = ()

    def entries(self, sizes: Mapping[Var, Size]) -> Size:
        """Entries for so many steps of each axis, within the tensor."""
        further = (step * (sizes.get(axis, extent(axis)) - 1) for axis, step in self.steps)
        return np.minimum(sum(further, start=self.first), self.size) if self.steps else self.first


class Boxes:
    """The boxes of all tensors that a result ``out`` is computed from.

    Raises:
        AccessError: several stages read one of them.
    """

    def __init__(self, out: Tensor) -> None:
        self.out = out
        self._reads: dict[Tensor, dict[Tensor, list[_Reach]]] = {}
        for stage in reversed(producers([out])):
            if stage.op is not None:
                self._reads[stage] = _reads(stage)
        read = [source for each in self._reads.values() for source in each]
        for source in read:
            if read.count(source) > 1:
                raise AccessError(f"{source.name}: expected one stage that reads it, found several")

    def under(self, sizes: Mapping[Var, Size]) -> dict[Tensor, Box]:
        """The box of each tensor for portions of some sizes of the axes of all stages, a whole one
        where there is no size; sizes may be columns."""
        result = {self.out: tuple(sizes.get(axis, extent(axis)) for axis in self.out.axis)}
        for stage, reads in self._reads.items():
            own: dict[Var, Size] = {**sizes}
            own.update(zip(stage.axis, result[stage], strict=True))
            for source, reach in reads.items():
                result[source] = tuple(each.entries(own) for each in reach)
        return result


def _reads(stage: Tensor) -> dict[Tensor, list[_Reach]]:
    """By tensor that a stage reads, what it reads of each dimension."""
    op = stage.compute_op
    sources = op.body if op.reduce is None else (*op.reduce.init, *op.reduce.source)
    places: dict[Tensor, list[tuple[Expr, ...]]] = {}
    for load in (load for expr in sources for load in loads(expr)):
        assert isinstance(load.buffer, Tensor)
        places.setdefault(load.buffer, []).append(load.indices)
    return {
        source: [
            _reach(at, size) for at, size in zip(zip(*all_, strict=True), source.shape, strict=True)
        ]
        for source, all_ in places.items()
    }


def _reach(indices: Sequence[Expr], size: int) -> _Reach:
    """Reach of some indices: all of a dimension where their distance isn't known."""
    forms = [form for index in indices if (form := affine(index)) is not None]
    constants, terms = [constant for constant, _ in forms], [terms for _, terms in forms]
    if len(forms) < len(indices) or any(each != terms[0] for each in terms):
        return _Reach(size, size)
    steps = tuple((axis, abs(step)) for axis, step in terms[0].items())
    return _Reach(size, 1 + max(constants) - min(constants), steps)
