"""Networks with depthwise convolutions on configs that keep results on chip."""

from __future__ import annotations

import re

import numpy as np
import pytest

import vdla
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import Builder
from vdla.compiler.models.networks import calibration
from vdla.compiler.models.quantizer import quantize_model
from vdla.isa.config import load_config

SHAPE = (1, 16, 20, 20)
PAPER = load_config("paper")
OPTIONS = {
    "forwarding": PAPER.override(["forwarding=1"]),
    "window": PAPER.override(["window_taps=3"]),
    "both": PAPER.override(["forwarding=1", "window_taps=3"]),
}


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Two bottlenecks, one with a stride, one with a residual addition, and a last depthwise
    convolution whose result is the network's."""
    samples = calibration(SHAPE)
    b = Builder("bottlenecks", 5, samples)
    x = b.relu6(b.conv("stem", "input", 24, Window.square(1)))
    y = b.relu6(b.conv("wide1", x, 72, Window.square(1), shift=0.5))
    y = b.relu6(b.conv("deep1", y, 72, Window.square(5, 2), groups=72, shift=0.5))
    x = b.conv("slim1", y, 40, Window.square(1))
    y = b.relu6(b.conv("wide2", x, 80, Window.square(1), shift=0.5))
    y = b.relu6(b.conv("deep2", y, 80, Window.square(3), groups=80, shift=0.5))
    x = b.add("sum", b.conv("slim2", y, 40, Window.square(1)), x)
    last = b.relu6(b.conv("last", x, 40, Window.square(3), groups=40, shift=0.5))
    path = tmp_path_factory.mktemp("chains") / "bottlenecks.onnx"
    quantize_model(b.model(last), path, [{"input": each[None]} for each in samples])
    return path


@pytest.fixture(scope="module")
def plain(network):
    """Inputs, the outputs of the network on the processor, and its cycles without options."""
    rng = np.random.default_rng(0)
    inputs = {"input": rng.uniform(0, 1, SHAPE).astype(np.float32)}
    wanted = vdla.run(vdla.compile(network, PAPER, device="cpu"), inputs).outputs
    return inputs, wanted, vdla.run(vdla.compile(network, PAPER), inputs).cycles


@pytest.mark.parametrize("option", OPTIONS)
def test_a_network_is_equal_and_faster(network, plain, option):
    inputs, wanted, cycles = plain
    module = vdla.compile(network, OPTIONS[option])
    result = vdla.run(module, inputs)
    for name, array in wanted.items():
        assert np.array_equal(result.outputs[name], array)
    assert result.cycles < cycles
    names = {layer["name"] for layer in module.metadata["layers"]}
    assert ("slim2" in names) == (option == "window")


def test_the_placement_says_what_is_one(network):
    module = vdla.compile(network, OPTIONS["both"])
    reasons = {row["name"]: row["reason"] for row in module.metadata["placement"]}
    one, _, why = reasons["deep1"].partition("; ")
    assert one == "deep1 → slim1 on int8, as one"
    assert re.fullmatch(r"not one with wide1: apart: [\d,]+ cycles, fused: [\d,]+", why)
    assert reasons["last"].startswith("depthwise convolution on int8")


def test_a_convolution_that_the_user_places_stays_there(network):
    module = vdla.compile(network, OPTIONS["both"], places={"slim1": "cpu"})
    rows = {row["name"]: row for row in module.metadata["placement"]}
    assert rows["slim1"]["device"] == "cpu"
    assert "slim1" not in rows["deep1"]["reason"]
