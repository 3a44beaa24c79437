"""The cheapest recipe that keeps a network's score: repairs tried in the order of their cost.

    1. the given recipe                                     no cycles
    2. repairs of the floats and of the rounding            no cycles, each kept if it helps
    3. 16 bits for tensors that lose most, then for more    cycles: two products for one
       (16 bits have steps enough for the ranges as given)
    4. floats for nodes that lose most, then for more       the host's time

It ends with the first recipe that reaches what is wanted. What was tried is a list of points: score
against cycles and bytes of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import onnx

from vdla.compiler.models.recipe import Recipe

FREE: tuple[tuple[str, dict[str, object]], ...] = (
    ("GPTQ", {"gptq": True}),
    ("equalized", {"equalize": True}),
    ("smoothed", {"smooth": 0.5}),
    ("99.99 %", {"method": "percentile", "percentile": 99.99}),
    ("biases corrected", {"correct_bias": True}),
)
FLOATS_BELOW = (25.0, 35.0)  # dB, of the nodes that stay floats
BELOW = (20.0, 25.0, 30.0, 35.0, 40.0, inf)  # dB, of the tensors that get 16 bits


@dataclass(frozen=True)
class Point:
    """A recipe that was tried.

    ``score`` is of the network quantized by it, ``cycles`` those of its programs and ``bytes``
    those of its weights on the accelerator, ``wide`` how many of its tensors have 16 bits.
    """

    name: str
    recipe: Recipe
    score: float
    cycles: int
    bytes: int
    wide: int
    model: onnx.ModelProto = field(repr=False, compare=False)


@dataclass(frozen=True)
class Search:
    """A search for the cheapest recipe with a score of ``wanted``.

    ``quantized`` makes the QDQ form, ``score`` its score, ``cost`` its cycles and bytes; ``tried``
    is told of each point.
    """

    quantized: Callable[[Recipe], onnx.ModelProto]
    score: Callable[[onnx.ModelProto], float]
    cost: Callable[[onnx.ModelProto], tuple[int, int]]
    wanted: float
    tried: Callable[[Point], None] = lambda point: None

    def run(self, start: Recipe) -> list[Point]:
        """All points, in the order in which they were tried."""
        points: list[Point] = []
        for point in self._points(start, points):
            points.append(point)
            self.tried(point)
            if point.score >= self.wanted:
                break
        return points

    def _points(self, start: Recipe, points: Sequence[Point]) -> Iterator[Point]:
        """Points, each on the best of those before."""
        yield from self._new(start, start, points)
        for _, change in FREE:
            best = chosen(points, inf).recipe
            recipe = replace(best, **change)  # type: ignore[arg-type]
            if recipe != best:
                yield from self._new(start, recipe, points)
        free = chosen(points, inf).recipe
        wide = replace(free, gptq=True, method=start.method, percentile=start.percentile)
        for below in BELOW:
            if start.bits16_below is None or below > start.bits16_below:
                yield from self._new(start, replace(wide, bits16_below=below), points)
        last = points[-1].recipe
        for below in FLOATS_BELOW:
            yield from self._new(start, replace(last, floats_below=below), points)

    def _new(self, start: Recipe, recipe: Recipe, points: Sequence[Point]) -> Iterator[Point]:
        """The point of a recipe, unless it changes nothing beside one before.

        Cycles are those of one before with the same operators and as many tensors of 16 bits: other
        numbers change none.
        """
        model = self.quantized(recipe)
        if all(model != point.model for point in points):
            operators = [node.op_type for node in model.graph.node]
            same = (p for p in points if operators == [n.op_type for n in p.model.graph.node])
            alike = next((p for p in same if p.wide == wide_tensors(model)), None)
            cycles, size = (alike.cycles, alike.bytes) if alike else self.cost(model)
            name, wide = _name(start, recipe), wide_tensors(model)
            yield Point(name, recipe, self.score(model), cycles, size, wide, model)


def _name(start: Recipe, recipe: Recipe) -> str:
    """A name for what a recipe changes."""
    parts = [
        name
        for name, change in FREE
        if all(getattr(recipe, key) == value for key, value in change.items())
        and any(getattr(start, key) != value for key, value in change.items())
    ]
    if recipe.bits16_below != start.bits16_below:
        below = recipe.bits16_below
        parts.append("16 bits" if below == inf else f"16 bits below {below:g} dB")
    if recipe.floats_below != start.floats_below:
        parts.append(f"floats below {recipe.floats_below:g} dB")
    return ", ".join(parts) or "as given"


def wide_tensors(model: onnx.ModelProto) -> int:
    """The number of tensors of 16 bits."""
    kinds = (onnx.TensorProto.INT16, onnx.TensorProto.UINT16)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    return sum(
        node.op_type == "QuantizeLinear"
        and len(node.input) > 2
        and node.input[2] in constants
        and constants[node.input[2]].data_type in kinds
        for node in model.graph.node
    )


def chosen(points: Sequence[Point], wanted: float) -> Point:
    """The cheapest point with the wanted score, or the one of the best score."""
    enough = [point for point in points if point.score >= wanted]
    if enough:
        return min(enough, key=lambda point: (point.cycles, -point.score))
    return max(points, key=lambda point: (point.score, -point.cycles))
