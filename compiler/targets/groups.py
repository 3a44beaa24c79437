"""Groups of operators: those that work element by element are one function with the operator that
they read from or are read by.

before: c = Conv2d(x, w); s = Add(c, r); y = Relu(s)     after: y = Conv2d(x, w) + Add(r) + Relu
before: s = Mul(a, b); e = Erf(s); y = Mul(s, e)         after: y = Mul(a, b) + Erf + Mul
before: s = Mul(a, a); m = Reduce(s)                     after: m = Mul(a, a) + Reduce
before: t = Take(a, rows 0 to 8); y = Add(t, b)          after: y = Take(a) + Add(b)

As in TVM (OSDI'18, section 3.1): an operator joins its immediate post-dominator, the first one that
all ways from it to a result lead through, with all that stands between them. All of these have as
many elements, and of a group nobody sees more than the last result. At most one operator of a group
is more than element-wise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.graph.types import Shape

LARGEST = 64  # operators that a function computes for an element, each as often as it is read


Question = Callable[[Node], bool]


def fuse_groups(graph: Graph, takes_epilogue: Question, own: Question = lambda node: True) -> Graph:
    """The graph with every such group as one :class:`ops.Fused`, where its last operator is.

    Args:
        graph: it is laid out.
        takes_epilogue: whether an operator that is more than element-wise lets others work on its
            elements as they come: its template schedules whatever is computed of its result.
        own: whether an operator runs on the target that fuses; others stay as they are.
    """
    return _Fuser(graph, takes_epilogue, own).run()


class _Fuser:
    def __init__(self, graph: Graph, takes_epilogue: Question, own: Question) -> None:
        self.graph, self.takes_epilogue = graph, takes_epilogue
        self.own = {node.name for node in graph.nodes if own(node)}
        self.uses = graph.uses
        self.order = {node.name: n for n, node in enumerate(graph.nodes)}
        self.last = _post_dominators(graph)
        self.groups = {node.name: [node] for node in graph.nodes}

    def run(self) -> Graph:
        nodes = [node for node in self.graph.nodes if node.name in self.own]
        wide = [node for node in nodes if self.takes_epilogue(node)]
        narrow = [node for node in nodes if not _leads(node)]
        for node in (*reversed(wide), *reversed(narrow)):
            self._join(node)
        fused = []
        for node in self.graph.nodes:
            group = self.groups[node.name]
            if node is group[-1]:
                fused.append(self._fused(group))
        return replace(self.graph, nodes=tuple(fused))

    def _join(self, node: Node) -> None:
        """Makes one group of a node, its post-dominator and what is between them, if they may."""
        end = self.last[node.name]
        if end is None:
            return
        between = self._between(node, end)
        if between is None:
            return
        names = [node.name, end.name, *between]
        parts = {part.name: part for name in names for part in self.groups[name]}
        group = sorted(parts.values(), key=lambda part: self.order[part.name])
        if sum(_leads(part) for part in group) > 1 or _size(group) > LARGEST:
            return
        if not self.own.issuperset(part.name for part in group):
            return
        for part in group:
            self.groups[part.name] = group

    def _between(self, node: Node, end: Node) -> list[str] | None:
        """The operators on all ways from one to the other; None if they can't be one function."""
        shape = self._shape(node)
        if end.absorbs(node):
            return [] if self.uses[node.output] == (end,) else None
        if isinstance(node, ops.Transpose):
            return None
        result: list[str] = []
        waiting = [node]
        while waiting:
            for reader in self.uses[waiting.pop().output]:
                if not reader.ELEMENTWISE or self._shape(reader) != shape:
                    return None
                if reader is not end and reader.name not in result:
                    result.append(reader.name)
                    waiting.append(reader)
        return result

    def _shape(self, node: Node) -> Shape:
        return self.graph.tensors[node.output].physical

    def _fused(self, group: list[Node]) -> Node:
        """A group as one node, named after the operator that is more than element-wise."""
        if len(group) == 1:
            return group[0]
        lead = next(filter(_leads, group), group[0])
        return fuse(group, lead.name)


def _leads(node: Node) -> bool:
    """Whether it is more than element-wise, or than other addresses."""
    is_slice = isinstance(node, ops.Take) and node.even_places is not None
    return not (node.ELEMENTWISE or isinstance(node, ops.Transpose) or is_slice)


def _size(group: list[Node]) -> int:
    """Number of operators that an element takes when each is computed wherever it is read."""
    sizes: dict[str, int] = {}
    for node in group:
        sizes[node.output] = 1 + sum(sizes.get(name, 0) for name in node.inputs)
    return sizes[group[-1].output]


def _post_dominators(graph: Graph) -> dict[str, Node | None]:
    """Node name to its immediate post-dominator; None where that is the end (Cooper, Harvey and
    Kennedy, "A Simple, Fast Dominance Algorithm", 2001, on a graph without circles)."""
    uses, result = graph.uses, dict[str, Node | None]()
    depth: dict[str, int] = {}
    for node in reversed(graph.nodes):
        end: Node | None = None
        if {*node.outputs}.isdisjoint(graph.outputs):
            readers = [reader for name in node.outputs for reader in uses[name]]
            end = readers[0] if readers else None
            for reader in readers[1:]:
                end = _common(end, reader, result, depth)
        result[node.name] = end
        depth[node.name] = depth[end.name] + 1 if end else 0
    return result


def _common(
    a: Node | None, b: Node | None, parents: dict[str, Node | None], depth: dict[str, int]
) -> Node | None:
    """The first node that both ways to the end have."""
    while a is not b:
        if a is None or b is None:
            return None
        if depth[a.name] >= depth[b.name]:
            a = parents[a.name]
        else:
            b = parents[b.name]
    return a
