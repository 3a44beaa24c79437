"""Tensors of a graph that have their bytes in common.

A copy goes away where both of its tensors can be one:

    before: r = Copy(a); Label; x = Copy(r); z = f(x); y = g(z); r = Copy(y); Goto
    after:  Label; z = f(x); y = g(z); Goto      where a, r, x and y are the same bytes

Two tensors may share bytes where no node needs both, but for copies between them; or where both are
written once, one as the copy of the other, so that they never differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.liveness import live_after, taken
from vdla.compiler.graph.ops.flow import Copy
from vdla.compiler.graph.ops.views import View


class Sharing:
    """Tensors that are bytes of others: ``views``, of which none is a view of another one."""

    def __init__(self, graph: Graph, views: Mapping[str, View]) -> None:
        self.graph, self.views = graph, dict(views)
        self.live = live_after(graph)
        self.taken = taken(graph, self.live)
        self.writers: dict[str, int] = dict.fromkeys(graph.inputs, 1)
        for node in graph.nodes:
            for name in node.outputs:
                if name not in self.views:
                    self.writers[name] = self.writers.get(name, 0) + 1
        self.copies = {n: each for n, each in enumerate(graph.nodes) if isinstance(each, Copy)}
        for name, place in self.views.items():
            self._merge(name, place.whole)

    def place(self, name: str) -> View:
        """The bytes that a tensor is."""
        return self.views.get(name, View(name))

    def is_free_after(self, name: str, number: int) -> bool:
        """Whether nobody needs the bytes of a tensor, which is no view, behind a node."""
        return name in self.live and not self.live[name] >> number & 1

    def is_same(self, copy: Copy) -> bool:
        """Whether a copy changes nothing, since it is one of bytes to themselves."""
        return copy.turn is None and self.place(copy.data) == self.place(copy.output)

    def join_copies(self) -> None:
        """Has the tensors of a copy be one, wherever they can."""
        for copy in self.copies.values():
            source, target = self.place(copy.data), self.place(copy.output)
            whole = not source.offset and not target.offset and copy.turn is None
            if whole and source != target and self._fit(source.whole, target.whole):
                self.join(target.whole, source)

    def join(self, name: str, place: View) -> None:
        """Makes a tensor that is no view, and all its views, bytes of another one."""
        self._merge(name, place.whole)
        self.writers[place.whole] += self.writers.pop(name)
        for each, (whole, offset) in self.views.items():
            if whole == name:
                self.views[each] = View(place.whole, place.offset + offset)
        self.views[name] = place

    def can_join(self, name: str, other: str, number: int) -> bool:
        """Whether a result of a node may take the bytes of what that node is the last to read."""
        if name == other or not self.is_free_after(other, number):
            return False
        common = self.taken[name] & self.taken[other]
        return not common & ~(1 << number | self._between(name, other))

    def _fit(self, name: str, other: str) -> bool:
        """Whether two tensors that are copied to one another may be one."""
        tensors = self.graph.tensors
        if name not in self.live or tensors[name].nbytes != tensors[other].nbytes:
            return False  # a constant, or a part
        once = self.writers[name] == self.writers[other] == 1
        common = self.taken[name] & self.taken[other]
        return once or not common & ~self._between(name, other)

    def _between(self, name: str, other: str) -> int:
        """The places of copies between two tensors."""
        places = 0
        for n, copy in self.copies.items():
            ends = {self.place(copy.data).whole, self.place(copy.output).whole}
            places |= (1 << n) * (ends == {name, other} and copy.turn is None)
        return places

    def _merge(self, name: str, other: str) -> None:
        """Adds where one tensor is needed to where another one is."""
        for places in (self.live, self.taken):
            if name in places and other in places:
                places[other] |= places.pop(name)
