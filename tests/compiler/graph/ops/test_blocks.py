"""Images in blocks of channels, and back."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import RNG, run_kernel

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.blocks import pack, unpack
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType

I8 = "int8"


@pytest.mark.parametrize("shape", [(1, 16, 2, 3), (2, 20, 4, 1), (3, 5), (1, 1, 1, 1)])
def test_pack_and_unpack(shape):
    x = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    packed = pack(x, 16)
    assert packed.shape == TensorType(shape, "int8", block=16).physical
    np.testing.assert_array_equal(unpack(packed, shape), x)
    lanes = packed[:, -1, :, :, shape[1] % 16 or 16 :]
    assert not lanes.any()


@pytest.mark.parametrize("shape", [(2, 20, 3, 5), (1, 16, 2, 2), (3, 7)])
def test_compiled_pack_and_unpack(shape):
    types = {"x": TensorType(shape, I8), "p": TensorType(shape, I8, block=16)}
    pack = ops.Pack(name="p", data="x", output="p", block=16)
    unpack = ops.Unpack(name="u", data="p", output="y", block=16)
    graph = Graph(("x",), ("y",), (pack, unpack), {**types, "y": types["x"]})
    x = RNG.integers(-128, 128, shape).astype(np.int8)
    want = evaluate(graph, {"x": x})
    np.testing.assert_array_equal(run_kernel(graph, pack, {"x": x}), want["p"])
    np.testing.assert_array_equal(run_kernel(graph, unpack, want), x)
