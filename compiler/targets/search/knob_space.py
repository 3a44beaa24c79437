"""The schedules that a function's knobs make, as the searchers see them: numbered points.

Which knobs there are is seen when the function runs: one may be declared under some values of
another alone. The space is a tree, a knob at each node, that grows as points are drawn, bred and
stepped to; the function runs once for each leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vdla.compiler.schedule.schedule import Schedule, checked_at_the_end
from vdla.compiler.schedule.trace import Trace
from vdla.compiler.search.points import Ints
from vdla.compiler.targets.search.function import Function
from vdla.compiler.targets.search.knobs import KnobError, Knobs, Value
from vdla.compiler.targets.search.sketch_space import ATTEMPTS, MOST
from vdla.support.errors import UserError

Scheduler = Callable[[Schedule, Knobs], object]
Codes = tuple[int, ...]  # a position among the values of each knob on the way


@dataclass(frozen=True, eq=False)
class Chosen:
    """A candidate: each knob's value by name, and the steps that they make; where a primitive
    refuses them, ``refusal`` says why and no steps are there."""

    knobs: Mapping[str, Value]
    trace: Trace
    refusal: str = ""


@dataclass(frozen=True, eq=False)
class Node:
    """A knob under the values of those before it; ``branches`` are by position of its value."""

    name: str
    values: Sequence[Value]
    branches: dict[int, Node | Leaf] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Leaf:
    """The point of a candidate whose knobs all have values."""

    point: int


Decide = Callable[[Node], int]


@dataclass(eq=False)
class KnobSpace:
    """The schedules of a function by a schedule function; ``codes`` are by point.

    With ``legal`` what a primitive refuses is never proposed, as with schedules that rules derive;
    a user's is, and counts as illegal.
    """

    function: Function
    schedule: Scheduler
    legal: bool = False
    chosen: list[Chosen] = field(default_factory=list)
    codes: list[Codes] = field(default_factory=list)
    root: list[Node | Leaf] = field(default_factory=list)  # none before the function ran

    def __len__(self) -> int:
        """Number of schedules at most: how many there are is known when all were seen."""
        return MOST

    def candidate(self, point: int) -> Chosen:
        """The knobs' values at a point, and their schedule."""
        return self.chosen[point]

    def point(self, candidate: Chosen) -> int | None:
        """The point of a candidate; None where the function has no such knobs or values."""
        return self.named(candidate.knobs)

    def named(self, knobs: Mapping[str, Value]) -> int | None:
        """The point at which knobs have these values; None where they aren't the function's."""
        missing = False

        def decide(node: Node) -> int:
            nonlocal missing
            if knobs.get(node.name, self) in node.values:
                return node.values.index(knobs[node.name])
            missing = True
            return 0

        point = self._leaf(decide)
        same = not missing and self.chosen[point].knobs.keys() == knobs.keys()
        return point if same and self._allows(point) else None

    def draw(self, known: Collection[int], count: int, rng: np.random.Generator) -> list[int]:
        """Distinct points outside of ``known``: values at random, knob by knob; those left where
        nearly all are known. Fewer where there are no more."""
        result: list[int] = []
        for _ in range(ATTEMPTS * max(count, 0)):
            point = self._leaf(lambda node: int(rng.integers(len(node.values))))
            if point not in known and point not in result and self._allows(point):
                result.append(point)
            if len(result) == count:
                return result
        left = (p for p in self.in_order() if p not in known and p not in result)
        return [*result, *(p for p, _ in zip(left, range(count - len(result)), strict=False))]

    def step(self, points: Ints, rng: np.random.Generator) -> Ints:
        """Each point with another value of one knob; itself, where no knob has another one."""
        return np.array([self._step(int(point), rng) for point in points], np.int64)

    def cross(self, a: int, b: int, rng: np.random.Generator) -> int:
        """A child that takes each knob from one of two parents; the first, if none is legal."""
        parents = self.chosen[a].knobs, self.chosen[b].knobs

        def decide(node: Node) -> int:
            first = int(rng.random() < 0.5)
            return _kept(node, parents[first], parents[1 - first], rng=rng)

        children = (self._leaf(decide) for _ in range(ATTEMPTS))
        return next((child for child in children if self._allows(child)), a)

    def in_order(self) -> Iterator[int]:
        """All points: the last knob's values one after another, then those of the one before."""
        path: list[tuple[int, int]] | None = []  # positions, and of how many
        while path is not None:
            way, wanted = list[tuple[int, int]](), iter(path)
            point = self._leaf(lambda node, way=way, wanted=wanted: _next(node, way, wanted))  # type: ignore[misc]
            if self._allows(point):
                yield point
            while way and way[-1][0] + 1 == way[-1][1]:
                way.pop()
            path = [*way[:-1], (way[-1][0] + 1, way[-1][1])] if way else None

    def _step(self, point: int, rng: np.random.Generator) -> int:
        knobs = self.chosen[point].knobs
        for _ in range(ATTEMPTS if knobs else 0):
            turned = str(rng.choice(list(knobs)))
            others = {name: value for name, value in knobs.items() if name != turned}
            new = self._leaf(lambda node, others=others: _kept(node, others, rng=rng))  # type: ignore[misc]
            if new != point and self._allows(new):
                return new
        return point

    def _allows(self, point: int) -> bool:
        """Whether a point may be proposed."""
        return not (self.legal and self.chosen[point].refusal)

    def _leaf(self, decide: Decide) -> int:
        """The point to which decisions lead; the function runs where none came before."""
        codes: list[int] = []
        at = self.root[0] if self.root else None
        while isinstance(at, Node):
            codes.append(decide(at))
            at = at.branches.get(codes[-1])
        return at.point if at is not None else self._grown(codes, decide)

    def _grown(self, codes: list[int], decide: Decide) -> int:
        """The point of a new leaf, below the nodes that are passed on the way to it."""
        knobs = _Deciding(self, codes, decide)
        chosen = self._run(knobs)
        self.chosen.append(chosen)
        self.codes.append(tuple(knobs.codes))
        leaf = Leaf(len(self.chosen) - 1)
        knobs.attach(leaf)
        return leaf.point

    def _run(self, knobs: Knobs) -> Chosen:
        """The candidate that the schedule function makes.

        Raises:
            KnobError: it fails by something else than a primitive that doesn't apply.
        """
        base = len(self.function.base)
        try:
            with checked_at_the_end():
                s = self.function.schedule()
                self.schedule(s, knobs)
            s.check()
            return Chosen(dict(knobs.values), s.trace[base:])
        except KnobError:
            raise
        except UserError as error:
            return Chosen(dict(knobs.values), [], str(error))
        except Exception as error:
            where = " ".join(f"{name}={value}" for name, value in knobs.values.items())
            raise KnobError(
                f"schedule({where}): expected a function that schedules, found "
                f"{type(error).__name__}: {error}"
            ) from error


class _Deciding(Knobs):
    """Knobs that take the positions ``codes``, then what is decided; they note where they were."""

    def __init__(self, space: KnobSpace, codes: Sequence[int], decide: Decide) -> None:
        super().__init__()
        self.space, self.first, self.decide = space, codes, decide
        self.codes: list[int] = []
        self.above: Node | None = None

    def attach(self, below: Node | Leaf) -> None:
        """Hangs a node or a leaf below the last knob."""
        if self.above is not None:
            self.above.branches[self.codes[-1]] = below
        else:
            self.space.root.append(below)

    def _position(self, name: str, values: Sequence[Value]) -> int:
        node = self._node(name, values)
        n = len(self.codes)
        self.above = node
        self.codes.append(self.first[n] if n < len(self.first) else self.decide(node))
        return self.codes[-1]

    def _node(self, name: str, values: Sequence[Value]) -> Node:
        """The node of the next knob, which is made where no run came to it before."""
        here: Node | Leaf | None
        if self.above is None:
            here = self.space.root[0] if self.space.root else None
        else:
            here = self.above.branches.get(self.codes[-1])
        if here is None:
            here = Node(name, values)
            self.attach(here)
        if not isinstance(here, Node) or (here.name, here.values) != (name, values):
            expected = f"knob {here.name} of {list(here.values)}" if isinstance(here, Node) else ""
            raise KnobError(
                f"knob {name}: expected the same knobs under the same values of those before it, "
                f"{expected or 'none'}, found {list(values)}"
            )
        return here


def _kept(node: Node, *settings: Mapping[str, Value], rng: np.random.Generator) -> int:
    """The position of the first setting that a knob can have; one at random where none is."""
    for knobs in settings:
        if node.name in knobs and knobs[node.name] in node.values:
            return node.values.index(knobs[node.name])
    return int(rng.integers(len(node.values)))


def _next(node: Node, way: list[tuple[int, int]], wanted: Iterator[tuple[int, int]]) -> int:
    """The position of the next knob on a way through the tree, the first behind its end."""
    code, _ = next(wanted, (0, 0))
    way.append((code, len(node.values)))
    return code
