"""Places that an expression reads and writes: the indices of its tensors, in terms of its own axes.

One dimension of a tensor is read at

    index := offset + stride * ((base + step * axis + step * axis + …) // places)

The sum in brackets is where the expression's reduction looks; a LOAD brings everything between the
first and the last such place. Where a stage that only copies has an axis for a window's taps beside
one for its places, the taps are ``apart``: each of them has loads of its own. Outside the brackets
is what lies between the reduction and memory: padding moves a tensor by ``offset``, and only every
``stride``-th of its entries is loaded at all. Of a tensor whose entries hold several ``places``
each, as bytes hold nibbles, it loads whole ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from numpy.typing import NDArray

from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import IterVar
from vdla.compiler.tir.arith import affine
from vdla.compiler.tir.ir import Binary, Const, Expr, Load, Var
from vdla.compiler.tir.visitor import loads

Size = float | NDArray[Any]  # a number, or a column with one for each candidate
Sizes = Mapping[Var, int]  # of the portion that an axis is cut into; all of it where it isn't there


class AccessError(Exception):
    """An expression whose indices have another form; its template is a bug."""


@dataclass(frozen=True)
class Portions:
    """Shares of a dimension's entries that fall on the portions that its axes are cut into.

    Entries count that lie in the tensor, not what is padded: ``most`` in any portion, ``first`` in
    the first, ``last`` in the last, ``total`` in all of them, one after the other.
    """

    most: int
    first: int
    last: int
    total: int


@dataclass(frozen=True)
class Index:
    """One dimension of a tensor of ``size`` entries; see the grammar above."""

    size: int
    terms: tuple[tuple[Var, int], ...]  # axes and their steps
    base: int = 0
    stride: int = 1
    offset: int = 0
    places: int = 1
    apart: tuple[tuple[Var, int], ...] = ()  # axes of taps and their steps

    @property
    def axes(self) -> tuple[Var, ...]:
        """Axes that it depends on, but those of taps apart, whose portions are all of them."""
        return tuple(axis for axis, _ in self.terms)

    def portions(self, sizes: Sizes) -> Portions:
        """Entries that portions of some sizes read, one after the other in the order of
        the axes.
        """
        cuts = [list(_cut(axis, sizes)) for axis in self.axes]
        result = [self._inside(each) for each in product(*cuts)]
        return Portions(max(result), result[0], result[-1], sum(result))

    def span(self, sizes: Mapping[Var, Size]) -> Size:
        """Entries under a full portion, with the padding; sizes may be columns."""
        span = 1 + sum(step * (sizes.get(axis, extent(axis)) - 1) for axis, step in self.terms)
        span = span * prod(sizes.get(axis, extent(axis)) for axis, _ in self.apart)
        return span if self.places == 1 else -(-span // self.places)

    def _inside(self, portion: Sequence[range]) -> int:
        """Entries of the tensor between the first and the last that some iterations look at, at all
        taps that are apart."""
        taps = product(*(range(extent(axis)) for axis, _ in self.apart))
        bases = (sum(s * k for (_, s), k in zip(self.apart, tap, strict=True)) for tap in taps)
        return sum(self._from(self.base + base, portion) for base in bases)

    def _from(self, base: int, portion: Sequence[range]) -> int:
        steps = [step for _, step in self.terms]
        low = base + sum(s * at.start for s, at in zip(steps, portion, strict=True))
        high = 1 + base + sum(s * at[-1] for s, at in zip(steps, portion, strict=True))
        low, high = low // self.places, -(-high // self.places)
        first = max(low, -(self.offset // self.stride))
        end = min(high, -((self.offset - self.size) // self.stride))
        return max(end - first, 0)


def _cut(axis: Var, sizes: Sizes) -> Iterator[range]:
    end = extent(axis)
    size = sizes.get(axis, end)
    for first in range(0, end, size):
        yield range(first, min(first + size, end))


def extent(axis: Var) -> int:
    """Number of entries of an expression's axis."""
    assert isinstance(axis, IterVar)
    return axis.extent


Accesses = Mapping[Tensor, tuple[Index, ...]]


def accesses(out: Tensor) -> Accesses:
    """The indices at which ``out`` is written, and those of every placeholder behind it, but for
    tables: where these are read, their data say.

    Raises:
        AccessError: an index isn't of the form above, or a placeholder is read at several.
    """
    own = tuple(Index(n, ((axis, 1),)) for n, axis in zip(out.shape, out.axis, strict=True))
    result = {out: own}
    for tensor, indices in _behind(out, own):
        if result.setdefault(tensor, indices) != indices:
            raise AccessError(f"{tensor.name}: expected one place that it is read at, found two")
    return result


def _behind(tensor: Tensor, at: tuple[Index, ...]) -> Iterator[tuple[Tensor, tuple[Index, ...]]]:
    """Each placeholder that a tensor's elements ``at`` some indices are computed from."""
    if tensor.op is None:
        yield tensor, at
        return
    op = tensor.compute_op
    places: dict[Var, Index] = dict(zip(op.axis, at, strict=True))
    sources = op.body if op.reduce is None else (*op.reduce.init, *op.reduce.source)
    for load in (load for expr in sources for load in loads(expr)):
        assert isinstance(load.buffer, Tensor)
        if any(True for index in load.indices for _ in loads(index)):
            continue
        sizes = zip(load.indices, load.buffer.shape, strict=True)
        copied = op.axis if isinstance(op.body[0], Load) else ()
        indices = tuple(_index(e, size, places, copied) for e, size in sizes)
        yield from _behind(load.buffer, indices)


def _index(expr: Expr, size: int, places: Mapping[Var, Index], copied: Sequence[Var] = ()) -> Index:
    """An index of a stage's body, with the stage's own axes replaced by what they stand for; of
    several axes of a stage that copies, ``copied``, all but the last are of taps."""
    if isinstance(expr, Binary) and expr.op == "floordiv" and isinstance(expr.b, Const):
        whole = _index(expr.a, size, places)
        if whole.stride != 1 or whole.offset or whole.places != 1:
            raise AccessError(f"expected an index of whole entries, found {expr}")
        return replace(whole, places=int(expr.b.value))
    form = affine(expr)
    if form is None:
        raise AccessError(f"expected an index that is affine in the axes, found {expr}")
    constant, terms = form
    if len(terms) == 1 and (axis := next(iter(terms))) in places:
        inner, step = places[axis], terms[axis]
        offset = constant + step * inner.offset
        return replace(inner, size=size, stride=step * inner.stride, offset=offset)
    parts = [(step, places.get(axis, Index(0, ((axis, 1),)))) for axis, step in terms.items()]
    if any(each.stride != 1 or each.places != 1 for _, each in parts):
        raise AccessError(f"expected an index with one stride, found {expr}")
    taps = [axis for axis in copied if axis in terms][:-1]
    merged: dict[Var, int] = {}
    apart: dict[Var, int] = {}
    for axis, (step, each) in zip(terms, parts, strict=True):
        into = apart if axis in taps else merged
        for own, by in each.terms:
            into[own] = into.get(own, 0) + step * by
    base = constant + sum(step * (each.base + each.offset) for step, each in parts)
    return Index(size, tuple(merged.items()), base, apart=tuple(apart.items()))
