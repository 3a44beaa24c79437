"""Run plans of networks with control: steps, the numbers that jumps name, and reports."""

from __future__ import annotations

import numpy as np
import pytest
from control_texts import (
    CHOICE,
    FACTORIAL,
    SUMS,
    TINY,
    compiled,
    counted,
    given,
    graph_of,
    run,
)  # fmt: skip

from vdla.compiler.graph.reference import evaluate
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
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


# A loop's body has a layer of the accelerator; all else is the processor's, a Reshape among it.
MIXED = """
    graph main
      input x : float32[1, 8]
      input seen : uint8[2, 2]
      output same
      output y
      scan: a, b = Scan(x, seen) carried=2 turns=2 : float32[1, 8], uint8[2, 2]
        graph body
          input turn : int64[]
          input x1 : float32[1, 8]
          input seen1 : uint8[2, 2]
          output y1
          output seen1
          q: q1 = Quantize(x1) scale=(0.5) zero_point=(0) axis=None : int8[1, 8]
          dq: d1 = Dequantize(q1) scale=(0.5) zero_point=(0) axis=None : float32[1, 8]
          q2: q3 = Quantize(d1) scale=(1.0) zero_point=(0) axis=None : int8[1, 8]
          dq2: y1 = Dequantize(q3) scale=(1.0) zero_point=(0) axis=None : float32[1, 8]
      flat: c = Reshape(a) : float32[8]
      neg: y = Unary(c) function="neg" : float32[8]
      dq3: same = Dequantize(b) scale=(1.0) zero_point=(128) axis=None : float32[2, 2]
    """


def test_an_accelerator_in_a_region_alone():
    """The Reshape has a function then, and the loop's second result, of uint8, its sign."""
    graph = graph_of(MIXED)
    module = compiled(graph, "vdla")
    assert len(module.programs) == 1
    inputs = given({"x": [[0.6, -0.6, 1.2, 2.6, 3.4, 0, 1, -4]]})
    inputs["seen"] = np.array([[0, 127], [128, 255]], np.uint8)
    got = Executor(module, SimDevice(TINY), threads=1).run(inputs).outputs
    wanted = evaluate(graph, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(got[name], wanted[name])
