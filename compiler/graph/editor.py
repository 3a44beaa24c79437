"""Changes of a graph: an editor, and the rules that it applies.

    rule := function: node editor -> node* | None     of the kinds that the annotation of node names

A rule gives the nodes that stand in a node's place from then on: none of them where it is dropped.
Or it gives None, and whatever it has changed until then is taken back: a rule may try, and see only
then that it doesn't fit. ``rewrite`` has each node meet the rules in their order, sweep after
sweep, until no rule changes anything.

Names of new tensors and nodes are hints: they say where something comes from, to people, and get a
number where there is one of that name. Nothing looks for a name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from itertools import count
from typing import Never, cast, get_type_hints

from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.types import Array, Shape, TensorType

Made = Node | Sequence[Node] | None  # what stands in a node's place; None: it stays

Visit = Callable[[Never], Made]  # of some kinds of nodes

MOST_SWEEPS = 10_000  # more than any network's nodes could need, one after another


class Editor(Neighbours):
    """A graph under change. It begins as a copy of a graph, and ``graph`` gives what it became."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._before = graph
        self.tensors, self.constants = dict(graph.tensors), dict(graph.constants)
        self.reasons = dict(graph.reasons)
        self._places = [[node] for node in graph.nodes]
        self._at = {id(node): place for place, node in enumerate(graph.nodes)}
        self._undo: list[Callable[[], None]] = []
        self._known: dict[Hashable, str] = {}
        self._here: Node | None = None  # that is visited

    # Questions --------------------------------------------------------------------------------

    def nodes(self) -> Iterator[Node]:
        """All nodes in their order."""
        return (node for place in self._places for node in place)

    def graph(self) -> Graph:
        """The graph as it is now."""
        return replace(
            self._before,
            nodes=tuple(self.nodes()),
            tensors=dict(self.tensors),
            constants=dict(self.constants),
            reasons=dict(self.reasons),
        )

    def is_input(self, name: str) -> bool:
        """Whether the caller gives a tensor."""
        return name in self.inputs

    def is_new(self, name: str) -> bool:
        """Whether the graph didn't have a tensor of that name before."""
        return name not in self._before.tensors

    def position(self, node: Node) -> tuple[int, int]:
        """A node's place in the order, less than that of the nodes behind it."""
        place = self._at[id(node)]
        return place, self._index(place, node)

    def _index(self, place: int, node: Node) -> int:
        return next(n for n, each in enumerate(self._places[place]) if each is node)

    # Changes ----------------------------------------------------------------------------------

    def tensor(self, hint: str, kind: TensorType) -> str:
        """A new tensor of a type; its name."""
        name = self._fresh(hint)
        self.tensors[name], self._readers[name] = kind, ()

        def undo() -> None:
            del self.tensors[name], self._readers[name]

        self._undo.append(undo)
        return name

    def like(self, hint: str, shape: Shape, other: str) -> str:
        """A new tensor of the type of another one, but for its shape; its name."""
        return self.tensor(hint, replace(self.tensors[other], shape=shape))

    def constant(self, hint: str, array: Array) -> str:
        """A new constant; its name."""
        name = self.tensor(hint, TensorType(array.shape, str(array.dtype)))
        self.define(name, array)
        return name

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """The tensor that was made for a key before, or is made now; its name."""
        if key not in self._known:
            self._known[key] = make()

            def undo() -> None:
                del self._known[key]

            self._undo.append(undo)
        return self._known[key]

    def knows(self, key: Hashable) -> bool:
        """Whether a tensor was made for a key."""
        return key in self._known

    def define(self, name: str, array: Array) -> None:
        """Makes a tensor that no node writes a constant."""
        self.constants[name] = array

        def undo() -> None:
            del self.constants[name]

        self._undo.append(undo)

    def retype(self, name: str, kind: TensorType) -> None:
        """Gives a tensor another type."""
        before, self.tensors[name] = self.tensors[name], kind
        self._undo.append(lambda: self.tensors.update({name: before}))

    def replace(self, node: Node, *made: Node) -> None:
        """Puts nodes in a node's place."""
        place = self._at[id(node)]
        first = self._index(place, node)
        self._put(place, first, (node,), made)
        self._undo.append(lambda: self._put(place, first, made, (node,)))

    def insert(self, *made: Node) -> None:
        """Puts nodes before the one that is visited."""
        assert self._here is not None
        here = self._here
        self.replace(here, *made, here)

    def erase(self, node: Node) -> None:
        """Drops a node; what it writes another one is to write, or nobody to read."""
        self.replace(node)

    def rename(self, before: str, after: str) -> None:
        """Has the readers of one tensor read another one."""
        for node in {node.name: node for node in self._readers[before]}.values():
            self.replace(node, node.renamed({before: after}))

    def mark(self) -> int:
        """Number of changes that a rule has made so far."""
        return len(self._undo)

    def take_back(self, mark: int = 0) -> None:
        """Takes back all changes but the first few."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def _fresh(self, hint: str) -> str:
        """A name that no tensor has."""
        if hint not in self.tensors:
            return hint
        return next(name for n in count(1) if (name := f"{hint}{n}") not in self.tensors)

    def _put(self, place: int, first: int, old: Sequence[Node], new: Sequence[Node]) -> None:
        """Puts nodes in the place of those from the first on."""
        self._places[place][first : first + len(old)] = new
        for node in old:
            del self._at[id(node)]
            for name in node.outputs:
                if self._makers.get(name) is node:
                    del self._makers[name]
            for name in node.inputs:
                readers = self._readers[name]
                at = next(n for n, each in enumerate(readers) if each is node)
                self._readers[name] = readers[:at] + readers[at + 1 :]
        for node in new:
            self._at[id(node)] = place
            self._makers.update(dict.fromkeys(node.outputs, node))
            for name in node.inputs:
                self._readers[name] += (node,)

    # Walks ------------------------------------------------------------------------------------

    def walk(self, *visits: Visit) -> Graph:
        """The graph, less what nobody reads, after each node was visited once, in their order.

        A visit is for the kinds of nodes that its annotation names. What the first one gives that
        gives something stands in the node's place; nothing is taken back but by a visit itself.
        """
        known = [(cast("Callable[[Node], Made]", each), _kinds(each)) for each in visits]
        fitting: dict[type[Node], list[Callable[[Node], Made]]] = {}
        for node in (each for place in self._places for each in [*place]):
            kind = type(node)
            if kind not in fitting:
                fitting[kind] = [visit for visit, kinds in known if issubclass(kind, kinds)]
            if not fitting[kind]:
                continue
            self._here = node
            own = (visit(node) for visit in fitting[kind])
            made = next((each for each in own if each is not None), None)
            if made is not None:
                self.replace(node, *_several(made))
        self._here = None
        return self.result(bool(self._undo))

    def result(self, changed: bool) -> Graph:
        """The graph, less what nobody reads, where it was changed; else as it was, but for the
        reasons why nodes stayed float."""
        if changed:
            return remove_dead(self.graph())
        same = self.reasons == self._before.reasons
        return self._before if same else replace(self._before, reasons=self.reasons)

    # Rules ------------------------------------------------------------------------------------

    def sweep(self, rules: Sequence[_Rule]) -> bool:
        """Has every node meet the rules, in their order, until one changes something; whether one
        did for any."""
        changed, nodes = False, [*self.nodes()]
        kinds = {type(node) for node in nodes}
        fitting = {kind: [r for r in rules if issubclass(kind, r.kinds)] for kind in kinds}
        for node in nodes:
            own = fitting[type(node)]
            if own and id(node) in self._at:  # still there
                changed |= any(self._apply(rule, node) for rule in own)
        return changed

    def _apply(self, rule: _Rule, node: Node) -> bool:
        """Whether a rule changed something for a node of its kinds."""
        made = rule.function(node, self)
        if made is None:
            self.take_back()
            return False
        self.replace(node, *_several(made))
        self._undo.clear()
        return True


def _kinds(function: Callable[..., Made]) -> type[Node]:
    """The kinds of nodes, or a union of them, that a function's first parameter is annotated as."""
    name = next(iter(signature(function).parameters))
    kinds: type[Node] = get_type_hints(function)[name]
    return kinds


def _several(made: Node | Sequence[Node]) -> Sequence[Node]:
    return (made,) if isinstance(made, Node) else made


Rule = Callable[[Never, Editor], Made]  # of any kinds of nodes


@dataclass(frozen=True)
class _Rule:
    """A rule, and the kinds of nodes that it is for."""

    function: Callable[[Node, Editor], Made]
    kinds: type[Node]  # or several, as a union

    @classmethod
    def of(cls, function: Rule) -> _Rule:
        """A function as a rule."""
        return cls(cast("Callable[[Node, Editor], Made]", function), _kinds(function))


def rewrite(graph: Graph, *rules: Rule) -> Graph:
    """The graph when no rule changes anything any more, less what nobody reads by then.

    Raises:
        GraphError: the rules never come to an end.
    """
    every, kinds = [_Rule.of(rule) for rule in rules], {type(node) for node in graph.nodes}
    if not any(issubclass(kind, rule.kinds) for kind in kinds for rule in every):
        return graph  # without an editor, which takes long to make of a large graph
    editor, sweeps = Editor(graph), 0
    while editor.sweep(every):
        sweeps += 1
        if sweeps > MOST_SWEEPS:
            names = ", ".join(rule.__name__ for rule in rules)
            raise GraphError(f"{graph.name}: expected an end of {names}, found none")
    return editor.result(sweeps > 0)


def remove_dead(graph: Graph) -> Graph:
    """Drops nodes nobody reads, and the tensors and constants only they read."""
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if not live.isdisjoint(node.outputs):
            kept.append(node)
            live.update(node.inputs, node.outputs, node.inner_tensors)
    live.update(graph.inputs)
    return replace(
        graph,
        nodes=tuple(reversed(kept)),
        tensors={n: t for n, t in graph.tensors.items() if n in live},
        constants={n: a for n, a in graph.constants.items() if n in live},
    )
