"""Small graphs with control flow, written as text, and how they run."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np

from vdla.compiler.build import Options, compile_graph, link_graph
from vdla.compiler.graph.parser import parse_graph
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
ROW = "float32[3]"
VALUES = {
    "zero": np.array(0), "one": np.array(1), "one.inner": np.array(1), "yes": np.array(True),
    "w": np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.float32),
}  # fmt: skip

# A choice between what is captured and something else: r is x or -x, s is x.
CHOICE = """
    graph choice
      input go : bool[]
      input x : float32[3]
      output r
      output s
      if: r, s = If(go, x) : float32[3], float32[3]
        graph then
          input x1 : float32[3]
          output x1
          output x1
        graph otherwise
          input x2 : float32[3]
          output y2
          output x2
          neg: y2 = Unary(x2) function="neg" : float32[3]
    """

# What is before the last slice added up, and each sum; y is passed on.
SUMS = """
    graph sums
      input x : float32[4, 3]
      input y : float32[3]
      output total
      output same
      output all
      scan: total, same, all = Scan(y, y, x) carried=2 turns=4 scanned=1
            : float32[3], float32[3], float32[4, 3]
        graph body
          input turn : int64[]
          input sum : float32[3]
          input kept : float32[3]
          input row : float32[3]
          output more
          output kept
          output more
          add: more = Add(sum, row) : float32[3]
    """.replace("\n            :", " :")

# n factorial: what calls again needs its n behind the call.
FACTORIAL = """
    graph main
      input n : int64[]
      output y
      call: y = Call(n) function="factorial" shapes=(()) dtypes=("int64") : int64[]
    graph factorial
      input n1 : int64[]
      constant zero : int64[]
      output y1
      test: go = Binary(n1, zero) function="gt" : bool[]
      if: y1 = If(go, n1) : int64[]
        graph more
          input n2 : int64[]
          constant one : int64[]
          output y2
          less: n3 = Binary(n2, one) function="sub" : int64[]
          again: f = Call(n3) function="factorial" shapes=(()) dtypes=("int64") : int64[]
          times: y2 = Binary(f, n2) function="mul" : int64[]
        graph last
          input n4 : int64[]
          constant one.inner : int64[]
          output one.inner
    """


def graph_of(text):
    """The graph of a text."""
    return parse_graph(dedent(text).lstrip("\n"), VALUES)


def counted(states, after, lines=(), *, turns=10, kind=ROW, stacked=(), captured=()):
    """A graph of a While that turns n times.

    Each of the states a is a0 before the loop, a1 behind it; of captured tensors b, the graph has
    b0. ``lines`` are the nodes of the body; what is ``stacked`` of s is s.all.
    """
    results = [*(f"{name}1" for name in states), *(f"{name}.all" for name in stacked)]
    rows = kind.replace("[", f"[{turns}, ").replace(", ]", "]")
    kinds = [kind] * len(states) + [rows] * len(stacked)
    outer = [f"{name}0" for name in (*states, *captured)]
    text = [
        "graph main",
        "  input n : int64[]",
        *(f"  input {name} : {kind}" for name in outer),
        "  constant zero : int64[]",
        *(f"  output {name}" for name in results),
        '  first: go = Binary(zero, n) function="lt" : bool[]',
        f"  loop: {', '.join(results)} = While({', '.join(('go', *outer, 'n'))}) "
        f"carried={len(states)} turns={turns} : {', '.join(kinds)}",
        "    graph body",
        "      input turn : int64[]",
        *(f"      input {name} : {kind}" for name in (*states, *captured)),
        "      input m : int64[]",
        "      constant one : int64[]",
        "      output again",
        *(f"      output {name}" for name in (*after, *stacked)),
        indent("\n".join(lines), "      "),
        "      next: t = Add(turn, one) : int64[]",
        '      more: again = Binary(t, m) function="lt" : bool[]',
    ]
    return graph_of("\n".join(line for line in text if line.strip()) + "\n")


def compiled(graph, device="cpu"):
    """The module of a graph."""
    return compile_graph(graph, TINY, Options(device=device, processor=Processor(quick=True)))


def linked(graph, device="cpu"):
    """A graph with control laid out, its steps, and its addresses."""
    return link_graph(graph, TINY, Options(device=device, processor=Processor(quick=True)))


def run(graph, **inputs):
    """The outputs of a graph on the processor; ints are int64."""
    executor = Executor(compiled(graph), CpuDevice(), threads=1)
    return executor.run(given(inputs)).outputs


def given(inputs):
    """Inputs as arrays: of bools, of int64, or of float32."""
    return {name: array_of(value) for name, value in inputs.items()}


def array_of(value):
    array = np.asarray(value)
    return array if array.dtype in (bool, np.int64) else array.astype(np.float32)
