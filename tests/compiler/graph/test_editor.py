"""The editor of graphs: what it says of a changed graph, what it takes back, and its driver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.graph import editor as module
from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, remove_dead, rewrite
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.types import TensorType

KIND = TensorType((2, 3), "float32")


def chain(*functions, outputs=("y",)):
    """x, and a function of what stands before, for each; the last writes y, the others t0, t1 …"""
    names = ["x", *(f"t{n}" for n in range(len(functions) - 1)), "y"]
    nodes = [
        ops.Unary(name=f"n{n}", output=names[n + 1], data=names[n], function=function)
        for n, function in enumerate(functions)
    ]
    return verify(Graph(("x",), outputs, tuple(nodes), dict.fromkeys(names, KIND)))


def functions(graph):
    return [node.function for node in graph.nodes]


def folded_negations(node: ops.Unary, editor):
    """neg(neg(x)) is x."""
    maker = editor.own_maker(node.data, ops.Unary)
    if node.function != "neg" or maker is None or maker.function != "neg":
        return None
    if node.output in editor.outputs:
        return None
    editor.rename(node.output, maker.data)
    editor.erase(maker)
    return ()


def test_rules_run_until_nothing_changes():
    graph = chain("neg", "neg", "neg", "neg", "exp")
    result = verify(rewrite(graph, folded_negations))
    assert functions(result) == ["exp"]
    assert result.nodes[0].data == "x"
    assert set(result.tensors) == {"x", "y"}
    assert functions(graph) == ["neg", "neg", "neg", "neg", "exp"]


def test_the_first_rule_that_changes_something_wins():
    def into(function):
        def made(node: ops.Unary, editor):
            return replace(node, function=function) if node.function == "neg" else None

        return made

    assert functions(rewrite(chain("neg"), into("exp"), into("sqrt"))) == ["exp"]
    assert functions(rewrite(chain("neg"), into("sqrt"), into("exp"))) == ["sqrt"]


def test_a_rule_meets_nodes_of_its_kinds_alone():
    met = []

    def rule(node: ops.Relu | ops.Unary, editor):
        met.append(node)

    graph = chain("neg")
    relu = ops.Relu(name="r", output="z", data="y")
    clip = ops.Clip(name="c", output="w", data="z", low=0.0, high=1.0)
    tensors = {**graph.tensors, "z": KIND, "w": KIND}
    whole = replace(graph, nodes=(*graph.nodes, relu, clip), tensors=tensors, outputs=("w",))
    rewrite(whole, rule)
    assert [node.name for node in met] == ["n0", "r"]


def test_what_a_rule_tried_is_taken_back():
    def tried(node: ops.Unary, editor):
        name = editor.constant("x", np.zeros((2, 3), np.float32))
        assert name == "x1"
        editor.retype("x", replace(KIND, dtype="int8"))
        editor.rename("x", name)
        for each in [*editor.nodes()]:
            editor.erase(each)
        editor.reasons[node.name] = "tried"
        assert not [*editor.nodes()]
        return None

    graph = chain("neg", "exp")
    result = rewrite(graph, tried)
    assert result.nodes == graph.nodes
    assert (result.tensors, result.constants) == (graph.tensors, {})
    assert result.reasons == {"n0": "tried", "n1": "tried"}  # a reason stays


def test_new_names_are_free():
    editor = Editor(chain("neg"))
    assert [editor.tensor("x", KIND) for _ in range(3)] == ["x1", "x2", "x3"]
    assert editor.tensor("z", KIND) == "z"
    assert editor.is_new("z")
    assert not editor.is_new("x")


def test_nodes_take_the_place_of_one():
    editor = Editor(chain("neg", "exp", "sqrt"))
    _, second, _ = editor.nodes()
    middle = editor.tensor("m", KIND)
    first = replace(second, name="a", output=middle)
    editor.replace(second, first, replace(second, name="b", data=middle))
    assert [node.name for node in editor.nodes()] == ["n0", "a", "b", "n2"]
    assert editor.own_reader("t0", ops.Unary) is first
    nodes = [*editor.nodes()]
    assert sorted(set(nodes), key=editor.position) == nodes
    verify(editor.graph())


def test_an_output_has_readers_beside_those_in_the_graph():
    editor = Editor(chain("neg", "exp", outputs=("t0", "y")))
    assert editor.maker("t0", ops.Unary).name == "n0"
    assert editor.own_maker("t0", ops.Unary) is None
    assert editor.own_reader("t0", ops.Unary) is None
    assert editor.maker(None, Node) is editor.maker("x", Node) is None


def test_rules_without_an_end_are_an_error(monkeypatch):
    monkeypatch.setattr(module, "MOST_SWEEPS", 20)

    def turned(node: ops.Unary, editor):
        return replace(node, function="exp" if node.function == "neg" else "neg")

    with pytest.raises(GraphError, match=r"^graph: expected an end of turned, found none$"):
        rewrite(chain("neg"), turned)


def test_a_graph_that_no_rule_changes_keeps_what_nobody_reads():
    graph = chain("neg", "exp", outputs=("t0",))
    assert rewrite(graph).nodes == graph.nodes
    assert functions(remove_dead(graph)) == ["neg"]


def test_a_walk_visits_each_node_once_in_order():
    """What was inserted or put in a node's place isn't visited; what was renamed is, as it is."""
    graph = chain("neg", "exp", "sqrt")
    editor, met = Editor(graph), []

    def first(node: ops.Unary):
        met.append((node.function, node.data))
        if node.function != "exp":
            return None
        middle = editor.tensor("m", KIND)
        editor.insert(replace(node, name="a", output=middle, function="abs"))
        editor.rename(node.output, middle)
        return ()

    result = verify(editor.walk(first))
    assert met == [("neg", "x"), ("exp", "t0"), ("sqrt", "m")]
    assert functions(result) == ["neg", "abs", "sqrt"]


def test_the_first_visit_that_gives_something_wins():
    editor, met = Editor(chain("neg")), []

    def nothing(node: ops.Unary):
        met.append("nothing")

    def other(node: ops.Clip):
        met.append("other")

    def turned(node: Node):
        return replace(node, function="exp")

    def late(node: Node):
        met.append("late")

    assert functions(editor.walk(nothing, other, turned, late)) == ["exp"]
    assert met == ["nothing"]


def test_a_walk_that_changes_nothing_gives_the_graph_itself():
    graph = chain("neg", "exp", outputs=("t0",))
    editor = Editor(graph)

    def why(node: ops.Unary):
        editor.reasons[node.name] = "why"

    assert Editor(graph).walk() is graph
    assert editor.walk(why).reasons == {"n0": "why", "n1": "why"}
    assert graph.reasons == {}


def test_a_key_has_one_tensor_until_it_is_taken_back():
    editor = Editor(chain("neg"))

    def make():
        return editor.tensor("m", KIND)

    assert editor.once("key", make) == editor.once("key", make) == "m"
    assert editor.once("other", make) == "m1"
    assert editor.knows("key")
    editor.take_back()
    assert not editor.knows("key")
    assert set(editor.tensors) == {"x", "y"}


@given(data=st.data())
def test_the_editor_knows_its_graph(data):
    """Makers and readers are those of the graph that it gives, before and after a step back."""
    editor = Editor(chain(*["neg"] * data.draw(st.integers(1, 5))))
    graphs = [editor.graph()]
    marks = [editor.mark()]
    for _ in range(data.draw(st.integers(0, 6))):
        change(data, editor)
        graphs.append(editor.graph())
        marks.append(editor.mark())
        check(editor)
    back = data.draw(st.integers(0, len(marks) - 1))
    editor.take_back(marks[back])
    assert editor.graph() == graphs[back]
    check(editor)


def change(data, editor):
    """One change; the graph need not be a legal one after it."""
    nodes = [*editor.nodes()]
    what = data.draw(st.sampled_from(["double", "erase", "rename", "constant"]))
    if what == "rename":
        names = [*editor.tensors]
        editor.rename(data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names)))
    elif what == "constant":
        editor.constant("c", np.zeros(2, np.float32))
    elif nodes:
        node = data.draw(st.sampled_from(nodes))
        middle = editor.tensor("m", KIND)
        first = replace(node, name=middle, output=middle)
        made = (first, replace(node, data=middle)) if what == "double" else ()
        editor.replace(node, *made)


def check(editor):
    graph = editor.graph()
    for name, readers in graph.uses.items():
        assert sorted(map(id, editor.readers(name))) == sorted(map(id, readers))
    for name in graph.tensors:
        assert editor.maker(name, Node) is graph.producers.get(name)
