"""Convolutions of few channels: which of them the accelerator takes, and their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.build import compile_graph, placed_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.placement import report
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

PAPER = load_config("paper")


def placed(m):
    """Devices of convolutions and concatenations in their order; the numbers are checked."""
    graph = import_model(m.model())
    after, placements = placed_graph(graph, PAPER)
    inputs = {
        name: np.random.default_rng(1).normal(size=graph.tensors[name].shape).astype(np.float32)
        for name in graph.inputs
    }
    outputs = Executor(compile_graph(graph, PAPER), SimDevice(PAPER)).run(inputs).outputs
    wanted = evaluate(after, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(outputs[name], wanted[name])
    rows = report(after, placements)
    return [row["device"] for row in rows if row["op"] in ("QConv2d", "QConcat")]


@pytest.mark.parametrize("channels", [1, 4, 7])
def test_few_channels_that_the_accelerator_writes_stay_there(channels):
    m = QdqModel(3)
    x = m.conv(m.input("x", (1, 16, 5, 5)), channels, 1)
    m.output(m.conv(m.conv(m.relu(x), channels, 1, activation="Relu"), 16, 3))
    assert placed(m) == ["vdla"] * 3


def test_few_channels_that_the_host_writes_stay_there():
    m = QdqModel(3)
    x = m.conv(m.input("x", (1, 4, 5, 5)), 4, 1)
    m.output(m.conv(m.conv(x, 4, 1), 16, 1))
    assert placed(m) == ["cpu"] * 3


def test_the_end_of_few_channels_is_the_hosts_where_what_they_are_made_of_is():
    """A chain is as its beginning: what reads filled lanes is the accelerator's, and all behind."""
    m = QdqModel(3)
    few = m.conv(m.input("x", (1, 4, 5, 5)), 16, 1)
    m.output(m.conv(m.conv(few, 4, 1), 16, 1))
    assert placed(m) == ["cpu", "vdla", "vdla"]


def test_parts_of_few_channels_are_joined_by_convolutions():
    m = QdqModel(3)
    x = m.conv(m.input("x", (1, 16, 5, 5)), 16, 1)
    m.output(m.concat([m.conv(x, 4, 1), m.conv(x, 1, 1), m.conv(x, 24, 1)]))
    assert set(placed(m)) == {"vdla"}
