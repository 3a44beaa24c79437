"""The schedules of a function's sketches, as the searchers see them: numbered points.

There are far too many to list. A point is made when it is first drawn, bred or stepped to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from vdla.compiler.schedule.trace import Trace
from vdla.compiler.search.points import Ints
from vdla.compiler.targets.search.sketch import Codes, Sketch

ATTEMPTS = 50  # to draw or breed what keeps to a sketch's limits
MOST = 1 << 62


@dataclass
class SketchSpace:
    """The points made so far, each a sketch's number and codes for its knobs.

    ``fits`` says whether a schedule suits the machine; there is no point for one that doesn't.
    """

    sketches: Sequence[Sketch]
    fits: Callable[[Trace], bool] = lambda trace: True
    points: list[tuple[int, Codes]] = field(default_factory=list)
    index: dict[tuple[int, Codes], int | None] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of schedules; at most, since sketches' limits take some away."""
        return min(sum(sketch.size for sketch in self.sketches), MOST)

    def candidate(self, point: int) -> Trace:
        """The steps of the schedule at a point."""
        sketch, codes = self.points[point]
        return self.sketches[sketch].trace(codes)

    def point(self, candidate: Trace) -> int | None:
        """The point of a schedule; None if no sketch has it."""
        for number, sketch in enumerate(self.sketches):
            codes = sketch.codes(candidate)
            if codes is not None:
                return self._point(number, codes)
        return None

    def draw(self, known: Collection[int], count: int, rng: np.random.Generator) -> list[int]:
        """Distinct points outside of ``known``: a sketch, then a value for each of its knobs.

        Fewer where none are found.
        """
        result: list[int] = []
        for _ in range(ATTEMPTS * max(count, 0)):
            number = int(rng.integers(len(self.sketches)))
            codes = tuple(int(rng.integers(len(k.values))) for k in self.sketches[number].knobs)
            point = self._point(number, codes)
            if point is not None and point not in known and point not in result:
                result.append(point)
            if len(result) == count:
                break
        return result

    def step(self, points: Ints, rng: np.random.Generator) -> Ints:
        """Each point with another value of one knob; itself, where there is none that is legal."""
        return np.array([self._step(int(point), rng) for point in points], np.int64)

    def cross(self, a: int, b: int, rng: np.random.Generator) -> int:
        """A child that takes each stage's steps from one of two parents (Ansor, section 5.1).

        The first parent where the two have different sketches or no child is legal.
        """
        (number, ours), (other, theirs) = self.points[a], self.points[b]
        if number != other:
            return a
        sketch = self.sketches[number]
        stages = [sketch.stage(knob) for knob in range(len(sketch.knobs))]
        for _ in range(ATTEMPTS):
            first = {stage: rng.random() < 0.5 for stage in dict.fromkeys(stages)}
            codes = tuple(
                x if first[s] else y for s, x, y in zip(stages, ours, theirs, strict=True)
            )
            child = self._point(number, codes)
            if child is not None:
                return child
        return a

    def _step(self, point: int, rng: np.random.Generator) -> int:
        number, codes = self.points[point]
        knobs = self.sketches[number].knobs
        free = [n for n, knob in enumerate(knobs) if len(knob.values) > 1]
        for _ in range(ATTEMPTS if free else 0):
            turned = int(rng.choice(free))
            value = int(rng.integers(len(knobs[turned].values)))
            new = self._point(number, (*codes[:turned], value, *codes[turned + 1 :]))
            if new is not None and new != point:
                return new
        return point

    def _point(self, number: int, codes: Codes) -> int | None:
        """The number of a candidate; None beyond its sketch's limits, and the machine's."""
        if not self.sketches[number].allows(codes):
            return None
        key = (number, self.sketches[number].canonical(codes))
        if key not in self.index:
            fits = self.fits(self.sketches[number].trace(key[1]))
            self.index[key] = len(self.points) if fits else None
            self.points += [key] if fits else []
        return self.index[key]
