"""Control laid out as nodes one behind another."""

from __future__ import annotations

import pytest
from control_texts import CHOICE, FACTORIAL, SUMS, counted, graph_of, linked
from floats import Net

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops import Fused
from vdla.compiler.graph.ops.flow import Begin, Clear, Copy, Enter, Goto, Label, Leave, NextTurn
from vdla.compiler.linear import linear
from vdla.compiler.network import Network

TWO_CALLS = """
    graph main
      input x : float32[3]
      output y
      first: a = Call(x) function="outer" shapes=((3)) dtypes=("float32") : float32[3]
      second: y = Call(a) function="outer" shapes=((3)) dtypes=("float32") : float32[3]
    graph inner
      input x1 : float32[3]
      output y1
      neg: y1 = Unary(x1) function="neg" : float32[3]
    graph unused
      input x2 : float32[3]
      output y2
      abs: y2 = Unary(x2) function="abs" : float32[3]
    graph outer
      input x3 : float32[3]
      output y3
      call: b = Call(x3) function="inner" shapes=((3)) dtypes=("float32") : float32[3]
      add: y3 = Add(b, x3) : float32[3]
    """


def laid_out(graph):
    """Its nodes, a line each: copies as what they copy where."""
    return [line_of(node) for node in linked(graph).network.graph.nodes]


def line_of(node):
    match node:
        case Copy():
            place = f"[{node.turn}]" if node.turn else ""
            source, target = (place, "") if node.whole is None else ("", place)
            return f"{node.output}{target} = {node.data}{source}"
        case Clear():
            return f"{node.output} = 0"
        case Begin():
            return f"{node.output} begins"
        case Label():
            return f"{node.name}:"
        case Goto():
            when = f" {'if' if node.when else 'unless'} {node.condition}" if node.condition else ""
            return f"goto {node.to}{when}"
        case NextTurn():
            return f"next {node.turn} of {node.turns} {node.to}{' or error' * node.strict}"
        case Enter():
            return f"call {node.to} saving {', '.join(sorted(node.frame)) or 'nothing'}"
        case Leave():
            return "leave"
    parts = node.parts if isinstance(node, Fused) else (node,)
    return f"{node.output} = {'+'.join(part.op for part in parts)}"


def test_a_network_without_control_stays_the_same():
    net = Net(3)
    network = linked(net.graph(net.unary("neg", "x"))).network
    assert linear(network) is network


def test_a_choice():
    assert laid_out(graph_of(CHOICE)) == [
        "goto if.else unless go",
        "x1 = x",
        "r = x1",
        "s = x1",
        "goto if.end",
        "if.else:",
        "x2 = x",
        "y2 = Unary",
        "r = y2",
        "s = x2",
        "if.end:",
    ]


def test_a_while():
    """The condition is asked behind each turn, and turns are counted then."""
    graph = counted(["a"], ["a"], turns=4, stacked=["a"])
    assert laid_out(graph) == [
        "go = Binary",
        "a1 = a0",
        "m = n",
        "turn = 0",
        "a.all = 0",
        "goto loop.end unless go",
        "loop.begin:",
        "a = a1",
        "again = Add+Binary",
        "a.all[turn] = a",
        "a1 = a",
        "goto loop.last unless again",
        "next turn of 4 loop.begin or error",
        "loop.last:",
        "loop.end:",
    ]


def test_a_scan():
    assert laid_out(graph_of(SUMS)) == [
        "total = y",
        "same = y",
        "turn = 0",
        "all begins",
        "scan.begin:",
        "sum = total",
        "kept = same",
        "row = x[turn]",
        "more = Add",
        "all[turn] = more",
        "total = more",
        "same = kept",
        "next turn of 4 scan.begin",
        "scan.last:",
        "scan.end:",
    ]


def test_functions_stand_behind_all_else():
    """Each that is called, once."""
    lines = laid_out(graph_of(TWO_CALLS))
    assert [line for line in lines if line.endswith(":")] == ["outer:", "inner:"]
    assert lines[:7] == [
        "outer.argument0 = x",
        "call outer saving nothing",
        "a = outer.result0",
        "outer.argument0 = a",
        "call outer saving nothing",
        "y = outer.result0",
        "leave",
    ]
    assert lines.count("leave") == 3


def test_a_call_saves_what_is_needed_behind_it():
    """In functions alone: n2, which is multiplied with the result, and not n1 or n3."""
    calls = [line for line in laid_out(graph_of(FACTORIAL)) if line.startswith("call")]
    assert calls == ["call factorial saving nothing", "call factorial saving n2"]


def test_names_that_two_graphs_have_are_refused():
    """Passes give names that their graph doesn't have; another one might."""
    graph = graph_of(CHOICE)
    region = Network(graph.node("if").then, {}, [], {})
    whole = Network(graph, {}, [], {}, {"if": [region, region]})
    with pytest.raises(GraphError, match="then: expected names of its own, found x1 again"):
        linear(whole)
