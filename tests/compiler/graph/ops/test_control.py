"""Operators that hold graphs: which types they take, and what they mean."""

from __future__ import annotations

import numpy as np
import pytest
from control_texts import CHOICE, FACTORIAL, SUMS, counted, given, graph_of

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.text import ParseError

SWAP = counted(["a", "b"], ["b", "a"])
DOUBLE = counted(["a"], ["d"], ["two: d = Add(a, a) : float32[3]"])
STACK = counted(["a"], ["d"], ["two: d = Add(a, a) : float32[3]"], turns=4, stacked=["a"])
A, B = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]


def values(graph, **inputs):
    """Outputs of a graph in their order, as lists."""
    found = evaluate(graph, given(inputs))
    return [np.asarray(found[name]).tolist() for name in graph.outputs]


# Meaning -----------------------------------------------------------------------------------------


def test_one_of_two_regions_runs():
    assert values(graph_of(CHOICE), go=True, x=A) == [A, A]
    assert values(graph_of(CHOICE), go=False, x=A) == [[-1.0, -2.0, -3.0], A]


@pytest.mark.parametrize(("turns", "wanted"), [(0, [A, B]), (1, [B, A]), (10, [A, B])])
def test_states_change_places(turns, wanted):
    """Without a turn, with one, and with as many as there may be."""
    assert values(SWAP, n=turns, a0=A, b0=B) == wanted


def test_slices_behind_the_last_turn_are_zeros():
    rows = [A, [2.0, 4.0, 6.0], [0.0] * 3, [0.0] * 3]
    assert values(STACK, n=2, a0=A) == [[4.0, 8.0, 12.0], rows]
    assert values(STACK, n=0, a0=A) == [A, [[0.0] * 3] * 4]


def test_a_loop_that_goes_on_is_an_error():
    with pytest.raises(GraphError) as error:
        values(DOUBLE, n=11, a0=A)
    message = "node loop (While): expected an end after at most 10 turns, found none"
    assert str(error.value) == message


def test_a_scan_gets_slices():
    x = np.arange(12.0).reshape(4, 3)
    total, same, rows = values(graph_of(SUMS), x=x, y=B)
    assert rows == (np.cumsum(x, 0) + B).tolist()
    assert total == rows[-1]
    assert same == B


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_function_calls_itself(n):
    assert values(graph_of(FACTORIAL), n=n) == [np.prod(np.arange(1, n + 1)).item()]


# Types -------------------------------------------------------------------------------------------


def refusal(text, old, new):
    """The first line of what is said of a text that is changed."""
    assert old in text
    with pytest.raises(ParseError) as error:
        graph_of(text.replace(old, new))
    return str(error.value).splitlines()[0].partition(": ")[2]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "input go : bool[]",
            "input go : int64[]",
            "node if (If): expected a condition of one bool, found int64[]",
        ),
        (
            "input go : bool[]",
            "input go : bool[2]",
            "node if (If): expected a condition of one bool, found bool[2]",
        ),
        ("If(go, x)", "If()", "node if (If): expected a condition of one bool, found none"),
        ("If(go, x)", "If(go)", "node if (If): expected a region of 0 inputs, found 1 of then"),
        (
            "input x2 : float32[3]",
            "input x2 : float32[4]",
            "node if (If): expected an operand for x2 of otherwise of float32[4], found float32[3]",
        ),
        (
            "          output x2\n",
            "",
            "node if (If): expected regions of as many results, found 2 and 1",
        ),
        (
            'function="neg" : float32[3]',
            'function="is_nan" : bool[3]',
            "node if (If): expected a result y2 of otherwise of float32[3], found bool[3]",
        ),
        (
            "r, s = If(go, x) : float32[3], float32[3]",
            "r = If(go, x) : float32[3]",
            "node if (If): expected 2 results, found 1",
        ),
        (
            "r, s = If(go, x) : float32[3], float32[3]",
            "r, s = If(go, x) : float32[3], float32[1, 3]",
            "node if (If): expected a result s of float32[3], found float32[1, 3]",
        ),
    ],
)
def test_what_a_choice_refuses(old, new, message):
    text = CHOICE
    if old == "r, s = If(go, x) : float32[3], float32[3]" and new.startswith("r ="):
        text = text.replace("      output s\n", "")
    assert refusal(text, old, new) == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "input x : float32[4, 3]",
            "input x : float32[5, 3]",
            "expected 4 elements along the first axis, found float32[5, 3]",
        ),
        ("carried=2", "carried=3", "expected 1 scanned operands, found 0"),
        ("scanned=1", "scanned=2", "expected 2 scanned operands, found 1"),
        ("turns=4", "turns=0", "expected 0 elements along the first axis, found float32[4, 3]"),
        (
            "input turn : int64[]",
            "input turn : int32[]",
            "expected an operand for turn of body of int32[], found int64[]",
        ),
        (
            "more = Add(sum, row) : float32[3]",
            "more = Add(sum, row) : float32[1, 3]",
            "expected what turn after turn gets as sum of float32[3], found float32[1, 3]",
        ),
    ],
)
def test_what_a_scan_refuses(old, new, message):
    assert refusal(SUMS, old, new) == f"node scan (Scan): {message}"


COUNT = """
    graph main
      input go : bool[]
      input x : int64[]
      output y
      loop: y = While(go, x) carried=1 turns=3 : int64[]
        graph body
          input turn : int64[]
          input z : int64[]
          output again
          output z
          odd: again = Binary(turn, z) function="lt" : bool[]
    """


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("turns=3", "turns=0", "expected at least 1 turn, found 0"),
        ("carried=1", "carried=2", "expected 2 carried operands and results, found 1"),
        (
            "          output again\n",
            "",
            "expected a condition behind each turn of one bool, found int64[]",
        ),
        ("While(go, x)", "While()", "expected a condition of one bool, found none"),
        ("carried=1", "carried=0", "expected a result y of int64[3], found int64[]"),
    ],
)
def test_what_a_while_refuses(old, new, message):
    assert refusal(COUNT, old, new) == f"node loop (While): {message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'Call(n) function="factorial"',
            'Call(n) function="gamma"',
            "expected a function of the graph (factorial), found gamma",
        ),
        (
            "input n : int64[]",
            "input n : int64[2]",
            "expected an operand for n1 of factorial of int64[], found int64[2]",
        ),
        (
            'dtypes=("int64") : int64[]\n    graph',
            'dtypes=("int64", "int64") : int64[]\n    graph',
            "expected 1 dtypes, found 2",
        ),
        (
            'shapes=(()) dtypes=("int64") : int64[]\n    graph',
            'shapes=((2)) dtypes=("int64") : int64[2]\n    graph',
            "expected a result of factorial of int64[2], found int64[]",
        ),
    ],
)
def test_what_a_call_refuses(old, new, message):
    assert refusal(FACTORIAL, old, new) == f"node call (Call): {message}"


def test_names_are_of_one_graph_alone():
    assert refusal(CHOICE, "x2", "x1") == ("otherwise: expected names of its own, found x1 again")
