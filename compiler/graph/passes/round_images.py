"""Images that a file leaves in floats between integers, as int8.

Many files quantize products alone. What stands between two of them, a normalization, a function, a
sum, a mean, then is on floats, though all of it starts from int8 and ends in int8. Where an
operator of integers can do the same, its operands are rounded to int8 here, by a range that is
known.

    values := table            of one int8 tensor: a float for each of its numbers
            | range            the least and the greatest number that there may be
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.ops.table import LEAST, RESULTS
from vdla.compiler.graph.passes.fold import affine_terms, fold_scales
from vdla.compiler.graph.passes.images import as_images
from vdla.compiler.graph.passes.to_int8 import to_int8
from vdla.compiler.graph.quantized_layers import scaled_weights
from vdla.compiler.graph.types import Array, Quant, TensorType

IMAGE = 4  # axes
RANGE = np.arange(LEAST, LEAST + RESULTS)  # all numbers of an int8
PAIRWISE = ("mul", "sub", "min", "max")  # functions of two tensors that integers have
Limits = ops.Relu | ops.Clip
WITHIN = (ops.AvgPool, ops.MaxPool, ops.Interpolate, ops.Concat)  # results within the operands'
PASSED = (ops.Concat, ops.Interleave, ops.Relu, ops.Clip)  # what changes places with rounding
ISLANDS = (ops.Add, ops.BatchNorm, ops.Conv2d, *WITHIN)  # that become operators of integers


def round_images(graph: Graph) -> Graph:
    """Rounds images between integers to int8 where an operator of integers reads them.

    before: s = Sigmoid(DQ(x)) * DQ(x); m = Q(AvgPool(s)); y = Q(s * DQ(g))
    after:  r = DQ(Q(s)), a table of x; m = Q(AvgPool(r)); y = Q(r * DQ(g))

    The range is that of another Quantize of the same tensor, else what the int8 before it allow:
    all values of a function of one of them, and for sums and the like the ends of their operands'
    ranges. Of a sum whose result is quantized, an operand without a range has those beyond which
    the sum is beyond its own. Each rounding is off by half a step, 1/510 of the range, at most;
    beyond another Quantize's range, numbers are limited as that limits them. What nothing quantizes
    later stays.
    """
    if not graph.of(ops.Dequantize):
        return graph
    plain = rewrite(to_int8(fold_scales(as_images(graph))), _normalization)
    walk = _Walk(Editor(plain), _before_integers(plain))
    result = walk.editor.walk(walk.visit)
    return result if walk.rounded else graph


def _normalization(node: ops.Add | ops.Binary, editor: Editor) -> Made:
    """The normalization that a constant for each channel is, between operators on floats."""
    terms = affine_terms(node, editor)
    if terms is None or len(editor.shape(node.output)) != IMAGE:
        return None
    data, *values = terms
    if all(np.ptp(each) == 0 for each in values) or not np.isfinite(values).all():
        return None
    factor, offset = (
        editor.constant(f"{node.name}.{what}", np.asarray(value, np.float32))
        for what, value in zip(("factor", "offset"), values, strict=True)
    )
    return ops.BatchNorm(
        name=node.name, output=node.output, data=data, factor=factor, offset=offset
    )


def _before_integers(graph: Graph) -> set[str]:
    """The tensors that some Quantize follows."""
    names = set[str]()
    for node in reversed(graph.nodes):
        if isinstance(node, ops.Quantize) or not names.isdisjoint(node.outputs):
            names.update(node.inputs)
    return names


class Values(NamedTuple):
    """Knowledge of a tensor of floats: a table of an int8 tensor, its ``root``, or, without
    one, two ends. ``whole``: it is those int8 numbers themselves."""

    numbers: Array
    root: str | None = None
    whole: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest number."""
        return float(self.numbers.min()), float(self.numbers.max())


@dataclass
class _Walk:
    """One walk over a graph; ``wanted`` are the tensors that some Quantize follows."""

    editor: Editor
    wanted: set[str]

    def __post_init__(self) -> None:
        self.known: dict[str, Values] = {}
        self.rounded: dict[tuple[str, Quant], str] = {}  # tensors by way of int8

    def visit(self, node: Node) -> Made:
        """A node whose operands are rounded where it can't do with them as they are."""
        if isinstance(node, ops.Dequantize):
            self.known |= self.integers(node)
            return None
        if self.editor.tensors[node.output].dtype != "float32" or isinstance(node, ops.Control):
            return None
        operands = self.operands(node)
        if not operands or not all(self.is_known(name, node) for name in operands):
            return None
        if (table := self.function(node, operands)) is not None:
            self.known[node.output] = table
            return None
        made = node
        if self.needs_integers(node, operands):
            made = node.renamed({name: self.int8(name, node) for name in dict.fromkeys(operands)})
        values = self.function(made, made.inputs) or self.values(made)
        if values is not None:
            self.known[node.output] = values
        return None if made is node else made

    def operands(self, node: Node) -> Sequence[str]:
        """The tensors of floats that a node reads, but for weights of int8."""
        if isinstance(node, FloatProducts):
            return [node.data] if scaled_weights(node, self.editor) else []
        return [name for name in node.inputs if name not in self.editor.constants]

    # What is known ----------------------------------------------------------------------------

    def is_known(self, name: str, node: Node) -> bool:
        """Whether an operand of a node has a range: its own, or, of a layer of int8, one that a
        Quantize behind sets."""
        if name in self.known:
            return True
        behind = self.later(name, node) or self.left_by_others(name, node)
        return behind is not None and self.is_layers(name)

    def is_layers(self, name: str) -> bool:
        """Whether a tensor is the result of a layer of int8, with limits, or of several that take
        turns."""
        maker = self.editor.maker(name, Node)
        if isinstance(maker, FloatProducts):
            return scaled_weights(maker, self.editor) is not None and self.is_whole(maker.data)
        if isinstance(maker, ops.Relu | ops.Clip | ops.Interleave):
            return all(self.is_layers(each) for each in maker.inputs)
        return False

    def later(self, name: str, node: Node) -> Quant | None:
        """The scale and the zero point with which an operand of a node is quantized: for another
        reader, or behind the node, if that changes places with rounding. What a table makes is
        rounded once more for less: there, what is behind the node comes first."""
        changes = isinstance(node, PASSED) or node.integer is not None
        quants = [self.quantized(name), self.behind(node.output) if changes else None]
        if name in self.known and self.known[name].root is not None:
            quants.reverse()
        return quants[0] or quants[1]

    def behind(self, name: str) -> Quant | None:
        """The scale and the zero point with which a tensor is quantized, or what is made of it by
        nodes that change places with rounding."""
        own, reader = self.quantized(name), self.editor.own_reader(name, Node)
        if own is not None or reader is None:
            return own
        changes = isinstance(reader, PASSED) or reader.integer is not None
        return self.behind(reader.output) if changes else None

    def left_by_others(self, name: str, node: Node) -> tuple[float, float] | None:
        """The ends of an operand of a sum beyond which the sum is beyond its own, whatever the
        other operand is; None where those aren't known."""
        quant = self.behind(node.output) if isinstance(node, ops.Add) else None
        if quant is None or node.inputs.count(name) > 1:
            return None
        (other,) = (self.ends(each) for each in node.inputs if each != name)
        low, high = ((end - quant.zero_point) * quant.scale for end in (RANGE[0], RANGE[-1]))
        return None if other is None else (low - other[1], high - other[0])

    def quantized(self, name: str) -> Quant | None:
        """The scale and the zero point of a Quantize to int8 that reads a tensor."""
        for end in self.editor.readers_of(name, ops.Quantize):
            if end.axis is None and self.editor.tensors[end.output].dtype == "int8":
                return Quant(end.scale[0], end.zero_point[0])
        return None

    def integers(self, node: ops.Dequantize) -> dict[str, Values]:
        """The floats of int8 with one scale."""
        if node.axis is not None or self.editor.tensors[node.data].dtype != "int8":
            return {}
        table = ((RANGE - node.zero_point[0]) * np.float32(node.scale[0])).astype(np.float32)
        return {node.output: Values(table, node.data, whole=True)}

    def function(self, node: Node, operands: Sequence[str]) -> Values | None:
        """The table of a function of one int8 tensor; None where a node is none."""
        constants, shape = self.editor.constants, self.editor.shape(node.output)
        known = [self.known[name] for name in operands if name in self.known]
        roots = {each.root for each in known}
        whole = node.by_element and len(roots) == 1 and None not in roots
        if not whole or any(
            self.editor.shape(name) != shape for name in operands if name in self.known
        ):
            return None
        values = {name: constants[name].reshape(()) for name in node.inputs if self.is_number(name)}
        values |= {name: self.known[name].numbers for name in node.inputs if name in self.known}
        if len(values) < len(set(node.inputs)):
            return None
        kind = replace(self.editor.tensors[node.output], shape=(RESULTS,))
        with np.errstate(all="ignore"):
            table = np.asarray(node.evaluate([values[name] for name in node.inputs], kind))
        return Values(table, roots.pop()) if np.isfinite(table).all() else None

    def is_number(self, name: str) -> bool:
        """Whether a tensor is one number that is known."""
        return name in self.editor.constants and self.editor.constants[name].size == 1

    def values(self, node: Node) -> Values | None:
        """Knowledge of a node's result by its operands; None where there is none."""
        ends = [self.ends(name) for name in node.inputs]
        if any(each is None for each in ends):
            return None
        if node.integer is not None:
            source = self.known[node.inputs[0]]
            return source._replace(root=node.output) if source.whole else source
        result = _ends(node, [each for each in ends if each is not None], self.editor)
        return (
            Values(np.array(result)) if result is not None and np.isfinite(result).all() else None
        )

    def ends(self, name: str) -> tuple[float, float] | None:
        """The least and the greatest number of a tensor; None where they aren't known."""
        if name in self.known:
            return self.known[name].ends
        array = self.editor.constants.get(name)
        if array is None or not array.size or array.dtype.kind != "f":
            return (0.0, 0.0) if array is not None else None
        return float(array.min()), float(array.max())

    # What is rounded --------------------------------------------------------------------------

    def needs_integers(self, node: Node, operands: Sequence[str]) -> bool:
        """Whether a node is to become one of integers, or a table, and has operands that are
        none yet."""
        if node.output not in self.wanted or all(map(self.is_whole, operands)):
            return False
        if len(self.editor.shape(node.output)) != IMAGE:
            return False
        if isinstance(node, Limits) and self.is_absorbed(node):
            return False
        if node.integer is not None:
            return not self.ends_in_integers(node.output)
        others = [name for name in node.inputs if not self.is_number(name)]
        if node.by_element and len(set(others)) == 1:
            return True  # a table, once there is an int8 before it
        pairwise = isinstance(node, ops.Binary) and node.function in PAIRWISE
        return pairwise or isinstance(node, ISLANDS)

    def is_whole(self, name: str) -> bool:
        """Whether a tensor is floats of int8 as they are."""
        return name in self.known and self.known[name].whole

    def is_absorbed(self, node: Limits) -> bool:
        """Whether limits go into the operator before them."""
        maker = self.editor.own_maker(node.data, Node)
        return isinstance(maker, (*ISLANDS, ops.Binary, ops.Relu, ops.Clip))

    def ends_in_integers(self, name: str) -> bool:
        """Whether moves alone lead from a tensor to the one Quantize that is behind it."""
        reader = self.editor.own_reader(name, Node)
        if isinstance(reader, ops.Quantize):
            return reader.axis is None
        return (
            reader is not None
            and reader.integer is not None
            and self.ends_in_integers(reader.output)
        )

    def int8(self, name: str, node: Node) -> str:
        """An operand of a node by way of int8."""
        if self.is_whole(name):
            return name
        quant = self.later(name, node) or self.quant(name, node)
        if (name, quant) not in self.rounded:
            self.rounded[name, quant] = self.round(name, quant)
        return self.rounded[name, quant]

    def round(self, name: str, quant: Quant) -> str:
        """The floats of the int8 numbers that a tensor is rounded to, by nodes before this one."""
        shape = self.editor.shape(name)
        bits = self.editor.tensor(f"{name}.rounded", TensorType(shape, "int8"))
        real = self.editor.like(f"{name}.real", shape, name)
        scale, zero = (quant.scale,), (quant.zero_point,)
        back = ops.Dequantize(name=real, output=real, data=bits, scale=scale, zero_point=zero)
        self.editor.insert(
            ops.Quantize(name=bits, output=bits, data=name, scale=scale, zero_point=zero), back
        )
        self.known |= self.integers(back)
        return real

    def quant(self, name: str, node: Node) -> Quant:
        """The scale and the zero point for the range of an operand of a node."""
        ends = self.ends(name) or self.left_by_others(name, node)
        assert ends is not None
        low, high = min(0.0, ends[0]), max(0.0, ends[1])
        scale = float(np.float32((high - low) / (RESULTS - 1)))
        if not scale:
            return Quant(1.0, 0)
        return Quant(scale, int(np.clip(np.rint(LEAST - low / scale), LEAST, LEAST + RESULTS - 1)))


def _ends(
    node: Node, operands: Sequence[tuple[float, float]], editor: Editor
) -> tuple[float, float] | None:
    """The ends of a node's result by those of its operands; None where they don't follow."""
    lows, highs = zip(*operands, strict=True)
    if isinstance(node, ops.BatchNorm):
        factor, offset = (
            editor.constants[name].astype(float) for name in (node.factor, node.offset)
        )
        corners = np.array([factor * end + offset for end in operands[0]])
        return float(corners.min()), float(corners.max())
    if isinstance(node, ops.Relu | ops.Clip):
        low, high = node.bounds
        return min(max(lows[0], low), high), max(min(highs[0], high), low)
    if isinstance(node, ops.Interpolate):
        weights = (editor.constants[name] for name in (node.rows, node.columns))
        cubic = any(each.min() < 0 for each in weights)  # beyond its neighbours
        return None if cubic else operands[0]
    if isinstance(node, WITHIN):
        return min(0.0, *lows), max(0.0, *highs)
    if isinstance(node, ops.Add):
        return sum(lows), sum(highs)
    if not isinstance(node, ops.Binary):
        return None
    (a, b), (c, d) = operands
    known = {
        "sub": (a - d, b - c),
        "min": (min(a, c), min(b, d)),
        "max": (max(a, c), max(b, d)),
        "mul": (min(a * c, a * d, b * c, b * d), max(a * c, a * d, b * c, b * d)),
    }
    return known.get(node.function)
