"""Products of two activations: Q(MatMul(DQ, DQ))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from vdla.compiler.graph.boundaries import int8_source, meets
from vdla.compiler.graph.clusters.cluster import Cluster, End
from vdla.compiler.graph.form import Form, Order
from vdla.compiler.graph.ir import GraphError, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.add import QAdd
from vdla.compiler.graph.ops.clip import QClip
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.matmul import MatMul
from vdla.compiler.graph.ops.quantize import Dequantize, Quantize
from vdla.compiler.graph.ops.softmax import Softmax
from vdla.compiler.graph.ops.table import QTable
from vdla.compiler.graph.sums import check_products
from vdla.compiler.graph.types import Requant

PASSED = (Dequantize, Quantize, QAdd, QClip, QTable)  # on the way from scores to their softmax


@dataclass(frozen=True)
class Product(Cluster):
    """A product of two stacks of matrices, [..., M, K] and [..., K, O]."""

    rank: int

    @classmethod
    def find(cls, node: End, around: Neighbours) -> Self | None:
        """The product that a node quantizes, if both factors are int8 and the stacks alike."""
        core = around.maker(node.data, MatMul)
        if core is None:
            return None
        a, b = int8_source(core.a, around), int8_source(core.b, around)
        stacks = {around.shape(name)[:-2] for name in (core.a, core.b)}
        alone = len(around.readers(core.output)) == 1 and core.output not in around.outputs
        if a is None or b is None or len(stacks) > 1 or not alone:
            return None
        try:
            check_products(around.shape(core.a)[-1], a.zero_point[0], b.zero_point[0])
        except GraphError as error:
            around.reasons[core.name] = str(error)
            return None
        return cls(node, (a, b), len(around.shape(node.output)))

    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """Columns as channels, or rows where a softmax over columns follows: it works on pixels."""
        if not any(known):
            return None
        *stack, rows, columns = range(self.rank)
        softmax = meets(self.quantize.output, Softmax, PASSED, around)
        channels, pixels = (rows, columns) if softmax else (columns, rows)
        return Order(tuple(stack), (channels,), (pixels,))

    def orders(self, order: Order) -> tuple[Order, ...]:
        """Orders of the factors: the axis that is summed over lies in both factors' channels."""
        stack, (rows, columns) = order.batch, (self.rank - 2, self.rank - 1)
        return Order(stack, (columns,), (rows,)), Order(stack, (rows,), (columns,))

    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The product of two images."""
        (a, b), (of_a, of_b), result = self.sources, images, self.quantize
        if order.channels == (self.rank - 2,):
            a, b, of_a, of_b = b, a, of_b, of_a
        scale = np.float32(a.scale[0]) * np.float32(b.scale[0]) / np.float32(result.scale[0])
        return QMatMul(
            name=name,
            output=output,
            a=of_a,
            b=of_b,
            zeros=(a.zero_point[0], b.zero_point[0]),
            requant=Requant((float(scale),), result.zero_point[0]),
        )
