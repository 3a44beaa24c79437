"""Inputs come from the host before all streams, results go there behind them, and the order stays
one in which a graph can run."""

from __future__ import annotations

import numpy as np
from control_texts import compiled, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from qdq import QdqModel

from vdla import api
from vdla.compiler.build import compile_graph, placed_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.placement import ACCELERATOR
from vdla.compiler.targets.accelerator.rewrites.host import host_around
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

TINY = load_config("tiny")


def heads(count, through=()):
    """A chain of convolutions, each of which is an output; the host takes the softmax of those
    in ``through`` on their way to the next."""
    m = QdqModel(3)
    x = m.input("x", (1, 8, 5, 6))
    for number in range(count):
        x = m.conv(x, 8, 1)
        m.output(x)
        if number in through:
            x = m.quantized(m.node("Softmax", [x], m.shapes[x], axis=1), 0.01)
    return import_model(m.model())


def test_heads_are_one_stream():
    graph = heads(3)
    module = compile_graph(graph, TINY)
    assert len(module.programs) == 1
    x = {"x": np.random.default_rng(0).normal(0, 1, (1, 8, 5, 6)).astype(np.float32)}
    want = evaluate(optimize(graph), x)
    got = api.run(module, x).outputs
    assert list(got) == list(graph.outputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(got[name], want[name])


def test_what_the_accelerator_needs_cuts_the_stream():
    assert len(compile_graph(heads(3, through={0}), TINY).programs) == 2


def test_a_second_input_comes_before_the_stream():
    m = QdqModel(3)
    x = m.conv(m.input("x", (1, 8, 5, 6)), 8, 1)
    m.output(m.add(x, m.conv(m.input("z", (1, 8, 5, 6)), 8, 1)))
    assert len(compile_graph(import_model(m.model()), TINY).programs) == 1


@settings(max_examples=20)
@given(st.integers(1, 4), st.sets(st.integers(0, 3)))
def test_every_use_follows_its_definition(count, through):
    graph, placements = placed_graph(heads(count, through), TINY)
    after, same = host_around(graph, placements)
    verify(after)
    assert same == placements
    assert sorted(node.name for node in after.nodes) == sorted(node.name for node in graph.nodes)
    devices = [placements[node.name].device for node in after.nodes]
    last = len(devices) - devices[::-1].index(ACCELERATOR)
    written = {node.output for node in after.nodes[last:]}
    behind = {name for node in after.nodes[:last] for name in node.inputs}
    assert not written & behind


SECOND = """
    graph main
      input go : bool[]
      input x : float32[1, 8]
      output y
      if: r, s = If(go, x) : float32[1, 8], float32[1, 8]
        graph then
          input x1 : float32[1, 8]
          output y1
          output x1
          neg: y1 = Unary(x1) function="neg" : float32[1, 8]
        graph otherwise
          input x2 : float32[1, 8]
          output x2
          output x2
      q: qs = Quantize(s) scale=(0.5) zero_point=(0) axis=None : int8[1, 8]
      dq: ds = Dequantize(qs) scale=(0.5) zero_point=(0) axis=None : float32[1, 8]
      q2: qy = Quantize(ds) scale=(1.0) zero_point=(0) axis=None : int8[1, 8]
      dq2: y = Dequantize(qy) scale=(1.0) zero_point=(0) axis=None : float32[1, 8]
    """


def test_the_second_result_of_a_node_is_before_what_reads_it():
    """The choice is the host's, and its second result alone is what the accelerator needs."""
    module = compiled(graph_of(SECOND), "vdla")
    assert len(module.programs) == 1
    executor = Executor(module, SimDevice(TINY), threads=1)
    x = np.array([[0.6, -0.6, 1.2, 2.6, 3.4, 0, 1, -4]], np.float32)
    want = evaluate(graph_of(SECOND), {"go": np.array(True), "x": x})["y"]
    got = executor.run({"go": np.array(True), "x": x}).outputs["y"]
    np.testing.assert_array_equal(got, want)
