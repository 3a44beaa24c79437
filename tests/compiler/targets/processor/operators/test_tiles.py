"""Tiles of registers: what they take, and convolutions whose places lie in other rows."""

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
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.operators.tiles import Tiling, best_tiling
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor


@pytest.mark.parametrize("registers", [8, 16, 32])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 13, 30])
@pytest.mark.parametrize("image", [(1, 1), (7, 7), (3, 80), (25, 19), (1, 97)])
def test_tiles_fit_registers_and_cover_the_image(image, blocks, registers):
    for pointwise in False, True:
        tiling = best_tiling(image, blocks, registers, pointwise=pointwise)
        (rows, columns), (high, wide) = tiling.grid, tiling.tile
        assert tiling.grid == image or (pointwise and rows * columns == image[0] * image[1])
        assert blocks % tiling.blocks == 0
        sums = high * wide * tiling.blocks
        assert sums == 1 or sums + tiling.blocks + 1 <= registers
        assert tiling.whole == (-(-rows // high) * high, -(-columns // wide) * wide)


def test_what_is_chosen():
    """Whole tiles, of several blocks, and of all places where no neighbour is read."""

    def chosen(image, blocks, pointwise):
        return best_tiling(image, blocks, 32, pointwise=pointwise)

    assert chosen((56, 56), 16, False) == Tiling((56, 56), (1, 14), 2)
    assert chosen((12, 80), 16, True) == Tiling((80, 12), (1, 12), 2)
    assert chosen((12, 76), 15, True) == Tiling((114, 8), (1, 8), 3)
    assert chosen((7, 7), 32, False).whole == (7, 7)


def _matches(graph, data, result):
    want = evaluate(graph, data)[result]
    for threads in 1, 2:
        module = compile_graph(graph, load_config("paper"), Options("cpu"))
        found = Executor(module, threads=threads).run(data).outputs[result]
        np.testing.assert_allclose(found, want, rtol=0, atol=5e-5 * np.abs(want).max())


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize(
    ("channels", "batch", "rows", "columns"),
    [(32, 1, 6, 16), (240, 2, 3, 20), (24, 1, 5, 9), (48, 1, 4, 97), (16, 3, 1, 15), (80, 1, 9, 5)],
)
def test_places_in_other_rows(channels, batch, rows, columns, blocked):
    """A window of one element and what is fused behind it: a residual, and values by channel."""
    net, x = Net(batch, 16, rows, columns), "x"
    if blocked:
        weight = net.constant(16, 16, 3, 3)
        x = net.add(ops.Conv2d, data=x, weight=weight, pads=(1,) * 4)
    before = net.add(ops.Conv2d, data=x, weight=net.constant(channels, 16, 1, 1))
    weight = net.constant(channels, channels, 1, 1)
    y = net.add(ops.Conv2d, data=before, weight=weight, bias=net.constant(channels))
    y = net.binary("add", net.unary("tanh", y), before)
    z = net.binary("mul", y, net.constant(1, channels, 1, 1))
    z = net.add(ops.Conv2d, data=z, weight=net.constant(16, channels, 1, 1))
    shape = (batch, 16, rows, columns)
    data = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    _matches(net.graph(z), data, z)


@pytest.mark.parametrize("columns", [20, 25])
def test_integers_in_other_rows(tmp_path, columns):
    """Of data that are converted, and so copied; depthwise, too."""
    b, lanes = QdqModel(), NATIVE.vectors.lanes
    x = b.conv(b.input("x", (1, lanes, 6, columns)), 3 * lanes, 1)
    y = b.add(b.conv(x, 3 * lanes, 1, groups=3 * lanes), b.conv(x, 3 * lanes, 1))
    b.output(b.conv(y, 2 * lanes, 1, activation="Relu"))
    onnx.save(b.model(), tmp_path / "m.onnx")
    assert vdla.check(tmp_path / "m.onnx", device="cpu").holds
