"""Products whose scales are measured as they run, in other operators: :func:`spell_dynamic`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.dynamic_matmul import BYTE, HALF, LEAST, MOST_OF, DynamicMatMul
from vdla.compiler.graph.types import Shape, TensorType

ROWS, COLUMNS = -2, -1  # axes along which the bytes of a left and of a right factor lie


def spell_dynamic(graph: Graph) -> Graph:
    """Writes such products out: scales, bytes, one product of all bytes in int32, and its sum.

    before: y = DynamicMatMul(a, b), 8 and 8 bits
    after:  s = max |a| / 127; q = Cast(rint(a / s)): int8; t, r of b; p = MatMul(q, r): int32;
            y = Cast(p): float32 * (s * t)

    Both bytes of a left factor of 16 bits are rows of one matrix, of a right factor columns.
    """
    return rewrite(graph, _spelled)


def _spelled(node: DynamicMatMul, editor: Editor) -> list[Node]:
    """The nodes of one product."""
    spelling = _Spelling(node, editor)
    first, left = spelling.bytes(node.a, node.bits[0], ROWS)
    second, right = spelling.bytes(node.b, node.bits[1], COLUMNS)
    sums = spelling.product(left, right)
    total, scale = spelling.total(sums), spelling.binary("mul", first, second)
    last = ops.Binary(name=node.name, output=node.output, a=total, b=scale, function="mul")
    return [*spelling.nodes, last]


@dataclass
class _Spelling:
    """One product that is written out."""

    node: DynamicMatMul
    editor: Editor
    nodes: list[Node] = field(default_factory=list)

    def add(self, op: type[Node], size: Shape, dtype: str = "float32", **fields: object) -> str:
        """A node more; its result."""
        hint = f"{self.node.name}.{op.__name__.lower()}"
        name = self.editor.tensor(hint, TensorType(size, dtype))
        self.nodes.append(cast("Callable[..., Node]", op)(name=name, output=name, **fields))
        return name

    def binary(self, function: str, a: str, b: str | float) -> str:
        """A function of two tensors, or of one and a number."""
        kind = self.editor.tensors[a]
        if not isinstance(b, str):
            b = self.editor.constant(f"{self.node.name}.number", np.asarray(b, kind.dtype))
        shape = np.broadcast_shapes(kind.shape, self.editor.shape(b))
        if function == "add":
            return self.add(ops.Add, shape, kind.dtype, a=a, b=b)
        return self.add(ops.Binary, shape, kind.dtype, a=a, b=b, function=function)

    def cast(self, data: str, dtype: str) -> str:
        """Elements as others of another type."""
        return self.add(ops.Cast, self.editor.shape(data), dtype, data=data)

    def bytes(self, data: str, bits: int, axis: int) -> tuple[str, str]:
        """The scale of a factor, and its bytes as int8, one behind another along an axis."""
        shape, most = self.editor.shape(data), MOST_OF[bits]
        size = self.add(ops.Unary, shape, data=data, function="abs")
        every = tuple(range(len(shape)))
        largest = self.add(ops.Reduce, (), data=size, function="max", axes=every, keepdims=False)
        scale = self.binary("div", self.binary("max", largest, LEAST), float(most))
        steps = self.add(ops.Unary, shape, data=self.binary("div", data, scale), function="round")
        steps = self.binary("min", self.binary("max", steps, -float(most)), float(most))
        if bits == 8:
            return scale, self.cast(steps, "int8")
        whole = self.cast(steps, "int32")
        high = self.binary("shr", self.binary("add", whole, HALF), 8)
        low = self.binary("sub", whole, self.binary("mul", high, BYTE))
        parts = self.cast(high, "int8"), self.cast(low, "int8")
        both = [*shape]
        both[axis] *= 2
        place = len(shape) + axis
        return scale, self.add(ops.Concat, tuple(both), "int8", parts=parts, axis=place)

    def product(self, left: str, right: str) -> str:
        """The sums of products of bytes."""
        a, b = self.cast(left, "int32"), self.cast(right, "int32")
        first, second = self.editor.shape(a), self.editor.shape(b)
        stack = np.broadcast_shapes(first[:-2], second[:-2])
        return self.add(ops.MatMul, (*stack, first[-2], second[-1]), "int32", a=a, b=b)

    def total(self, sums: str) -> str:
        """The sums with the weights of their bytes, in float32."""
        shape = self.editor.shape(self.node.output)
        count = [2 if bits == 16 else 1 for bits in self.node.bits]
        total = ""
        for row in range(count[0]):
            for column in range(count[1]):
                part = self.part(sums, shape, (row, column))
                weight = BYTE ** (sum(count) - 2 - row - column)
                part = self.cast(part, "float32")
                part = part if weight == 1 else self.binary("mul", part, float(weight))
                total = self.binary("add", total, part) if total else part
        return total

    def part(self, sums: str, shape: Shape, at: tuple[int, int]) -> str:
        """The sums of one byte of each factor."""
        whole = self.editor.shape(sums)
        if whole == shape:
            return sums
        tables = [range(size) for size in shape]
        for axis, number in zip((ROWS, COLUMNS), at, strict=True):
            size = shape[axis]
            tables[axis] = range(number * size, (number + 1) * size)
        places = tuple(place for table in tables for place in table)
        return self.add(ops.Take, shape, "int32", data=sums, shape=shape, places=places)
