"""Run plans of networks with control: steps, the numbers that jumps name, and reports."""

from __future__ import annotations

import pytest
from control_texts import CHOICE, FACTORIAL, SUMS, compiled, counted, graph_of, run

from vdla.runtime.plan import Call, Clear, Copy, Host, Jump, Next, Return

STACK = counted(["a"], ["d"], ["two: d = Add(a, a) : float32[3]"], turns=4, stacked=["a"])


def kinds(graph):
    return [type(step) for step in compiled(graph).steps]


def test_jumps_name_steps():
    """Labels are no steps, nor are copies of bytes to themselves."""
    steps = compiled(graph_of(CHOICE)).steps
    assert [type(step) for step in steps] == [Jump, Copy, Jump, Host]
    assert steps[0] == Jump("if.begin", 3, "go", when=False)
    assert steps[2] == Jump("if.then", 4)  # behind the last step


def test_a_scan():
    steps = compiled(graph_of(SUMS)).steps
    assert [type(step) for step in steps] == [Copy, Clear, Copy, Host, Copy, Next]
    assert [step.way for step in steps if isinstance(step, Copy)] == ["whole", "take", "put"]
    assert steps[-1] == Next("scan", 2, "turn", 4)


def test_a_while_is_strict():
    steps = compiled(STACK).steps
    assert steps[-1] == Next("loop", steps[-1].to, "turn", 4, strict=True)
    assert [type(step) for step in steps[:4]] == [Host, Clear, Clear, Jump]


def test_a_function_is_called():
    steps = compiled(graph_of(FACTORIAL)).steps
    calls = [step for step in steps if isinstance(step, Call)]
    assert calls == [Call("call", 2), Call("again", 2, ("n2",))]
    assert [n for n, step in enumerate(steps) if isinstance(step, Return)] == [1, len(steps) - 1]


@pytest.mark.parametrize(
    ("graph", "nodes"),
    [
        (graph_of(CHOICE), ["if", "neg"]),
        (graph_of(SUMS), ["scan", "add"]),
        (graph_of(FACTORIAL), ["call", "test", "if", "less", "again", "times"]),
    ],
    ids=["choice", "sums", "factorial"],
)
def test_a_report_has_nodes_of_regions_and_functions(graph, nodes):
    rows = compiled(graph).metadata["placement"]
    assert [row["name"] for row in rows] == nodes


def test_a_stacked_result_keeps_earlier_slices():
    """What a body computes doesn't lie where its loop stacks."""
    rows = run(STACK, n=3, a0=[1.0, 2.0, 3.0])["a.all"].tolist()
    assert rows == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [4.0, 8.0, 12.0], [0.0, 0.0, 0.0]]


def test_functions_of_two_regions_have_names_of_their_own():
    """As C has them, f.1 and f_1 are one name."""
    text = CHOICE.replace("          output x1\n          output x1\n", """\
          output y1
          output x1
          f.1: y1 = Add(x1, x1) : float32[3]
""").replace("neg:", "f_1:")  # fmt: skip
    for go, wanted in ((True, [2.0, 4.0]), (False, [-1.0, -2.0])):
        assert run(graph_of(text), go=go, x=[1.0, 2.0, 3.0])["r"].tolist()[:2] == wanted
