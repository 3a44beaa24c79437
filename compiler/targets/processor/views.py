"""Tensors that take no function: they are some of another tensor's bytes.

    y = Reshape(x)                        y is x's bytes
    y = Take(x), rows 2 and 3 of 8        y is the bytes of two rows of x

Of a Take that is one run of the data's elements: a step of a sequence, a gate of a recurrent layer
of one sequence, some channels of one image.
"""

from __future__ import annotations

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.take import AnyTake
from vdla.compiler.graph.ops.views import View
from vdla.compiler.placement import PROCESSOR, Placements
from vdla.runtime.dtypes import dtype_of


def views(graph: Graph, placements: Placements) -> dict[str, View]:
    """Such tensors of a laid-out graph, where no accelerator takes part: its streams have their
    addresses. None is a view of another one.
    """
    result: dict[str, View] = {}
    if on_processor_alone(placements):
        for node in graph.nodes:
            view = view_of(node, graph)
            if view is not None:
                before = result.get(view.whole, View(view.whole))
                result[node.output] = View(before.whole, before.offset + view.offset)
    return result


def view_of(node: Node, graph: Graph) -> View | None:
    """Place of a node's result in its operand; None where it takes a function."""
    if isinstance(node, ops.Reshape | ops.QReshape) and node.data not in graph.constants:
        return View(node.data)
    if isinstance(node, AnyTake) and node.data not in graph.constants:
        data, result = graph.tensors[node.data], graph.tensors[node.output]
        start = node.start_of_run(data.shape)
        if start is not None and data.block == result.block:
            return View(node.data, start * dtype_of(data.dtype).itemsize)
    return None


def on_processor_alone(placements: Placements) -> bool:
    """Whether every node runs on the processor."""
    return all(placement.device == PROCESSOR for placement in placements.values())
