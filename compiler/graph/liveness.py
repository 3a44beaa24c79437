"""Places in a graph at which the value of a tensor is still needed, jumps considered.

Places are the bits of an integer: bit n stands for node n, or for the place behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.flow import Enter, Flow, Goto, Label, Leave, NextTurn

Places = dict[str, int]


def live_after(graph: Graph) -> Places:
    """Tensors that nodes write or the caller gives, and the nodes behind which each one's value is
    needed, by nodes or the caller."""
    if any(isinstance(node, Flow) for node in graph.nodes):
        return _live_with_jumps(graph)
    end = len(graph.nodes)
    first = dict.fromkeys(graph.inputs, 0)
    first |= {name: n for n, node in enumerate(graph.nodes) for name in node.outputs}
    last = {name: n for n, node in enumerate(graph.nodes) for name in node.inputs}
    last |= dict.fromkeys(graph.outputs, end)
    return {name: (1 << max(last.get(name, n), n)) - (1 << n) for name, n in first.items()}


def taken(graph: Graph, live: Places) -> Places:
    """Nodes at which each tensor is needed, read or written; ``live`` is what :func:`live_after`
    gives. What is needed behind a call, and not saved by it, is needed in all functions."""
    result, functions = {n: places & (places << 1) for n, places in live.items()}, _functions(graph)
    for name in graph.inputs:
        result[name] |= live[name] & 1
    for n, node in enumerate(graph.nodes):
        for name in (*node.inputs, *node.outputs):
            if name in result:
                result[name] |= 1 << n
        if isinstance(node, Enter):
            kept = (name for name, places in live.items() if places >> n & 1)
            for name in {*kept} - {*node.results} - node.frame:
                result[name] |= functions
    return result


def _functions(graph: Graph) -> int:
    """The places of functions: all behind the first end."""
    ends = (n for n, node in enumerate(graph.nodes) if isinstance(node, Leave))
    first = next(ends, len(graph.nodes))
    return (1 << len(graph.nodes)) - (1 << first)


def _live_with_jumps(graph: Graph) -> Places:
    """Places as :func:`live_after` gives them, of a graph with jumps: needs flow backwards, until
    nothing changes."""
    nodes, names = graph.nodes, _names(graph)
    number = {name: n for n, name in enumerate(names)}
    reads, writes = (
        [sum(1 << number[name] for name in {*each} if name in number) for each in group]
        for group in ([n.inputs for n in nodes], [n.outputs for n in nodes])
    )
    labels = {node.name: n for n, node in enumerate(nodes) if isinstance(node, Label)}
    successors = [list(_successors(n, node, labels)) for n, node in enumerate(nodes)]
    at_end = sum(1 << number[name] for name in {*graph.outputs} if name in number)
    before, behind = [0] * len(nodes) + [at_end], [0] * len(nodes)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(nodes))):
            behind[n] = 0
            for each in successors[n]:
                behind[n] |= before[each]
            new = behind[n] & ~writes[n] | reads[n]
            changed |= new != before[n]
            before[n] = new
    result = dict.fromkeys(names, 0)
    for n, places in enumerate(behind):
        while places:
            lowest = places & -places
            result[names[lowest.bit_length() - 1]] |= 1 << n
            places ^= lowest
    return result


def _names(graph: Graph) -> list[str]:
    """Names of what the caller gives and nodes write."""
    written = (name for node in graph.nodes for name in node.outputs)
    return list(dict.fromkeys((*graph.inputs, *written)))


def _successors(number: int, node: Node, labels: Mapping[str, int]) -> Iterator[int]:
    """The nodes that may come behind one; the number of nodes stands for the end."""
    if isinstance(node, Goto | NextTurn):
        yield labels[node.to]
    if not (isinstance(node, Leave) or (isinstance(node, Goto) and node.condition is None)):
        yield number + 1
