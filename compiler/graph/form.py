"""Layout of the elements of a tensor of any shape in an image [N, C, 1, W].

An axis is a product of **factors**: a sequence [1, 197, 192] with three heads has the axes (), (t,)
and (h, f), where t, h and f are factors of sizes 197, 3 and 64. The image's N, C and W are products
of the same factors: here (), (h, f) and (t,). Reshapes group factors anew, transpositions put the
axes in another order, and neither moves a byte of the image.

    Form   := axes places sizes
    axes   := factor*  for each axis of the tensor
    places := factor*  for each of N, C and W of the image
    sizes  := factor -> int > 1

Every factor is in one axis and in one place. Factors of an axis or place are in row-major order.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from math import gcd, prod
from typing import NamedTuple

from vdla.compiler.graph.types import Shape

Factors = tuple[int, ...]
_numbers = count()


class Places(NamedTuple):
    """The factors of an image's batch, channels and pixels."""

    batch: Factors
    channels: Factors
    pixels: Factors


class Order(NamedTuple):
    """The axes of a tensor that are an image's batch, channels and pixels."""

    batch: tuple[int, ...]
    channels: tuple[int, ...]
    pixels: tuple[int, ...]

    @property
    def perm(self) -> tuple[int, ...]:
        """All axes, as they follow one another in the image."""
        return (*self.batch, *self.channels, *self.pixels)


@dataclass(frozen=True)
class Form:
    """Layout of a tensor in an image; see the grammar above."""

    axes: tuple[Factors, ...]
    places: Places
    sizes: dict[int, int]

    @property
    def shape(self) -> Shape:
        """The tensor's shape."""
        return tuple(self.size(axis) for axis in self.axes)

    @property
    def image_shape(self) -> Shape:
        """The image's shape, [N, C, 1, W]."""
        batch, channels, pixels = map(self.size, self.places)
        return batch, channels, 1, pixels

    def size(self, factors: Factors) -> int:
        """The product of some factors."""
        return prod(self.sizes[factor] for factor in factors)

    @property
    def is_rows(self) -> bool:
        """Whether this is a matrix in one image, each of whose axes is a place."""
        batch, *places = self.places
        return not batch and len(self.axes) == len(places) and sorted(places) == sorted(self.axes)

    @property
    def flat(self) -> Places:
        """One image with the same channels, whose pixels follow one another as elements do."""
        channels = self.places.channels
        pixels = (factor for axis in self.axes for factor in axis if factor not in channels)
        return Places((), channels, tuple(pixels))

    def order(self) -> Order | None:
        """The axes of the tensor in each place; None where a place has a part of an axis."""
        places, rest = list[tuple[int, ...]](), [n for n, axis in enumerate(self.axes) if axis]
        for place in self.places:
            some = list[int]()
            while place:
                axis = next((n for n in rest if place[: len(self.axes[n])] == self.axes[n]), None)
                if axis is None:
                    return None
                some.append(axis)
                rest.remove(axis)
                place = place[len(self.axes[axis]) :]
            places.append(tuple(some))
        ones = tuple(n for n, axis in enumerate(self.axes) if not axis)
        return Order((*ones, *places[0]), places[1], places[2])

    def placed(self, order: Order) -> Places:
        """The factors that an order of the axes would have in each place."""
        return Places(*(tuple(f for axis in some for f in self.axes[axis]) for some in order))

    def transposed(self, perm: Sequence[int]) -> Form:
        """The form of the tensor with its axes in another order."""
        return Form(tuple(self.axes[axis] for axis in perm), self.places, self.sizes)

    def reshaped(self, shape: Shape) -> Form | None:
        """The form of the tensor under another shape; None where a factor can't be split for it."""
        form, axes = self, list[Factors]()
        rest = [factor for axis in self.axes for factor in axis]
        for size in shape:
            axis: list[int] = []
            while size > 1:
                if not rest:
                    return None
                factor = rest.pop(0)
                whole = form.sizes[factor]
                if size % whole:  # the axis ends within the factor
                    if whole % size or gcd(whole, size) != size:
                        return None
                    first, second = next(_numbers), next(_numbers)
                    form = form.split(factor, {first: size, second: whole // size})
                    rest.insert(0, second)
                    factor, whole = first, size
                axis.append(factor)
                size //= whole
            axes.append(tuple(axis))
        return None if rest else Form(tuple(axes), form.places, form.sizes)

    def resized(self, axis: int, size: int) -> Form:
        """The form with an axis of another size, which stays where it was in its place."""
        before, factor = self.axes[axis], next(_numbers)
        after = (factor,) if size > 1 else ()
        places = list[Factors]()
        for place in self.places:
            first = _position(before, place) if before else None
            end = 0 if first is None else first + len(before)
            places.append(place if first is None else (*place[:first], *after, *place[end:]))
        axes = (*self.axes[:axis], after, *self.axes[axis + 1 :])
        return Form(axes, Places(*places), {**self.sizes, factor: size})

    def taken(self, axis: int, table: Sequence[int]) -> tuple[int, list[int]] | None:
        """The place that has an axis, and what taking elements along the axis takes there; None
        where no place has all of the axis."""
        factors = self.axes[axis]
        for number, place in enumerate(self.places):
            first = _position(factors, place)
            if factors and first is not None:
                inner = self.size(place[first + len(factors) :])
                size, whole = self.size(factors), self.size(place)
                starts = range(0, whole, size * inner)
                return number, [
                    start + element * inner + n
                    for start in starts
                    for element in table
                    for n in range(inner)
                ]
        return None

    def split(self, factor: int, parts: dict[int, int]) -> Form:
        """The form in which a factor is the product of others."""
        sizes = {f: n for f, n in self.sizes.items() if f != factor} | parts

        def of(factors: Factors) -> Factors:
            return tuple(p for f in factors for p in (parts if f == factor else (f,)))

        return Form(tuple(map(of, self.axes)), Places(*map(of, self.places)), sizes)


def shared(some: Factors, others: Factors) -> Factors:
    """The factors that both begin with."""
    return tuple(a for a, _ in takewhile(lambda p: p[0] == p[1], zip(some, others, strict=False)))


def _position(factors: Factors, place: Factors) -> int | None:
    """Index in a place from which on factors stand one behind another; None where they don't."""
    count = len(factors)
    starts = range(len(place) - count + 1)
    return next((n for n in starts if place[n : n + count] == factors), None)


def form_of(shape: Shape, order: Order) -> Form:
    """The form of a tensor whose axes are a batch, channels and pixels in an order."""
    axes, sizes = list[Factors](), dict[int, int]()
    for size in shape:
        factor = next(_numbers)
        sizes |= {factor: size} if size > 1 else {}
        axes.append((factor,) if size > 1 else ())
    places = Places(*(tuple(f for axis in some for f in axes[axis]) for some in order))
    return Form(tuple(axes), places, sizes)


def nearest_order(images: Sequence[tuple[str, Form]], turned: Container[str]) -> Order | None:
    """The order, of those that tensors have in their images, for which the fewest images have yet
    to exchange channels and pixels; None where no tensor has one.

    Images go by name. Those in ``turned`` have a copy that has exchanged them.
    """
    orders = [order for _, form in images if (order := form.order()) is not None]

    def exchanges(order: Order) -> int:
        others = [image for image, form in images if form.placed(order) != form.places]
        return sum(image not in turned for image in others)

    return min(orders, key=exchanges, default=None)
