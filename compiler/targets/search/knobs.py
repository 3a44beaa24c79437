"""Knobs that a schedule function declares: a factor of a split, one of some alternatives, a number.

    def schedule(s, knobs):
        yo, yi = knobs.split("rows", s[C], s[C].axis[0])             # every divisor
        order = knobs.choice("order", {"rows": (yo, x), "columns": (x, yo)})
        if knobs.knob("unrolled", [False, True]):
            s[C].unroll(yi)

Whoever calls the function says which value each knob has: a user, by name, or a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeVar

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.tir.ir import Var
from vdla.support.errors import UserError
from vdla.support.numbers import ceil_div

Value = object  # plain JSON: a number, a text, a truth value, None, or a list of such
Sizes = tuple[int, ...]
Choice = TypeVar("Choice")


class KnobError(UserError):
    """A knob that isn't declared as one can be, or whose value isn't one of its values."""


class Knobs:
    """Knobs of one call of a schedule function, with a value for each: ``Knobs(rows=8)``.

    A knob is declared once per call. Its values may depend on those of knobs before it, and
    whether it is declared at all.
    """

    def __init__(self, /, **values: Value) -> None:
        self.given = {name: plain(value) for name, value in values.items()}
        self.values: dict[str, Value] = {}

    def knob(self, name: str, values: Iterable[Choice]) -> Choice:
        """One of some numbers, texts or truth values.

        Raises:
            KnobError: the name isn't new, a value isn't plain, or the given one isn't among them.
            ScheduleError: there are no values.
        """
        listed = list(values)
        return listed[self._turned(name, listed)]

    def choice(self, name: str, alternatives: Sequence[Choice] | Mapping[str, Choice]) -> Choice:
        """One of some alternatives of any kind: loops in an order, functions to call.

        Its value is the alternative's key, or its position in a list.

        Raises:
            KnobError, ScheduleError: as ``knob``.
        """
        if isinstance(alternatives, Mapping):
            keys = list(alternatives)
            return alternatives[keys[self._turned(name, keys)]]
        return alternatives[self._turned(name, list(range(len(alternatives))))]

    def split(
        self,
        name: str,
        stage: Stage,
        axis: Var,
        *,
        parts: int = 2,
        factors: Iterable[int | Sizes] | None = None,
        filter: Callable[[Sizes], bool] | None = None,
    ) -> tuple[Var, ...]:
        """A loop split into ``parts`` loops, the outermost first.

        Its value is the extent of the inner loop; with more than two parts, the list of all but the
        outermost.

        Args:
            name: the knob's.
            stage: the stage that has the loop.
            axis: the loop.
            parts: how many loops it becomes, two at least.
            factors: values; by default all whose product divides the extent.
            filter: whether the extents of all parts, the outermost first, are to be tried.

        Raises:
            KnobError, ScheduleError: as ``knob``; or the loop can't be split so.
        """
        if parts < 2:
            raise KnobError(f"knob {name}: expected 2 parts or more, found {parts}")
        extent = stage.extent(axis)
        inner = [_sizes(each) for each in factors] if factors else divisors(extent, parts - 1)
        for sizes in inner:
            if len(sizes) != parts - 1:
                raise KnobError(f"knob {name}: expected {parts - 1} factors, found {list(sizes)}")
        if filter is not None:
            inner = [each for each in inner if filter((ceil_div(extent, prod(each)), *each))]
        listed: list[Value] = [each[0] if parts == 2 else list(each) for each in inner]
        chosen = inner[self._turned(name, listed)]
        loops: list[Var] = []
        for factor in reversed(chosen):
            axis, part = stage.split(axis, factor=factor)
            loops.insert(0, part)
        return (axis, *loops)

    def _turned(self, name: str, values: Sequence[Value]) -> int:
        """Declares a knob; the position of the value that it has."""
        if not isinstance(name, str) or not name:
            raise KnobError(f"knob: expected a name, found {name!r}")
        if name in self.values:
            raise KnobError(
                f"knob {name}: expected a name of its own, found a second knob of it; an object of "
                "knobs is for one call of a schedule function"
            )
        listed = [plain(value) for value in values]
        if not listed:
            raise ScheduleError(f"knob {name}: expected one value or more, found none")
        position = self._position(name, listed)
        self.values[name] = listed[position]
        return position

    def _position(self, name: str, values: Sequence[Value]) -> int:
        """The position of the value that was given for a knob."""
        known = ", ".join(map(str, values))
        if name not in self.given:
            raise KnobError(f"knob {name}: expected one of {known}, found none")
        if self.given[name] not in values:
            raise KnobError(f"knob {name}: expected one of {known}, found {self.given[name]}")
        return values.index(self.given[name])


def plain(value: object) -> Value:
    """A knob's value as a record keeps it: tuples become lists.

    Raises:
        KnobError: it is something else than numbers, texts, truth values, None and lists of them.
    """
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise KnobError(
        f"knob: expected a number, a text, True, False or None, found {value!r}; "
        "knobs.choice takes values of any kind"
    )


def divisors(extent: int, count: int) -> list[Sizes]:
    """All ``count`` numbers whose product divides an extent, in order."""
    each = [n for n in range(1, extent + 1) if extent % n == 0]
    return [sizes for sizes in product(each, repeat=count) if extent % prod(sizes) == 0]


def _sizes(value: int | Sizes) -> Sizes:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
