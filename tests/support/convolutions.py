"""Graphs of one convolution, and a comparison of the processor's numbers with the reference's."""

from __future__ import annotations

import numpy as np
from floats import Net

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

PAPER = load_config("paper")


def convolution(data, outputs, kernel, epilogue="", bias=True, channels=0, **fields):
    """A convolution of an image [N, C, H, W], of so many channels for each result, and what follows
    it."""
    net = Net(*data)
    own = net.constant(outputs) if bias else None
    weight = net.constant(outputs, channels or data[1], *kernel)
    y = net.add(ops.Conv2d, data="x", weight=weight, bias=own, **fields)
    if epilogue == "tanh":
        y = net.unary("tanh", y)
    if epilogue == "add":
        y = net.add(ops.Add, a=y, b=y)
    return net.graph(y), y


def check(graph, name):
    """The processor's numbers are the reference's."""
    x = np.random.default_rng(1).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    want = evaluate(graph, {"x": x})[name]
    for threads in 1, 2:
        module = compile_graph(graph, PAPER, Options("cpu"))
        found = Executor(module, threads=threads).run({"x": x}).outputs[name]
        np.testing.assert_allclose(found, want, rtol=0, atol=2e-5 * np.abs(want).max())
