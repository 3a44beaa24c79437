"""Steps that share rows run row by row, others one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from floats import Net

from vdla import te
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.description.processor import AVX512
from vdla.compiler.targets.processor.operators.rows import schedule_rows
from vdla.compiler.targets.rows import shared_rows
from vdla.compiler.tir.interp import run
from vdla.compiler.tir.printer import show
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor


def softmax(rows=(2, 6), size=32):
    """What a Softmax computes."""
    data = te.placeholder((*rows, size), "float32", "data")
    r, k = te.reduce_axis((0, size), "r"), te.reduce_axis((0, size), "k")
    top = te.compute(rows, lambda *i: te.max(data[(*i, r)], axis=r), "top")
    e = te.compute(data.shape, lambda *i: te.exp(data[i] - top[i[:-1]]), "e")
    total = te.compute(rows, lambda *i: te.sum(e[(*i, k)], axis=k), "total")
    out = te.compute(data.shape, lambda *i: e[i] / total[i[:-1]], "out")
    return data, out


def scheduled(data, out):
    s = create_schedule(out, [data], "f")
    count = shared_rows(s, s[out])
    if count:
        schedule_rows(s, s[out], count, AVX512.lanes)
    return count, s.lower()


def test_a_softmax_is_one_loop_over_rows():
    data, out = softmax((128, 6), 32)
    count, func = scheduled(data, out)
    assert count == 2
    text = show(func)
    loops = [line.strip() for line in text.splitlines() if line.strip().startswith("for")]
    assert loops[0] == "for i0 in 128 parallel:"
    assert text.count("parallel") == 1
    assert text.count("vectorized") == 10  # starts and lanes of two reductions in two steps, e, out
    for line in ("e: float32[1, 1, 32]", "top_rf: float32[16, 1, 1]", "total: float32[1, 1]"):
        assert f"alloc {line}" in text


def test_it_computes_the_same():
    data, out = softmax((3, 2), 32)
    x = np.random.default_rng(0).standard_normal(data.shape).astype(np.float32)
    found = np.zeros_like(x)
    run(scheduled(data, out)[1], [x, found])
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(-1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("reads", ["all", "turned", "itself"])
def test_what_reads_other_rows_has_loops_of_its_own(reads):
    """Put into the result's rows it would be computed again for each, or later than it is read."""
    data = te.placeholder((8, 8), "float32", "data")
    twice = te.compute((8, 8), lambda i, j: data[i, j] * 2.0, "twice")
    k = te.reduce_axis((0, 8), "k")
    body = {
        "all": lambda i, j: te.sum(twice[k, j], axis=k),
        "turned": lambda i, j: twice[j, i] + 1.0,
        "itself": lambda i, j: twice[i, j] + 1.0,
    }[reads]
    out = te.compute((8, 8), body, "out")
    s = create_schedule(out, [data], "f")
    assert shared_rows(s, s[out]) == 0


def test_one_step_shares_nothing():
    data = te.placeholder((8, 8), "float32", "data")
    out = te.compute((8, 8), lambda i, j: te.exp(data[i, j]), "out")
    s = create_schedule(out, [data], "f")
    assert shared_rows(s, s[out]) == 0


@pytest.mark.parametrize("size", [1023, 1024, 1025, 1100, 4111])
def test_long_rows_in_vectors_that_take_turns(size):
    """Of lengths at the border, and with a rest that fills no vector."""
    net = Net(1, 3, size)
    y = net.add(ops.Softmax, data="x", axis=2)
    graph = net.graph(y)
    data = {"x": np.random.default_rng(size).standard_normal((1, 3, size)).astype(np.float32)}
    found = Executor(compile_graph(graph, load_config("paper"), Options("cpu"))).run(data)
    np.testing.assert_allclose(found.outputs[y], evaluate(graph, data)[y], rtol=2e-6, atol=0)
