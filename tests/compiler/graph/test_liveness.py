"""Where the value of a tensor is needed, with jumps and without."""

from __future__ import annotations

from floats import Net

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.liveness import live_after, taken
from vdla.compiler.graph.ops import Add, Unary
from vdla.compiler.graph.ops.flow import Begin, Copy, Enter, Goto, Label, Leave, NextTurn
from vdla.compiler.graph.types import TensorType


def bits(places, count=20):
    """The numbers of the nodes."""
    return [n for n in range(count) if places >> n & 1]


def graph_with(nodes, inputs=(), outputs=()):
    """A graph of some nodes, all tensors alike."""
    names = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    return Graph(
        tuple(inputs), tuple(outputs), tuple(nodes), dict.fromkeys(names, TensorType((3,), "int8"))
    )


def copy(data, output, **more):
    return Copy(name=f"{output} from {data}", data=data, output=output, **more)


def neg(data, output):
    return Unary(name=output, output=output, data=data, function="neg")


def test_without_jumps():
    """From the node that writes it to before the last that reads it; a result to the end."""
    net = Net(3)
    a = net.unary("neg", "x")
    b = net.unary("abs", a)
    c = net.binary("add", "x", b)
    graph = net.graph(b)
    live = live_after(graph)
    assert {name: bits(places) for name, places in live.items()} == {
        "x": [0, 1], a: [0], b: [1, 2], c: [],
    }  # fmt: skip
    places = taken(graph, live)
    assert {name: bits(places[name]) for name in ("x", a, b, c)} == {
        "x": [0, 1, 2], a: [0, 1], b: [1, 2], c: [2],
    }  # fmt: skip


def test_a_loop_needs_what_its_next_turn_reads():
    """x is captured and needed in each turn; s is the state, y dead at the end of each turn."""
    graph = graph_with(
        [
            copy("x", "s"),  # 0
            Label(name="begin"),  # 1
            Add(name="y", output="y", a="s", b="x"),  # 2
            neg("y", "z"),  # 3
            copy("z", "s"),  # 4
            NextTurn(name="loop", turn="t", output="t", to="begin", turns=3, strict=False),  # 5
            neg("s", "r"),  # 6
        ],
        ["x", "t"],
        ["r"],
    )
    live = {name: bits(places) for name, places in live_after(graph).items()}
    assert live["x"] == [0, 1, 2, 3, 4, 5]
    assert live["s"] == [0, 1, 4, 5]
    assert (live["y"], live["z"]) == ([2], [3])
    assert live["t"] == [0, 1, 2, 3, 4, 5]


def test_a_jump_forward_passes_by():
    """Only one of two ways reads a, and b is written on both."""
    graph = graph_with(
        [
            neg("x", "a"),  # 0
            Goto(name="else", to="otherwise", condition="go", when=False),  # 1
            copy("a", "b"),  # 2
            Goto(name="then", to="end"),  # 3
            Label(name="otherwise"),  # 4
            copy("x", "b"),  # 5
            Label(name="end"),  # 6
            neg("b", "r"),  # 7
        ],
        ["x", "go"],
        ["r"],
    )
    live = {name: bits(places) for name, places in live_after(graph).items()}
    assert live["a"] == [0, 1]
    assert live["x"] == [0, 1, 4]
    assert live["b"] == [2, 3, 5, 6]


def test_what_is_written_piece_by_piece_is_needed_from_its_beginning():
    graph = graph_with(
        [
            neg("x", "a"),  # 0
            Begin(name="begun", output="all"),  # 1
            Label(name="begin"),  # 2
            neg("a", "row"),  # 3
            copy("row", "all", turn="t", whole="all"),  # 4
            NextTurn(name="loop", turn="t", output="t", to="begin", turns=3, strict=False),  # 5
        ],
        ["x", "t"],
        ["all"],
    )
    assert bits(live_after(graph)["all"]) == [1, 2, 3, 4, 5]


def test_a_call_reads_its_operands_and_what_is_behind_it_its_results():
    graph = graph_with(
        [
            copy("x", "f.argument0"),  # 0
            Enter(name="call", to="f", operands=("f.argument0",), results=("f.result0",)),  # 1
            copy("f.result0", "r"),  # 2
            Leave(name="end", operands=("r",)),  # 3
            Label(name="f"),  # 4
            neg("f.argument0", "f.result0"),  # 5
            Leave(name="f.end", operands=("f.result0",)),  # 6
        ],
        ["x"],
        ["r"],
    )
    live = {name: bits(places) for name, places in live_after(graph).items()}
    assert live["f.argument0"] == [0, 4]
    assert live["f.result0"] == [1, 5]
    assert live["r"] == [2]


def test_what_is_needed_behind_a_call_is_taken_in_functions():
    """But for results, and what the call saves."""
    nodes = [
        neg("x", "a"),  # 0
        neg("x", "b"),  # 1
        Enter(name="call", to="f", operands=(), results=("r",), frame=frozenset({"b"})),  # 2
        Add(name="s", output="s", a="a", b="b"),  # 3
        Add(name="t", output="t", a="s", b="r"),  # 4
        Leave(name="end", operands=("t",)),  # 5
        Label(name="f"),  # 6
        copy("c", "r"),  # 7
        Leave(name="f.end", operands=("r",)),  # 8
    ]
    graph = graph_with(nodes, ["x"], ["t"])
    places = taken(graph, live_after(graph))
    assert bits(places["a"]) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert bits(places["b"]) == [1, 2, 3]
    assert bits(places["r"]) == [2, 3, 4, 7, 8]
