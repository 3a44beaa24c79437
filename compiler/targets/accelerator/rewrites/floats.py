"""Quantizations where a file has floats between integers: :func:`quantize_floats`.

A file that quantizes its products alone leaves sums, normalizations and functions between them in
floats. They become integers where all that they read and write has a range that follows from the
file (``graph/ranges.py``), so that nothing has to be measured and nothing is limited:

    sums, normalizations     read and write 16 bits
    functions                read int8, of that part of the range where their int8 result changes
    softmax                  reads int8, and no number that is far below the others
    products, means, choices read int8
    functions of int8        that a sum reads are two bytes, each a table
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import floor, log2

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import leading
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import STRICT, Graph, Node
from vdla.compiler.graph.measured import Ends, Measure
from vdla.compiler.graph.ops.quantize import AnyDequantize
from vdla.compiler.graph.ops.wide import MOST, WEIGHT_BITS
from vdla.compiler.graph.passes.fold import fold_scales
from vdla.compiler.graph.passes.images import as_images
from vdla.compiler.graph.passes.move_qdq import move_qdq
from vdla.compiler.graph.passes.to_int8 import to_int8
from vdla.compiler.graph.ranges import MOVES, Ranges
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.float_products import (
    quantize_products,
    spell_products,
    without_ranges,
)
from vdla.compiler.targets.accelerator.rewrites.integers import LEAST, Behind

FLOATS = "floats in the file; without --strict they'd be integers of 16 bits"
BELOW = 12.0  # of the middle of scores: e**-12 of it is no share in int8
ROOM = 1 + 2.0**-10  # for the rounding of weights and of the result
PLAIN = (ops.Relu, ops.Clip)  # which are bounds of the operator before them


def quantize_floats(graph: Graph, accelerator: Capability, measure: Measure | None = None) -> Graph:
    """Quantizes floats between integers; ``measure`` gives ranges of them on samples.

    before: h = Add(x, Dequantize(p)); y = Quantize(LayerNorm(h)); …Add(h, …)
    after:  h = Add(x, Dequantize(p)); i = Quantize16(h); r = Dequantize16(i);
            y = Quantize(LayerNorm(r)); …Add(r, …)

    A graph whose operators are all quantized stays as it is. A strict accelerator leaves them
    floats: the reason says so.
    """
    if not graph.of(ops.Quantize):
        return graph
    if measure is not None and not accelerator.strict:
        ready = spell_products(_ready(graph))
        if ends := measure(ready):
            ready = quantize_products(ready, Ranges(ready, ends))
            return move_qdq(_Floats(ready, ends).quantized())
    floats = _Floats(graph, {})
    if accelerator.strict:
        return floats.refused() if floats.chosen else graph
    graph = without_ranges(graph, floats.ranges)
    return move_qdq(_Floats(_ready(graph), {}).quantized()) if floats.chosen else graph


def _ready(graph: Graph) -> Graph:
    """The graph with images, and with scales in quantizations."""
    return rewrite(to_int8(fold_scales(as_images(graph))), _unscaled)


def _unscaled(node: ops.Quantize, editor: Editor) -> Made:
    """The quantization of what is multiplied with a positive number before it."""
    factor = editor.own_maker(node.data, ops.Binary)
    if factor is None or factor.function not in ("mul", "div") or node.axis is not None:
        return None
    names = [factor.a, factor.b] if factor.function == "div" else [factor.b, factor.a]
    known = editor.constants
    data, number = (factor.a, factor.b) if factor.b in known else (factor.b, factor.a)
    if number not in known or (factor.function == "div" and number != names[1]):
        return None
    array = known[number]
    if array.size != 1 or not array.reshape(()) > 0:
        return None
    if editor.shape(data) != editor.shape(node.data) or editor.maker(data, ops.Dequantize):
        return None
    value = float(array.reshape(()))
    scale = node.scale[0] / value if factor.function == "mul" else node.scale[0] * value
    editor.erase(factor)
    return ops.Quantize(
        name=node.name, output=node.output, data=data, scale=(float(np.float32(scale)),),
        zero_point=node.zero_point,
    )  # fmt: skip


@dataclass
class _Floats:
    """A graph whose floats are to be quantized.

    Attributes:
        wide: the tensors that become 16 bits: what sums and normalizations read.
        ends: by the names of tensors that functions read, the quantizations whose data are
            functions of them.
        scores: what a softmax reads.
        narrow: what else reads int8 alone.
        eight: products with a constant of each feature, which have int8 alone.
        joined: what is joined before it is quantized, by what quantizes it.
        paths: the names of the nodes that functions are made of.
        read: the results of normalizations, with what they read.
        scales: those of tensors of 16 bits, by their names.
    """

    graph: Graph
    measured: Ends
    wide: set[str] = field(default_factory=set)
    ends: dict[str, list[ops.Quantize]] = field(default_factory=dict)
    scores: set[str] = field(default_factory=set)
    narrow: set[str] = field(default_factory=set)
    eight: set[str] = field(default_factory=set)
    joined: dict[str, ops.Quantize] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    read: list[tuple[str, str]] = field(default_factory=list)
    scales: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ranges = Ranges(self.graph, self.measured)
        self.around = self.ranges.around
        self.leads = leading(self.graph)
        for node in reversed(self.graph.nodes):
            self._look(node)
        self.wide -= self.eight
        self.wide |= {data for result, data in self.read if result in self.wide}

    # Tensors to quantize -----------------------------------------------------------------------

    def _look(self, node: Node) -> None:
        """Notes what a node reads that is to be quantized."""
        if isinstance(node, ops.Quantize):
            root = self.root(node.data)
            if self.is_float(root) and not self.is_plain(node.data, root) and node.axis is None:
                self.ends.setdefault(root, []).append(node)
                self.paths |= self.ranges.path(node.data)
            self._look_behind(node)
        elif node.output not in self.leads:
            return
        elif node.output in self.ranges.shared:
            data = self.ranges.shared[node.output]
            if self.is_quantized(node.output) and self.is_float(data):
                self.scores.add(data)
        elif whole := self.ranges.normalized.get(node.output):
            self._widen(whole.data)
            self.read.append((node.output, self.unmoved(whole.data)))
        elif self.is_sum(node):
            for name in node.inputs:
                if not self.is_term(name):
                    self._widen(name)
        elif self.is_scaled(node):
            self.narrow |= {name for name in node.inputs if self.is_float(name)}
            if any(not isinstance(r, ops.Quantize) for r in self.around.readers(node.output)):
                self.eight.add(node.output)
        elif self.is_quantized(node.output) and self.reads_int8(node):
            self.narrow |= {name for name in node.inputs if self.is_float(name)}

    def _look_behind(self, node: ops.Quantize) -> None:
        """Notes what a node quantizes that is joined of several parts: each is quantized alike."""
        name, left = node.data, [node.data]
        joins = False
        while left and node.axis is None:
            name = left.pop()
            if maker := self.around.maker(name, (*MOVES, ops.Concat)):
                joins |= isinstance(maker, ops.Concat)
                left += maker.inputs
            elif joins and self.is_float(name):
                self.joined[name] = node

    def _widen(self, name: str) -> None:
        """Notes what becomes 16 bits so that a tensor does."""
        name = self.unmoved(name)
        if self.is_of_integers(name):
            return
        root = self.root(name)
        if root != name:
            self.wide.add(name)
            if self.is_float(root):
                self.ends.setdefault(root, [])
                self.paths |= self.ranges.path(name)
        elif self.is_float(name):
            self.wide.add(name)

    def is_sum(self, node: Node) -> bool:
        """Whether a node adds two tensors, or a constant of many numbers to one, and both have
        ranges."""
        own = isinstance(node, ops.Add) and self.root(node.output) == node.output
        return own and all(name in self.ranges.known for name in node.inputs)

    def is_quantized(self, name: str) -> bool:
        """Whether something quantizes a tensor, or one that moves its elements."""
        readers = self.around.readers(name)
        moves = [each for each in readers if isinstance(each, MOVES)]
        direct = any(isinstance(each, ops.Quantize) for each in readers)
        return direct or name in self.scores or any(self.is_quantized(m.output) for m in moves)

    def is_scaled(self, node: Node) -> bool:
        """Whether a node multiplies a tensor with a constant of each feature."""
        known, name = self.ranges.graph.constants, node.output
        if not isinstance(node, ops.Binary) or node.function != "mul" or self.root(name) != name:
            return False
        if name in self.ranges.normalized or not self.is_float(name):
            return False
        return any(each in known for each in node.inputs)

    def reads_int8(self, node: Node) -> bool:
        """Whether a node has integers for int8 alone: products, means, and choices that are
        known."""
        known = self.ranges.graph.constants
        if self.is_scaled(node):
            return True
        if isinstance(node, ops.Reduce):
            return node.function == "mean"
        if isinstance(node, ops.Where):
            return node.condition in known and (node.a in known) != (node.b in known)
        product = isinstance(node, ops.Binary) and node.function == "mul"
        return (
            product and self.root(node.output) == node.output and not known.keys() & {*node.inputs}
        )

    def is_term(self, name: str) -> bool:
        """Whether a tensor is the sum of one and a constant, which another sum alone reads, so that
        both are one."""
        maker = self.around.own_maker(name, ops.Add)
        if maker is None or not self.is_sum(maker):
            return False
        return any(each in self.ranges.graph.constants for each in maker.inputs)

    def root(self, name: str) -> str:
        """The tensor that a tensor is a function of, itself where it is of none."""
        return self.ranges.roots.get(name, name)

    def is_plain(self, name: str, root: str) -> bool:
        """Whether nothing but limits stand between a tensor and the one that it is a function
        of."""
        while name != root:
            maker = self.around.maker(name, PLAIN)
            if maker is None:
                return False
            name = maker.inputs[0]
        return True

    def is_of_integers(self, name: str) -> bool:
        """Whether a tensor is parts of int8 tensors, joined."""
        maker = self.around.maker(name, (*MOVES, ops.Concat, AnyDequantize))
        if isinstance(maker, ops.Concat):
            return all(map(self.is_of_integers, maker.parts))
        return maker is not None and (
            isinstance(maker, AnyDequantize) or self.is_of_integers(maker.inputs[0])
        )

    def unmoved(self, name: str) -> str:
        """The tensor whose elements a tensor has in another order, or another shape."""
        while maker := self.around.maker(name, MOVES):
            name = maker.inputs[0]
        return name

    def is_float(self, name: str) -> bool:
        """Whether a tensor has a range and is floats that no integers are."""
        maker = self.around.maker(name, AnyDequantize)
        integers = maker is not None or name in self.ranges.graph.constants
        return not integers and name in self.ranges.known

    # What becomes of them ----------------------------------------------------------------------

    @property
    def chosen(self) -> set[str]:
        """The tensors to quantize."""
        integers = self.wide | self.scores | self.narrow | self.eight
        return integers | self.ends.keys() | self.joined.keys()

    def refused(self) -> Graph:
        """The graph with the reason why its floats stay floats."""
        reasons = dict(self.graph.reasons)
        for node in self.graph.nodes:
            if node.output in self.chosen:
                reasons[node.name] = f"{STRICT}: {FLOATS}"
        return replace(self.graph, reasons=reasons)

    def quantized(self) -> Graph:
        """The graph with quantizations of its floats."""
        editor = Editor(self.graph)
        names = [*self.graph.inputs, *(node.output for node in self.graph.nodes)]
        for name in names:
            if name in self.chosen:
                self._quantize(name, Behind(name, editor))
        return editor.graph()

    def _quantize(self, name: str, put: Behind) -> None:
        """Gives those that read a tensor its integers."""
        readers, root = [*put.editor.readers(name)], self.root(name)
        alike = [r for r in readers if self.root(r.output) == root]
        functions = [r for r in alike if root != name or r.name in self.paths]
        rest = [r for r in readers if r not in functions]
        if root != name:  # what quantizes a function has its table
            rest = [r for r in rest if not isinstance(r, ops.Quantize)]
        others = [r for r in rest if self.reads_int8(r)]
        shares = [r for r in rest if r not in others and not self.is_sum(r)]
        if name in self.ends:
            put.narrow(self.part(name), functions)
        if name in self.narrow:
            put.narrow(self.ranges.known[name].ends, others)
        if name in self.eight:
            own = [r for r in rest if not isinstance(r, ops.Quantize)]
            put.narrow(self.ranges.known[name].ends, own)
            rest = shares = []
        if name in self.joined:
            moves = [r for r in rest if isinstance(r, (*MOVES, ops.Concat))]
            put.alike(self.joined[name], moves)
            rest = shares = [r for r in shares if r not in moves]
        if name in self.scores:
            put.narrow(self.part_of_scores(name), shares)
        if name in self.wide:
            rest = [r for r in rest if name not in self.narrow or r not in others]
            is_function = root != name
            self.scales[name] = self._scale(name)
            put.wide(self.scales[name], rest, is_function)

    def _scale(self, name: str) -> float:
        """The scale of a tensor of 16 bits. That of a sum is so large that no sum of what its terms
        stand for is beyond; and by it, one term of 16 bits beside one of int8 has an exact weight,
        which few bits are left for."""
        own = max(map(abs, self.ranges.known[name].ends))
        node = self.around.maker(name, ops.Add)
        terms = [*self._terms(node)] if node and self.is_sum(node) else []
        total = sum(self._size(each) for each in terms)
        scale = max(own, total * ROOM, LEAST) / MOST
        wide = [self.scales[n] for each in terms if (n := self.unmoved(each)) in self.scales]
        makers = [self.around.maker(each, ops.Dequantize) for each in terms]
        narrow = [maker.scale[0] for maker in makers if maker is not None]
        if len(wide) != 1 or len(narrow) != 1:
            return scale
        places = floor(log2(((1 << WEIGHT_BITS) - 1) * scale / narrow[0]))
        weight = max(floor(wide[0] / scale * 2.0**places), 1)
        return wide[0] * 2.0**places / weight

    def _terms(self, node: Node) -> Iterator[str]:
        """The terms of a sum, with those of a sum before it that is one with it."""
        for each in node.inputs:
            maker = self.around.maker(each, ops.Add)
            if maker is not None and self.is_term(each):
                yield from maker.inputs
            else:
                yield each

    def _size(self, name: str) -> float:
        """The largest number that a term of a sum stands for."""
        scale = self.scales.get(self.unmoved(name))
        return max(map(abs, self.ranges.known[name].ends)) if scale is None else scale * MOST

    def part(self, name: str) -> tuple[float, float]:
        """The part of what functions read where their results change."""
        points = self.ranges.points(name)
        assert points is not None
        first, last = len(points) - 1, 0
        for end in self.ends[name]:
            values = self.ranges.at(end.data, points)
            kind = TensorType(values.shape, self.graph.tensors[end.output].dtype)
            changes = np.flatnonzero(np.diff(end.evaluate([values], kind).astype(int)))
            if len(changes):
                first, last = min(first, int(changes[0])), max(last, int(changes[-1]) + 1)
        if first >= last:  # nothing changes, or something else than a quantization reads them
            return self.ranges.known[name].ends
        return float(points[first]), float(points[last])

    def part_of_scores(self, name: str) -> tuple[float, float]:
        """The range of what a softmax reads, without what is far below, as masks are."""
        low, high = self.ranges.known[name].ends
        maker = self.around.maker(name, Node)
        for each in maker.inputs if maker else ():
            if each in self.ranges.known and each not in self.ranges.graph.constants:
                least, most = self.ranges.known[each].ends
                low = max(low, min(least, (least + most) / 2 - BELOW))
        return low, max(high, low)
