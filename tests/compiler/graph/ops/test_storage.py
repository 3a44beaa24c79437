"""Stored types from and to float32: as ml_dtypes converts them."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, RNG, run_kernel

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.ops.storage import CODES
from vdla.compiler.graph.types import TensorType
from vdla.runtime.dtypes import STORED, dtype_of

SHAPE = (6, 5)
VALUES = RNG.standard_normal(SHAPE).astype(np.float32)
BYTES = [dtype for dtype in STORED if dtype_of(dtype).itemsize == 1]


def result(node, source, target, **given):
    """What compiled code and numpy give, which are equal bit for bit."""
    types = {"x": TensorType(SHAPE, source), "y": TensorType(SHAPE, target)}
    constants = {name: array for name, array in given.items() if name != "x"}
    types |= {name: TensorType(a.shape, str(a.dtype)) for name, a in constants.items()}
    graph = verify(Graph(("x",), ("y",), (node,), types, constants))
    want = node.evaluate([given[name] for name in node.inputs], types["y"])
    kind = f"u{want.dtype.itemsize}"
    unsigned = {"x": given["x"].view(f"u{given['x'].dtype.itemsize}"), **constants}
    found = run_kernel(graph, node, unsigned)
    np.testing.assert_array_equal(found.view(kind), want.view(kind))
    return want


def test_bfloat16():
    kind = dtype_of("bfloat16")
    stored = result(ops.Encode(**NAMES, data="x"), "float32", "bfloat16", x=VALUES)
    np.testing.assert_array_equal(stored.view("u2"), VALUES.astype(kind).view("u2"))
    back = result(ops.Decode(**NAMES, data="x"), "bfloat16", "float32", x=stored)
    np.testing.assert_array_equal(back, stored.astype(np.float32))


def test_codes_are_looked_up_by_the_upper_half():
    """Whose last bit is set where the lower half isn't 0."""
    codes = RNG.integers(0, 256, CODES).astype(np.uint8)
    x = np.array([1.0, 1.0 + 2.0**-20, -3.5], np.float32)
    x = np.resize(x, SHAPE)
    node = ops.Encode(**NAMES, data="x", codes="c")
    stored = result(node, "float32", "float8_e4m3fn", x=x, c=codes).view(np.uint8)
    assert stored.ravel()[:3].tolist() == [codes[0x3F80], codes[0x3F81], codes[0xC060]]


@pytest.mark.parametrize("dtype", BYTES)
def test_every_code_is_a_number(dtype):
    node = ops.Decode(**NAMES, data="x")
    codes = np.arange(30, dtype=np.uint8).reshape(SHAPE)
    if "4" in dtype.split("_")[0] or dtype.endswith("int2"):
        codes = codes % (4 if dtype.endswith("int2") else 16)
    data = codes.view(dtype_of(dtype))
    np.testing.assert_array_equal(result(node, dtype, "float32", x=data), data.astype(np.float32))


def test_as_many_codes_as_halves():
    node = ops.Encode(**NAMES, data="x", codes="c")
    with pytest.raises(GraphError, match=r"expected 65536 codes, found \[256\]"):
        node.result_shape([(2, 3), (256,)])
