"""Products of matrices of int8 in int32, both of which are computed, as products of images.

The right factor's columns are tiles of weights as they lie in DRAM, so that no host rearranges
them (``operators/matmul.py``). Channels, which are summed, are filled up with zeros to a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.image_matmul import QWideMatMul
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.types import Shape, TensorType
from vdla.compiler.targets.accelerator.capability import Capability


def products_of_bytes(graph: Graph, accelerator: Capability) -> Graph:
    """Makes products of images of such products of matrices, where the accelerator takes them.

    before: p = MatMul(Cast(a), Cast(b)): int32[M, N] of a: int8[M, K], b: int8[K, N]
    after:  i = a as an image [1, K, 1, M]; j = b as one [1, K, 1, N]; q = QWideMatMul(i, j);
            p = q: int32[1, N, 1, M] as a matrix
    """

    def product(node: ops.MatMul, editor: Editor) -> Made:
        factors = [_bytes(name, editor) for name in (node.a, node.b)]
        if editor.tensors[node.output].dtype != "int32" or not all(factors):
            return None
        made, nodes = _Product(node, editor, accelerator.block).nodes(*filter(None, factors))
        return nodes if accelerator.takes(made, editor) else None

    return rewrite(graph, product)


def _bytes(name: str, editor: Editor) -> str | None:
    """The tensor of int8 of which one of int32 is made; None where there is none."""
    if (array := editor.constants.get(name)) is not None:
        small = array.astype(np.int8)
        return editor.constant(f"{name}.bytes", small) if (small == array).all() else None
    cast = editor.maker(name, ops.Cast)
    if cast is None or editor.tensors[cast.data].dtype != "int8":
        return None
    return cast.data


@dataclass
class _Product:
    """One product of matrices that becomes one of images, of ``block`` channels side by side."""

    node: ops.MatMul
    editor: Editor
    block: int
    made: list[Node] = field(default_factory=list)

    def nodes(self, left: str, right: str) -> tuple[QWideMatMul, list[Node]]:
        """The product of images, and all nodes in this one's place."""
        *stack, rows, columns = self.editor.shape(self.node.output)
        if prod(self.editor.shape(right)[:-2]) == 1:  # then all rows are those of one matrix
            rows, stack = prod(stack) * rows, []
        count, inner = prod(stack), self.editor.shape(left)[-1]
        channels = inner + -inner % self.block
        a = self.filled(self.stacked(left, stack, (rows, inner)), (count, rows, channels))
        b = self.filled(self.stacked(right, stack, (inner, columns)), (count, channels, columns))
        a = self.reshaped(self.turned(a), (count, channels, 1, rows))
        b = self.reshaped(b, (count, channels, 1, columns))
        output = self.tensor("sums", (count, columns, 1, rows), "int32")
        product = QWideMatMul(name=self.node.name, output=output, a=a, b=b)
        self.made.append(product)
        turned = self.turned(self.reshaped(output, (count, columns, rows)))
        last = ops.Reshape(name=f"{turned}.matrix", output=self.node.output, data=turned)
        return product, [*self.made, last]

    def tensor(self, hint: str, shape: Shape, dtype: str = "int8") -> str:
        """A new tensor."""
        return self.editor.tensor(f"{self.node.name}.{hint}", TensorType(shape, dtype))

    def stacked(self, name: str, stack: Sequence[int], matrix: Shape) -> str:
        """A factor as a stack [S, …] of matrices, repeated where the other one has more."""
        own = self.editor.shape(name)[:-2]
        if stack and prod(own) < prod(stack):
            own = (*[1] * (len(stack) - len(own)), *own)
            name = self.reshaped(name, (*own, *matrix))
            sizes = zip((*own, *matrix), (*stack, *matrix), strict=True)
            name = self.taken("repeated", name, [[*range(n)] * (m // n) for n, m in sizes])
        return self.reshaped(name, (prod(stack), *matrix))

    def filled(self, name: str, shape: Shape) -> str:
        """A stack of matrices with zeros behind its rows and columns."""
        before = self.editor.shape(name)
        if before == shape:
            return name
        sizes = zip(before, shape, strict=True)
        return self.taken("filled", name, [[*range(n), *[OUTSIDE] * (m - n)] for n, m in sizes])

    def taken(self, hint: str, name: str, tables: Sequence[Sequence[int]]) -> str:
        """The elements at some places along each axis."""
        shape = tuple(map(len, tables))
        places, result = tuple(p for table in tables for p in table), self.tensor(hint, shape)
        node = ops.Take(name=result, output=result, data=name, shape=shape, places=places)
        self.made.append(node)
        return result

    def turned(self, name: str) -> str:
        """A stack of matrices, each transposed."""
        (count, rows, columns), dtype = self.editor.shape(name), self.editor.tensors[name].dtype
        result = self.tensor("turned", (count, columns, rows), dtype)
        self.made.append(ops.Transpose(name=result, output=result, data=name, perm=(0, 2, 1)))
        return result

    def reshaped(self, name: str, shape: Shape) -> str:
        """A tensor's elements under another shape."""
        if self.editor.shape(name) == shape:
            return name
        result = self.tensor("image", shape, self.editor.tensors[name].dtype)
        self.made.append(ops.Reshape(name=result, output=result, data=name))
        return result
