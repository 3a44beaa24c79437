"""Nodes behind the host's own: which stay there, by the work that they have."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.build import Options, compile_graph, rewritten_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.placement import ACCELERATOR, PROCESSOR
from vdla.compiler.targets.accelerator.rewrites.tails import leave_tails
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
SHAPE = (1, 8, 5, 6)


def softmax(m, x):
    """A function that the host computes."""
    return m.quantized(m.node("Softmax", [x], m.shapes[x], axis=1), 0.01)


def network(*layers):
    """Layers behind a first one, by their numbers of channels; "host": a softmax."""
    m = QdqModel(3)
    x = m.conv(m.input("x", SHAPE), 8, 1)
    for each in layers:
        x = softmax(m, x) if each == "host" else m.conv(x, each, 3 if each > 8 else 1)
    m.output(x)
    return import_model(m.model())


def devices(graph, **options):
    """Where convolutions run, in their order; the numbers are checked where nothing is placed."""
    after, placements = rewritten_graph(graph, TINY, Options(**options))
    after, placements = leave_tails(after, placements)
    return [placements[n.name].device for n in after.nodes if n.op == "QConv2d"]


@pytest.mark.parametrize(
    ("layers", "stay"),
    [
        ((2,), 0),
        (("host", 2), 1),  # 4 operations for a byte
        (("host", 8), 0),  # 16 of them
        (("host", 2, 8), 0),  # both together
        (("host", 16, "host", 2), 1),  # what has come back before stays on the accelerator
        (("host", 2, "host", 2), 2),
    ],
)
def test_little_work_behind_the_hosts_stays_there(layers, stay):
    graph = network(*layers)
    count = 1 + sum(each != "host" for each in layers)
    assert devices(graph) == [ACCELERATOR] * (count - stay) + [PROCESSOR] * stay


def test_what_the_user_places_stays():
    graph = network("host", 2)
    last = [node.name for node in graph.nodes if node.op == "Conv2d"][-1]
    assert devices(graph, places={last: ACCELERATOR}) == [ACCELERATOR] * 2


def test_the_numbers_are_the_same():
    graph = network("host", 2)
    inputs = {"x": np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)}
    module = compile_graph(graph, TINY)
    assert len(module.programs) == 1
    wanted = evaluate(rewritten_graph(graph, TINY)[0], inputs)
    for name, result in Executor(module, SimDevice(TINY)).run(inputs).outputs.items():
        np.testing.assert_array_equal(result, wanted[name])
