"""A network with control laid out: nodes one behind another, with labels and jumps between them.

    If                                  While

      goto else unless condition          r = carried; turn = 0
      then's nodes                        goto end unless condition
      r = then's result                 begin:
      goto end                            x = r
    else:                                 body's nodes
      otherwise's nodes                   stacked[turn] = slice; r = result
      r = otherwise's result              goto last unless condition behind the turn
    end:                                  next turn begin
                                        last: end:

What turns convert at their beginning and back at their end is converted before ``begin`` and behind
``last`` (``hoist.py``).

A Scan has no conditions, and ``slice = scanned[turn]`` at the beginning of each turn. Functions
stand behind all else: one copies what it is given, so that it may call itself.

Most copies go away when it is decided which tensors share bytes (``graph/sharing.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.liveness import live_after
from vdla.compiler.graph.ops import flow
from vdla.compiler.graph.types import Array, TensorType
from vdla.compiler.hoist import Carried, hoist, without
from vdla.compiler.network import Network
from vdla.compiler.placement import PROCESSOR, Placement
from vdla.compiler.targets.target import Code

FLOW = Placement(PROCESSOR, "control flow")
Networks = Sequence[Network]


def linear(network: Network) -> Network:
    """A network whose graph has no regions any more; the same one where it had none."""
    if not network.regions and not network.functions:
        return network
    lines = _Lines()
    lines.add_network(network)
    if lines.called:
        lines.leave("main.end", network.graph.outputs)
    for name in lines.called:  # which grows
        lines.add_function(name, network.functions[name])
    graph = replace(
        network.graph,
        nodes=tuple(lines.nodes),
        tensors=lines.tensors,
        constants=lines.constants,
        functions={},
    )
    placements = {**lines.placements, **{n.name: FLOW for n in graph.of(flow.Flow)}}
    framed = _with_frames(graph, lines.called)
    return Network(framed, placements, network.targets, lines.codes)


class _Lines:
    """The nodes so far, with all that belongs to them; ``called`` are the functions that they
    call."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tensors: dict[str, TensorType] = {}
        self.constants: dict[str, Array] = {}
        self.placements: dict[str, Placement] = {}
        self.codes: dict[str, Code[object]] = {}
        self.called: list[str] = []

    # What stands in them ----------------------------------------------------------------------

    def add_network(self, network: Network) -> None:
        """The nodes of a network, those that hold regions with these.

        Raises:
            GraphError: a tensor's name is that of another graph's, too.
        """
        if twice := self.tensors.keys() & network.graph.tensors:
            name = network.graph.name
            raise GraphError(f"{name}: expected names of its own, found {min(twice)} again")
        self.tensors |= network.graph.tensors
        self.constants |= network.graph.constants
        self.placements |= network.placements
        self.codes |= network.codes
        for node in network.graph.nodes:
            if isinstance(node, ops.If):
                self.add_choice(node, network.regions[node.name])
            elif isinstance(node, ops.Loop):
                self.add_loop(node, *network.regions[node.name])
            elif isinstance(node, ops.Call):
                self.add_call(node)
            else:
                self.nodes.append(node)

    def add_choice(self, node: ops.If, regions: Networks) -> None:
        """One of two regions."""
        condition, *captured = node.operands
        names = f"{node.name}.else", f"{node.name}.end"
        self.goto(names[0], condition, when=False, name=f"{node.name}.begin")
        for region, name in zip(regions, names, strict=True):
            self.copy_all(captured, region.graph.inputs)
            self.add_network(region)
            self.copy_all(region.graph.outputs, node.outputs)
            if name != names[1]:
                self.goto(names[1], name=f"{node.name}.then")
            self.label(name)

    def add_loop(self, node: ops.Loop, body: Network) -> None:
        """A region, turn after turn."""
        loop = _LoopNames(node, body)
        hoisted = hoist(body, loop.inputs[: node.carried], loop.outputs[: node.carried])
        slots = dict(zip(node.outputs, hoisted, strict=False))
        self.begin_loop(loop, slots)
        self.label(loop.begin)
        for slot, each in slots.items():
            self.copy(_kept(slot, each), each.first)
        for name, part in loop.slices:
            self.copy(name, part, turn=loop.turn)
        self.add_network(without(body, hoisted))
        for name, whole in loop.rows:
            self.copy(name, whole, turn=loop.turn, whole=whole)
        for slot, each in slots.items():
            self.copy(each.last, _kept(slot, each))
        if loop.again:
            self.goto(loop.last, loop.again, when=False, name=f"{node.name}.turn")
        self.add(flow.NextTurn(
            name=node.name, output=loop.turn, turn=loop.turn, to=loop.begin, turns=node.turns,
            strict=bool(loop.again),
        ))  # fmt: skip
        self.label(loop.last)
        for slot, each in slots.items():
            if each.after:
                self.copy(_kept(slot, each), each.last)
                self.nodes += each.after
                self.copy(each.result, slot)
        self.label(loop.end)

    def begin_loop(self, loop: _LoopNames, slots: Mapping[str, Carried]) -> None:
        """All that comes before the first turn; of what is carried, the parts that turns read."""
        for name, part in (*zip(loop.carried, slots, strict=True), *loop.captured):
            self.copy(name, part)
        self.clear(loop.turn)
        for _, name in loop.rows:
            self.clear(name) if loop.again else self.begin(name)
        if loop.again:
            self.goto(loop.end, loop.node.operands[0], when=False, name=f"{loop.node.name}.head")
        for slot, each in slots.items():
            if each.before:
                self.tensors[_kept(slot, each)] = loop.body.graph.tensors[each.first]
                self.copy(slot, each.whole)
                self.nodes += each.before
                self.copy(each.first, _kept(slot, each))

    def add_call(self, node: ops.Call) -> None:
        """A function's operands where it reads them, a jump to it, and its results."""
        if node.function not in self.called:
            self.called.append(node.function)
        given = [argument(node.function, n) for n in range(len(node.operands))]
        made = [result(node.function, n) for n in range(len(node.outputs))]
        self.copy_all(node.operands, given)
        self.add(flow.Enter(
            name=node.name, to=node.function, operands=tuple(given), results=tuple(made)
        ))  # fmt: skip
        self.copy_all(made, node.outputs)

    def add_function(self, name: str, function: Network) -> None:
        """A function, between a label and its end."""
        graph = function.graph
        given = [argument(name, n) for n in range(len(graph.inputs))]
        made = [result(name, n) for n in range(len(graph.outputs))]
        self.tensors |= {g: graph.tensors[n] for g, n in zip(given, graph.inputs, strict=True)}
        self.tensors |= {m: graph.tensors[n] for m, n in zip(made, graph.outputs, strict=True)}
        self.label(name)
        self.copy_all(given, graph.inputs)
        self.add_network(function)
        self.copy_all(graph.outputs, made)
        self.leave(f"{name}.end", made)

    # Single nodes -----------------------------------------------------------------------------

    def add(self, node: Node) -> None:
        self.nodes.append(node)

    def copy(self, data: str, output: str, **more: str) -> None:
        """A copy, whose name says what it copies where."""
        self.add(flow.Copy(name=f"{output} from {data}", output=output, data=data, **more))

    def copy_all(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Copies of several tensors."""
        for source, target in zip(sources, targets, strict=True):
            self.copy(source, target)

    def clear(self, name: str) -> None:
        self.add(flow.Clear(name=f"{name} cleared", output=name))

    def begin(self, name: str) -> None:
        self.add(flow.Begin(name=f"{name} begun", output=name))

    def label(self, name: str) -> None:
        self.add(flow.Label(name=name))

    def goto(self, to: str, condition: str | None = None, *, when: bool = True, name: str) -> None:
        self.add(flow.Goto(name=name, to=to, condition=condition, when=when))

    def leave(self, name: str, results: Iterable[str]) -> None:
        self.add(flow.Leave(name=name, operands=tuple(results)))


def _kept(slot: str, carried: Carried) -> str:
    """The tensor that has what a loop carries, between turns."""
    return f"{slot}.kept" if carried.before else slot


class _LoopNames:
    """Names of a loop's labels, and of tensors around it and in its body that go together.

    ``again`` is its condition behind a turn; empty where its number of turns is known.
    """

    def __init__(self, node: ops.Loop, body: Network) -> None:
        self.node, self.body = node, body
        is_open, scanned = isinstance(node, ops.While), getattr(node, "scanned", 0)
        self.begin, self.last, self.end = (
            f"{node.name}.{part}" for part in ("begin", "last", "end")
        )
        self.again = body.graph.outputs[0] if is_open else ""
        self.turn, *self.inputs = body.graph.inputs
        self.outputs = body.graph.outputs[is_open:]
        operands, count = node.operands[is_open:], node.carried
        self.carried = operands[:count]
        pairs = list(zip(operands[count:], self.inputs[count:], strict=True))
        self.slices, self.captured = pairs[:scanned], pairs[scanned:]
        self.rows = list(zip(self.outputs[count:], node.outputs[count:], strict=True))


def argument(function: str, number: int) -> str:
    """The tensor in which a function gets an operand."""
    return f"{function}.argument{number}"


def result(function: str, number: int) -> str:
    """The tensor in which a function gives a result."""
    return f"{function}.result{number}"


def _with_frames(graph: Graph, functions: Sequence[str]) -> Graph:
    """The graph with the frame of each call: what the function around it needs when it returns."""
    if not functions:
        return graph
    live, nodes = live_after(graph), list(graph.nodes)
    around, arounds, written = "", list[str](), dict[str, str]()  # functions of nodes and results
    for node in nodes:
        around = node.name if isinstance(node, flow.Label) and node.name in functions else around
        arounds.append(around)
        written.update(dict.fromkeys(node.outputs, around))
    for n, (node, around) in enumerate(zip(nodes, arounds, strict=True)):
        if isinstance(node, flow.Enter) and around:
            kept = (t for t, where in written.items() if where == around and live[t] >> n & 1)
            nodes[n] = replace(node, frame=frozenset(kept) - {*node.results})
    return replace(graph, nodes=tuple(nodes))
