"""What works element by element on a convolution's result is done where that is computed.

before: c = Conv2d(x, w); s = Add(c, r); y = Relu(s)     after: y = Conv2d(x, w) + Add(r) + Relu
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.fused import fuse

ELEMENTWISE = (ops.Relu, ops.Clip, ops.Add, ops.Unary, ops.Binary)


def fuse_epilogues(graph: Graph) -> Graph:
    """The graph with every such chain as one :class:`ops.Fused`, where the chain ends."""
    uses = graph.uses()
    chains: dict[str, list[Node]] = {}  # by what they write, while something can join them
    order: list[list[Node]] = []
    for node in graph.nodes:
        chain = _joined(node, graph, chains)
        if chain is None:
            chain = []
        else:  # the whole chain moves to where its last operand is known
            order.remove(chain)
            del chains[chain[-1].output]
        chain.append(node)
        order.append(chain)
        alone = len(uses[node.output]) == 1 and node.output not in graph.outputs
        if alone and _anchored(chain, graph):
            chains[node.output] = chain
    nodes = [c[0] if len(c) == 1 else fuse(c, c[0].name) for c in order]
    return replace(graph, nodes=tuple(nodes))


def _anchored(chain: list[Node], graph: Graph) -> bool:
    """Whether it begins with a convolution of blocks."""
    return isinstance(chain[0], ops.Conv2d) and graph.tensors[chain[0].output].block > 0


def _joined(node: Node, graph: Graph, chains: dict[str, list[Node]]) -> list[Node] | None:
    """The chain that a node may join: of several, the one whose result is known last."""
    if not isinstance(node, ELEMENTWISE):
        return None
    for name in reversed(chains):
        same = graph.tensors[name].physical == graph.tensors[node.output].physical
        if name in node.inputs and same:
            return chains[name]
    return None
