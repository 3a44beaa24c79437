"""Dense layers of stacks of rows as products of matrices, which need no rows of one matrix.

before: r = Reshape(x); d = Dense(r, w); y = Reshape(d)     after: y = MatMul(x, w')
        [2, 8, 3]  →  [16, 3]  →  [16, 5]  →  [2, 8, 5]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.types import TensorType


def stack_products(graph: Graph) -> Graph:
    """The graph with every such layer as a MatMul; ``w'`` is the weights transposed."""
    uses, makers = graph.uses, graph.producers
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    stacked: dict[str, Node] = {}  # by the second Reshape's name
    gone: set[str] = set()
    for node in graph.nodes:
        dense = makers.get(node.data) if isinstance(node, ops.Reshape) else None
        rows = makers.get(dense.data) if isinstance(dense, ops.Dense) else None
        if not (isinstance(dense, ops.Dense) and isinstance(rows, ops.Reshape)):
            continue
        before, after = graph.tensors[rows.data].shape, graph.tensors[node.output].shape
        alone = len(uses[dense.output]) == 1 and dense.output not in graph.outputs
        if not (alone and before[:-1] == after[:-1] and dense.bias is None) or (
            dense.weight not in constants
        ):
            continue
        weight = f"{dense.name}.transposed"
        constants[weight] = np.ascontiguousarray(constants[dense.weight].T)
        tensors[weight] = TensorType(constants[weight].shape, "float32")
        stacked[node.name] = ops.MatMul(name=dense.name, output=node.output, a=rows.data, b=weight)
        gone.add(dense.name)
        if len(uses[rows.output]) == 1 and rows.output not in graph.outputs:
            gone.add(rows.name)
    nodes = tuple(stacked.get(n.name, n) for n in graph.nodes if n.name not in gone)
    return replace(graph, nodes=nodes, tensors=tensors, constants=constants)
