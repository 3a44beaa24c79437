"""Quantizations around products of two tensors of floats: :func:`quantize_products`.

What such a product is between follows from no file, so that its ranges are those of samples. With
integers around it, what is left in floats is between integers (``rewrites/floats.py``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Self

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import leading, quantizing
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.multiply import gate_shape
from vdla.compiler.graph.ops.quantize import AnyDequantize
from vdla.compiler.graph.passes.spellings import as_product
from vdla.compiler.graph.ranges import MOVES, Ranges
from vdla.compiler.targets.accelerator.rewrites.integers import Behind

WITHOUT_RANGE = "no range follows from the file; samples say one: --calibration X.npz"
ROOM = 1 + 2.0**-6  # of the operands of a product with a constant, for the rounding of both


def spell_products(graph: Graph) -> Graph:
    """Makes a product of stacks of matrices of each sum of products, and of each Einsum of two.

    before: y = ReduceSum(x * shares, axes=[1]), x: [1, 400, 384], shares: [1, 400, 1]
    after:  y = MatMul(Transpose(shares), x)

    Constants that are joined with other tensors, and quantized with them, become integers.
    """
    return rewrite(graph, _summed, as_product, _joined)


def _joined(node: ops.Quantize, editor: Editor) -> Made:
    """The quantization of joined parts of which constants are integers already."""
    concat = editor.own_maker(node.data, ops.Concat)
    parts = dict.fromkeys(concat.parts) if concat else {}
    known = [part for part in parts if part in editor.constants]
    if concat is None or node.axis is not None or not known:
        return None
    made = list[Node]()
    for part in known:
        kind = replace(editor.tensors[node.output], shape=editor.shape(part))
        bits = editor.constant(f"{part}.integers", node.evaluate([editor.constants[part]], kind))
        real = editor.like(f"{part}.real", kind.shape, part)
        integers = ops.Dequantize(
            name=real, output=real, data=bits, scale=node.scale, zero_point=node.zero_point
        )
        made.append(integers)
    reals = {part: each.output for part, each in zip(known, made, strict=True)}
    editor.replace(concat, *made, concat.renamed(reals))
    return node


def _summed(node: ops.Reduce, editor: Editor) -> Made:
    """The product of matrices that a sum of products is."""
    product = editor.own_maker(node.data, ops.Binary)
    if node.function != "sum" or product is None or product.function != "mul":
        return None
    sums = _Sums.of(node, product, editor)
    if sums is None:
        return None
    editor.erase(product)
    return [*sums.nodes()]


@dataclass(frozen=True)
class _Sums:
    """Sums of products of two tensors of one rank, ``a`` and ``b``.

    ``stack`` are the axes that both have and the result keeps, ``rows`` those of ``a`` alone,
    ``columns`` those of ``b`` alone, and ``summed`` those that go.
    """

    node: ops.Reduce
    editor: Editor
    a: str
    b: str
    stack: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    summed: tuple[int, ...]

    @classmethod
    def of(cls, node: ops.Reduce, product: ops.Binary, editor: Editor) -> Self | None:
        """The sums of a product; None where one factor has all axes that the result keeps, too, or
        lacks one of those that are summed over."""
        whole, names = editor.shape(product.output), (product.a, product.b)
        shapes = [editor.shape(name) for name in names]
        if any(len(shape) != len(whole) for shape in shapes) or product.a == product.b:
            return None
        own = [tuple(n for n, size in enumerate(whole) if shape[n] < size) for shape in shapes]
        if {*own[0], *own[1]} & {*node.axes} or not any(own):
            return None
        stack = tuple(n for n in range(len(whole)) if n not in (*own[0], *own[1], *node.axes))
        (a, lacks), (b, other) = sorted(
            zip(names, own, strict=True), key=lambda pair: -len(pair[1])
        )
        return cls(node, editor, a, b, stack, other, lacks, node.axes)

    def nodes(self) -> Iterator[Node]:
        """The nodes in the place of both: what the factors become, their product, and its axes as
        the sum has them."""
        editor, node, stack = self.editor, self.node, self.stack
        left = yield from self._moved(self.a, "a", (stack, self.rows, self.summed))
        right = yield from self._moved(self.b, "b", (stack, self.summed, self.columns))
        sizes = {**self._sizes(self.b, self.columns), **self._sizes(self.a, (*stack, *self.rows))}
        shape = (
            *(sizes[n] for n in stack),
            *(prod(sizes[n] for n in each) for each in (self.rows, self.columns)),
        )
        result = editor.like(f"{node.name}.product", shape, node.output)
        yield ops.MatMul(name=result, output=result, a=left, b=right)
        order = (*stack, *self.rows, *self.columns)
        apart = editor.like(f"{node.name}.axes", tuple(sizes[n] for n in order), node.output)
        yield ops.Reshape(name=apart, output=apart, data=result)
        perm = tuple(order.index(n) for n in sorted(order))
        turned = editor.like(
            f"{node.name}.turned", tuple(sizes[n] for n in sorted(order)), node.output
        )
        yield ops.Transpose(name=turned, output=turned, data=apart, perm=perm)
        yield ops.Reshape(name=node.name, output=node.output, data=turned)

    def _moved(
        self, name: str, part: str, groups: Sequence[tuple[int, ...]]
    ) -> Generator[Node, None, str]:
        """A factor as a stack of matrices, whose last two axes are groups of its own."""
        editor, stack, *rest = self.editor, *groups
        order = [n for group in groups for n in group]
        order += [n for n in range(len(editor.shape(name))) if n not in order]  # of size 1
        sizes = editor.shape(name)
        turned = editor.like(f"{self.node.name}.{part}", tuple(sizes[n] for n in order), name)
        yield ops.Transpose(name=turned, output=turned, data=name, perm=tuple(order))
        shape = (*(sizes[n] for n in stack), *(prod(sizes[n] for n in group) for group in rest))
        result = editor.like(f"{turned}.matrices", shape, name)
        yield ops.Reshape(name=result, output=result, data=turned)
        return result

    def _sizes(self, name: str, axes: Sequence[int]) -> dict[int, int]:
        """The sizes of some axes of a factor."""
        return {n: self.editor.shape(name)[n] for n in axes}


@dataclass
class _Products:
    """Products of two tensors that integers have, in a graph of floats.

    Attributes:
        around: who makes and who reads each tensor.
        leads: the tensors that lead to integers.
    """

    graph: Graph
    ranges: Ranges

    def __post_init__(self) -> None:
        self.around, self.leads = self.ranges.around, leading(self.graph)

    def is_product(self, node: Node) -> bool:
        """Whether a node that leads to integers is such a product."""
        known, name = self.ranges.graph.constants, node.output
        if name not in self.leads or name in self.ranges.inside:
            return False
        if isinstance(node, ops.MatMul):
            return not known.keys() & {*node.inputs}
        if not isinstance(node, ops.Binary) or node.function != "mul":
            return False
        shape = self.around.shape(name)
        fits = {self.around.shape(n) for n in node.inputs} <= {shape, gate_shape(shape)}
        return (fits or self.is_scaled(node)) and self.ranges.roots[name] == name

    def is_scaled(self, node: Node) -> bool:
        """Whether a node multiplies a tensor with a constant of each feature."""
        known = self.ranges.graph.constants
        sizes = {self.around.shape(n) for n in node.inputs if n in known}
        return any(prod(size) == size[-1] for size in sizes if size)

    def is_between_floats(self, node: Node) -> bool:
        """Whether a node reads or writes floats that no integers are."""
        reads = (n for n in node.inputs if n not in self.graph.constants)
        return quantizing(node, self.around) is None or not all(map(self.is_of_integers, reads))

    def lacks_range(self, node: Node) -> bool:
        """Whether a node would have integers if its floats had a range that is near enough."""
        if node.output not in self.leads:
            return False
        if node.output in self.ranges.normalized:
            return self.ranges.normalized[node.output].data not in self.ranges.known
        if node.output in self.ranges.inside:
            return self.ranges.inside[node.output] not in self.ranges.known
        if self.is_product(node) or isinstance(node, ops.Softmax | ops.Einsum):
            return self.is_between_floats(node)
        unknown = any(name not in self.ranges.known for name in node.inputs)
        return isinstance(node, ops.Add | ops.Reduce) and unknown

    def quantized(self) -> Graph:
        """The graph with integers before and behind each of them that has ranges."""
        ranges = self.ranges.known
        self.names = {
            node.name
            for node in self.graph.nodes
            if self.is_product(node) and ranges.keys() >= {*node.inputs, node.output}
        }
        self.editor = Editor(self.graph)
        names = [*self.graph.inputs, *(node.output for node in self.graph.nodes)]
        for name in names:
            if name not in self.ranges.graph.constants and not self.is_of_integers(name):
                self._quantize(name)
        return self.editor.graph()

    def _quantize(self, name: str) -> None:
        """Gives the products among those that read a tensor its integers; all of them where the
        tensor is a product."""
        maker = self.around.maker(name, Node)
        made = maker is not None and maker.name in self.names
        others = [r for r in self.editor.readers(name) if not isinstance(r, ops.Quantize)]
        readers = [r for r in others if made or r.name in self.names]
        if not readers:
            return
        readers += [r for r in others if self.ranges.roots.get(r.output) == name]
        put = Behind(name, self.editor)
        if end := self._end(name):
            put.alike(end, readers)
        elif isinstance(maker, ops.Binary) and self.is_scaled(maker):
            put.narrow(self._scaled(maker), readers)
        else:
            put.narrow(self.ranges.known[name].ends, readers)

    def _scaled(self, node: Node) -> tuple[float, float]:
        """Ends of a product with a constant that are so far from each other that half a step of
        int8 of the constant moves it by half a step at most."""
        ends = [self.ranges.known[each].ends for each in node.inputs]
        wide = [(min(low, 0.0) * ROOM, max(high, 0.0) * ROOM) for low, high in ends]
        corners = [x * y for x in wide[0] for y in wide[1]]
        return min(corners), max(corners)

    def _end(self, name: str) -> ops.Quantize | None:
        """The node that quantizes a tensor, or one that has its elements in another order."""
        for each in self.editor.readers(name):
            end = self._end(each.output) if isinstance(each, MOVES) else each
            if isinstance(end, ops.Quantize) and end.axis is None:
                return end
        return None

    def is_of_integers(self, name: str) -> bool:
        """Whether a tensor is one of integers, with its elements moved."""
        while maker := self.around.maker(name, MOVES):
            name = maker.inputs[0]
        return self.around.maker(name, AnyDequantize) is not None


def quantize_products(graph: Graph, ranges: Ranges) -> Graph:
    """Quantizes what products of two tensors read and write.

    before: y = MatMul(softmax, x)
    after:  s = Dequantize(Quantize(softmax)); p = MatMul(s, x); y = Dequantize(Quantize(p))
    """
    return _Products(graph, ranges).quantized()


def without_ranges(graph: Graph, ranges: Ranges) -> Graph:
    """The graph with the reason why operators between integers stay floats: no range of what they
    read or write follows from it."""
    products = _Products(graph, ranges)
    names = [node.name for node in graph.nodes if products.lacks_range(node)]
    if not names:
        return graph
    return replace(graph, reasons={**dict.fromkeys(names, WITHOUT_RANGE), **graph.reasons})
