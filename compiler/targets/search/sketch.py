"""A sketch: the steps of a schedule, some of whose arguments are still open (Ansor, OSDI'20).

    split  acc.x  factor=?          ? one of 1, 2, 7, 14
    unroll acc.x_i                  or left out

What is open are its knobs. Values for all of them make a trace, which a schedule replays. Loops
have the same names whatever the values are, so one step's value can change while the others stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from vdla.compiler.schedule.trace import Json, Step, Trace

Codes = tuple[int, ...]  # a position among each knob's values


@dataclass(frozen=True)
class Knob:
    """An argument of the step at a position, and its possible values; without a name, whether the
    step is there.

    ``follows`` are arguments that change with it: (step, argument, as many values).
    """

    step: int
    argument: str
    values: tuple[Json, ...]
    follows: tuple[tuple[int, str, tuple[Json, ...]], ...] = ()

    def settings(self, code: int) -> list[tuple[int, str, Json]]:
        """(step, argument, value) of all that it sets."""
        own = (self.step, self.argument, self.values[code])
        return [own, *((step, name, values[code]) for step, name, values in self.follows)]


@dataclass(frozen=True)
class Limit:
    """The product of some knobs' values divides ``of``, or with ``at_most`` isn't above it."""

    knobs: tuple[int, ...]
    of: int
    at_most: bool = False

    def allows(self, values: Sequence[Json]) -> bool:
        """Whether values of all knobs keep to it."""
        product = prod(values[k] for k in self.knobs)
        return bool(product <= self.of if self.at_most else self.of % product == 0)


@dataclass(frozen=True)
class Combinations:
    """Some knobs have one of the listed combinations of values."""

    knobs: tuple[int, ...]
    legal: frozenset[tuple[str | bool | None, ...]]

    def allows(self, values: Sequence[Json]) -> bool:
        """Whether values of all knobs have one of the combinations."""
        return tuple(values[k] for k in self.knobs) in self.legal


@dataclass(frozen=True)
class Sketch:
    """Steps with knobs; ``rule`` is the name of the rule that derived it."""

    rule: str
    steps: tuple[Step, ...]
    knobs: tuple[Knob, ...] = ()
    limits: tuple[Limit | Combinations, ...] = ()

    @cached_property
    def size(self) -> int:
        """Number of combinations of values, those beyond the limits included."""
        return prod(len(knob.values) for knob in self.knobs)

    def values(self, codes: Codes) -> list[Json]:
        """Each knob's value."""
        return [knob.values[code] for knob, code in zip(self.knobs, codes, strict=True)]

    def allows(self, codes: Codes) -> bool:
        """Whether the values keep to the limits."""
        values = self.values(codes)
        return all(limit.allows(values) for limit in self.limits)

    def trace(self, codes: Codes) -> Trace:
        """The steps with these values."""
        steps: list[Step | None] = list(self.steps)
        for knob, code in zip(self.knobs, codes, strict=True):
            for position, argument, value in knob.settings(code):
                step = steps[position]
                if not argument:
                    steps[position] = step if value else None
                elif step is not None:
                    steps[position] = replace(step, args={**step.args, argument: value})
        return [step for step in steps if step is not None]

    def canonical(self, codes: Codes) -> Codes:
        """Codes of one schedule made equal: 0 for the knobs of steps that are left out."""
        values = self.values(codes)
        gone = {k.step for k, v in zip(self.knobs, values, strict=True) if not k.argument and not v}
        return tuple(
            0 if knob.argument and knob.step in gone else code
            for knob, code in zip(self.knobs, codes, strict=True)
        )

    def codes(self, trace: Trace) -> Codes | None:
        """The codes with which ``trace`` makes some steps; None where they aren't this sketch's."""
        present, left = dict[int, Step](), list(trace)
        for position in range(len(self.steps)):
            if left and self._fits(position, left[0]):
                present[position] = left.pop(0)
            elif (position, "") not in self._open:
                return None
        codes = [self._code(knob, present) for knob in self.knobs]
        return None if left or None in codes else tuple(code for code in codes if code is not None)

    @cached_property
    def _open(self) -> set[tuple[int, str]]:
        """(step, argument) that knobs set."""
        return {(step, name) for knob in self.knobs for step, name, _ in knob.settings(0)}

    def _fits(self, position: int, step: Step) -> bool:
        """Whether a step is the one at a position, but for what is open."""
        own = self.steps[position]
        fixed = {k: v for k, v in own.args.items() if (position, k) not in self._open}
        given = {k: v for k, v in step.args.items() if (position, k) not in self._open}
        return (own.primitive, own.stage, fixed) == (step.primitive, step.stage, given)

    def _code(self, knob: Knob, present: Mapping[int, Step]) -> int | None:
        """The code of a knob with which its steps are as they are; the first, if none is there."""

        def agrees(step: int, name: str, value: Json) -> bool:
            if not name:
                return bool(value) == (step in present)
            return step not in present or present[step].args[name] == value

        codes = range(len(knob.values))
        return next((c for c in codes if all(agrees(*s) for s in knob.settings(c))), None)

    def stage(self, knob: int) -> str:
        """The stage that a knob belongs to."""
        return self.steps[self.knobs[knob].step].stage
