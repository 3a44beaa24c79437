"""Convolutions of channel blocks, whose schedule depends on what is copied before it is used."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from floats import Net
from qdq import QdqModel

import vdla
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description.processor import NATIVE, find_processor
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.rewrites.images import block_images
from vdla.compiler.tir.printer import show
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor


@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("group", [1, 32])
def test_windows_and_groups(window, pad, group):
    """A depthwise window of one element without padding copies nothing, as a dense one."""
    net = Net(1, 32, 14, 14)
    x = net.add(ops.Conv2d, data="x", weight=net.constant(32, 32, 1, 1))
    weight = net.constant(32, 32 // group, window, window)
    y = net.add(ops.Conv2d, data=x, weight=weight, pads=(pad,) * 4, groups=group)
    z = net.add(ops.Conv2d, data=net.unary("tanh", y), weight=net.constant(16, 32, 1, 1))
    graph = net.graph(z)
    module = compile_graph(graph, load_config("paper"), Options("cpu"))
    data = {"x": np.random.default_rng(0).standard_normal((1, 32, 14, 14)).astype(np.float32)}
    want = evaluate(graph, data)[z]
    np.testing.assert_allclose(
        Executor(module).run(data).outputs[z], want, rtol=0, atol=5e-5 * np.abs(want).max()
    )


@pytest.mark.parametrize(
    ("side", "channels", "bands"),
    [(56, 64, True), (3, 64, False), (56, 512, False)],
    ids=["many tiles, few weights", "few tiles", "many weights"],
)
def test_threads_share_bands_where_each_keeps_the_weights(side, channels, bands):
    """Else they share a band's copying, then its tiles, and read the weights together."""
    net = Net(1, 64, side, side)
    x = net.add(ops.Conv2d, data="x", weight=net.constant(64, 64, 1, 1))
    weight = net.constant(channels, 64, 3, 3)
    y = net.add(ops.Conv2d, data=x, weight=weight, pads=(1,) * 4)
    processor = find_processor("x86-64-v4,-winograd")
    graph = block_images(net.graph(y), processor.vectors)
    text = show(node_function(graph.producers[f"{y}.blocks"], graph, "f", processor).func)
    assert (text.index(" parallel:") < text.index("alloc padded")) is bands


@pytest.mark.parametrize("halves", [1, 3, 5, 8])
@pytest.mark.parametrize(("window", "strides"), [(1, (1, 1)), (3, (2, 2))])
def test_two_half_blocks_are_summed_in_one_vector(halves, window, strides):
    """Of an odd number of them, too, the last of which leaves half a vector idle."""
    lanes = NATIVE.vectors.lanes
    channels = halves * lanes // 2
    net = Net(1, 16, 9, 11)
    x = net.add(ops.Conv2d, data="x", weight=net.constant(16, 16, 1, 1))
    weight = net.constant(channels, 16, window, window)
    y = net.add(ops.Conv2d, data=x, weight=weight, bias=net.constant(channels), strides=strides)
    z = net.add(ops.Conv2d, data=net.unary("tanh", y), weight=net.constant(16, channels, 1, 1))
    graph = net.graph(z)
    module = compile_graph(graph, load_config("paper"), Options("cpu"))
    vectors = {t.shape[-1] for name, t in module.tensors.items() if name.startswith(f"{y}.weight")}
    assert vectors == {lanes // 2 if halves == 1 else lanes}
    data = {"x": np.random.default_rng(0).standard_normal((1, 16, 9, 11)).astype(np.float32)}
    want = evaluate(graph, data)[z]
    np.testing.assert_allclose(
        Executor(module).run(data).outputs[z], want, rtol=0, atol=5e-5 * np.abs(want).max()
    )


def test_half_blocks_of_integers(tmp_path):
    """24, 40 and 8 channels, and a residual among them, as onnxruntime has them."""
    b, half = QdqModel(), NATIVE.vectors.lanes // 2
    x = b.conv(b.input("x", (1, 16, 9, 11)), 3 * half, 3)
    y = b.add(x, b.conv(b.conv(x, 5 * half, 1), 3 * half, 1))
    b.output(b.conv(y, half, 3, activation="Relu"))
    onnx.save(b.model(), tmp_path / "m.onnx")
    assert vdla.check(tmp_path / "m.onnx", device="cpu").holds


GROUPED = [  # channels, groups, outputs
    (32, 4, 32), (32, 8, 64), (48, 6, 48), (34, 2, 34), (68, 4, 136), (64, 2, 24), (16, 16, 64),
]  # fmt: skip


@pytest.mark.parametrize(("window", "strides"), [(1, (1, 1)), (3, (2, 1))])
@pytest.mark.parametrize(("channels", "groups", "outputs"), GROUPED)
@pytest.mark.parametrize("blocked", [False, True])
def test_groups(blocked, channels, groups, outputs, window, strides):
    """A vector reads the channels of its lanes' groups, from blocks or a plain image."""
    net = Net(1, channels, 9, 11)
    x, pads = "x", (window // 2,) * 4
    if blocked:
        x = net.add(ops.Conv2d, data="x", weight=net.constant(channels, channels, 1, 1))
    y = net.add(
        ops.Conv2d, data=x, weight=net.constant(outputs, channels // groups, window, window),
        bias=net.constant(outputs), groups=groups, strides=strides, pads=pads,
    )  # fmt: skip
    z = net.add(ops.Conv2d, data=net.unary("tanh", y), weight=net.constant(16, outputs, 1, 1))
    graph = net.graph(z)
    data = {"x": np.random.default_rng(0).standard_normal((1, channels, 9, 11)).astype(np.float32)}
    want = evaluate(graph, data)[z]
    for threads in 1, 2:
        module = compile_graph(graph, load_config("paper"), Options("cpu"))
        found = Executor(module, threads=threads).run(data).outputs[z]
        np.testing.assert_allclose(found, want, rtol=0, atol=5e-5 * np.abs(want).max())


def test_a_vector_reads_no_more_than_its_groups():
    """34 of 136 channels a group: of blocks of 8 at most 9 of 17, which hold those of two."""
    net = Net(1, 136, 9, 9)
    x = net.add(ops.Conv2d, data="x", weight=net.constant(136, 136, 1, 1))
    y = net.add(ops.Conv2d, data=x, weight=net.constant(136, 34, 1, 1), groups=4)
    processor = find_processor("x86-64-v4")
    graph = block_images(net.graph(y), processor.vectors)
    function = node_function(graph.producers[f"{y}.blocks"], graph, "f", processor)
    weight, first = (function.constants[f"{y}.{name}"] for name in ("weight", "first"))
    assert weight.shape == (9, 9, 1, 1, 8, 16)
    assert first.tolist() == [0, 0, 0, 4, 4, 8, 8, 8, 8]


def test_groups_of_integers(tmp_path):
    b, lanes = QdqModel(), NATIVE.vectors.lanes
    x = b.conv(b.input("x", (1, 2 * lanes, 9, 11)), 2 * lanes, 3, groups=4)
    b.output(b.conv(b.conv(x, 3 * lanes, 1, groups=2), 2 * lanes, 3, groups=8, activation="Relu"))
    onnx.save(b.model(), tmp_path / "m.onnx")
    assert vdla.check(tmp_path / "m.onnx", device="cpu").holds
