"""Copies of laid-out control that go away, and those that stay."""

from __future__ import annotations

import pytest
from control_texts import CHOICE, SUMS, compiled, counted, graph_of, run

from vdla.runtime.plan import Copy

A, B = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]


def copies(graph):
    """What is copied where, of all copies of whole tensors."""
    return [s.args for s in compiled(graph).steps if isinstance(s, Copy) and s.way == "whole"]


def same_bytes(module, *names):
    return len({module.tensors[name].offset for name in names}) == 1


def test_a_state_that_is_computed_by_element_is_never_copied():
    graph = counted(["a"], ["d"], ["two: d = Add(a, a) : float32[3]"])
    assert copies(graph) == []
    assert same_bytes(compiled(graph), "a0", "a", "d", "a1")
    assert run(graph, n=3, a0=A)["a1"].tolist() == [8.0, 16.0, 24.0]


def test_a_product_of_matrices_is_copied_once():
    """It can't be written over what it reads."""
    lines = ["constant w : float32[3, 3]", "times: d = MatMul(a, w) : float32[1, 3]"]
    graph = counted(["a"], ["d"], lines, kind="float32[1, 3]")
    assert len(copies(graph)) == 1
    assert run(graph, n=2, a0=[A])["a1"].tolist() == [[2.0, 3.0, 1.0]]


def test_states_that_change_places_stay_apart():
    graph = counted(["a", "b"], ["b", "a"])
    module = compiled(graph)
    assert not same_bytes(module, "a", "b")
    assert not same_bytes(module, "a1", "b1")
    assert len(copies(graph)) == 3  # as few as a swap takes
    for turns in range(4):
        found = run(graph, n=turns, a0=A, b0=B)
        assert [found["a1"].tolist(), found["b1"].tolist()] == ([A, B], [B, A])[turns % 2]


def test_a_state_passed_on_is_no_copy():
    graph = counted(["a", "b"], ["a", "d"], ["add: d = Add(a, b) : float32[3]"])
    assert copies(graph) == []
    assert run(graph, n=3, a0=A, b0=B)["b1"].tolist() == [7.0, 11.0, 15.0]


def test_a_captured_tensor_is_no_copy():
    graph = counted(["a"], ["d"], ["add: d = Add(a, b) : float32[3]"], captured=["b"])
    assert copies(graph) == []
    assert run(graph, n=2, a0=A, b0=B)["a1"].tolist() == [9.0, 12.0, 15.0]


def test_a_captured_tensor_that_becomes_a_state_keeps_its_value():
    """After the first turn a is b; what is added to it may not change b."""
    graph = counted(["a", "c"], ["b", "d"], ["add: d = Add(a, b) : float32[3]"], captured=["b"])
    zeros = [0.0] * 3
    found = run(graph, n=3, a0=A, c0=zeros, b0=B)
    assert found["a1"].tolist() == B
    assert found["c1"].tolist() == [8.0, 10.0, 12.0]


@pytest.mark.parametrize("go", [True, False])
def test_a_captured_tensor_that_is_two_results(go):
    found = run(graph_of(CHOICE), go=go, x=A)
    assert found["r"].tolist() == (A if go else [-1.0, -2.0, -3.0])
    assert found["s"].tolist() == A


def test_two_states_that_begin_as_one_tensor():
    """y is both, and one of them changes."""
    assert len(copies(graph_of(SUMS))) == 1
    found = run(graph_of(SUMS), x=[A, A, A, A], y=B)
    assert found["same"].tolist() == B
    assert found["total"].tolist() == [8.0, 13.0, 18.0]


KEPT = """
    graph main
      input x : float32[3]
      input go : bool[]
      output t
      output y
      neg: t = Unary(x) function="neg" : float32[3]
      call: y = Call(go, t) function="f" shapes=((3)) dtypes=("float32") : float32[3]
    graph f
      input go1 : bool[]
      input x1 : float32[3]
      output y1
      if: y1 = If(go1, x1) : float32[3]
        graph then
          input x2 : float32[3]
          output y2
          add: y2 = Add(x2, x2) : float32[3]
        graph otherwise
          input x3 : float32[3]
          output x3
    """


@pytest.mark.parametrize("go", [True, False])
def test_what_is_needed_behind_a_call_is_kept(go):
    """The function gets t, and returns it or something else; t is an output, too."""
    found = run(graph_of(KEPT), go=go, x=A)
    assert found["t"].tolist() == [-1.0, -2.0, -3.0]
    assert found["y"].tolist() == [-2.0, -4.0, -6.0] if go else found["t"].tolist()
