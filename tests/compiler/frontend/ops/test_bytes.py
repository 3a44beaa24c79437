"""Products of bytes with zero points: exactly what ONNX defines, and what onnxruntime computes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

BYTES = ("int8", "uint8")


def random_bytes(rng, dtype, shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def model(x, w, zeros, constant=("w", "wz"), op="ConvInteger", **attributes):
    """A product; what isn't ``constant`` is an input."""
    arrays = {"x": x, "w": w, "xz": zeros[0], "wz": zeros[1]}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    names = [name if name in arrays else "" for name in ("x", "w", "xz", "wz")]
    node = helper.make_node(op, names, ["y"], name="it", **attributes)
    inputs = {name: array for name, array in arrays.items() if name not in constant}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [None] * max(x.ndim, w.ndim))],
        [numpy_helper.from_array(arrays[n], n) for n in arrays if n in constant],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), inputs


def result(proto, inputs):
    """By vdla alone."""
    graph = optimize(import_model(proto, "m"))
    assert not any(isinstance(node, ops.External) for node in graph.nodes)
    (name,) = graph.outputs
    return evaluate(graph, inputs)[name]


def defined(x, w, zeros, strides, pads, dilations, group):
    """ONNX's definition, tap by tap in int64: data and weights less their zero points, and zeros
    around the data."""
    rank = x.ndim - 2
    x = x.astype(np.int64) - (0 if zeros[0] is None else zeros[0].astype(np.int64))
    less = 0 if zeros[1] is None else zeros[1].astype(np.int64).reshape(-1, *[1] * (rank + 1))
    w = w.astype(np.int64) - less
    edges = [(pads[n], pads[n + rank]) for n in range(rank)]
    x = np.pad(x, [(0, 0), (0, 0), *edges])
    sizes = [
        (size - dilation * (taps - 1) - 1) // stride + 1
        for size, taps, stride, dilation in zip(
            x.shape[2:], w.shape[2:], strides, dilations, strict=True
        )
    ]
    total = np.zeros((x.shape[0], len(w), *sizes), np.int64)
    per, inner = len(w) // group, w.shape[1]
    for g, taps in product(range(group), product(*map(range, w.shape[2:]))):
        places = tuple(
            slice(t * d, t * d + (size - 1) * s + 1, s)
            for t, d, s, size in zip(taps, dilations, strides, sizes, strict=True)
        )
        seen = x[(slice(None), slice(g * inner, (g + 1) * inner), *places)]
        weight = w[(slice(g * per, (g + 1) * per), slice(None), *taps)]
        total[:, g * per : (g + 1) * per] += np.einsum("ni...,oi->no...", seen, weight)
    return total.astype(np.int32)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_integer_convolutions(data):
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 1000), "seed"))
    rank, group = draw(st.integers(1, 3), "rank"), draw(st.sampled_from([1, 1, 2, 3]), "group")
    inner, per = draw(st.integers(1, 3), "inner"), draw(st.integers(1, 3), "per")
    kernel = [draw(st.integers(1, 3), "kernel") for _ in range(rank)]
    strides = [draw(st.integers(1, 2), "stride") for _ in range(rank)]
    dilations = [draw(st.integers(1, 2), "dilation") for _ in range(rank)]
    pads = [draw(st.integers(0, 2), "pad") for _ in range(2 * rank)]
    x = random_bytes(rng, draw(st.sampled_from(BYTES)), (2, group * inner, *[5, 6, 5][:rank]))
    w = random_bytes(rng, draw(st.sampled_from(BYTES)), (group * per, inner, *kernel))
    shape = draw(st.sampled_from([None, (), (1,), (len(w),)]), "weights' zero points")
    zeros = [
        draw(st.sampled_from([None, random_bytes(rng, x.dtype, ())]), "data's zero point"),
        None if shape is None else random_bytes(rng, w.dtype, shape),
    ]
    constant = draw(st.sampled_from([("w", "wz"), ("w", "wz", "xz"), ("wz",), ("w",), ()]))
    settings = {"strides": strides, "dilations": dilations, "pads": pads, "group": group}
    found = result(*model(x, w, zeros, constant, **settings))
    np.testing.assert_array_equal(found, defined(x, w, zeros, strides, pads, dilations, group))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("group", [1, 2])
def test_integer_convolutions_as_onnxruntime_has_them(dtype, group):
    rng = np.random.default_rng(3)
    x = random_bytes(rng, "uint8", (1, 4, 9, 8))
    w = random_bytes(rng, dtype, (6, 4 // group, 3, 3))
    zeros = [np.array(7, np.uint8), random_bytes(rng, dtype, ())]
    proto, inputs = model(x, w, zeros, pads=[1, 1, 1, 1], strides=[2, 1], group=group)
    np.testing.assert_array_equal(result(proto, inputs), ort_run(proto, inputs)["y"])


@pytest.mark.parametrize(("x", "w", "zeros", "attributes", "text"), [
    ((1, 3, 5, 5), (4, 2, 3, 3), [(), ()], {}, "2 input channels, found 3"),
    ((1, 4, 5, 5), (3, 2, 3, 3), [(), ()], {"group": 2},
     "output channels divisible by 2 groups, found 3"),
    ((1, 2, 5, 5), (4, 2, 3, 3), [(), (3,)], {},
     "one zero point of the data, 1 or 4 of the weights, found [1, 3]"),
    ((1, 2, 2, 9), (4, 2, 3, 3), [(), ()], {"pads": [0, 1, 0, 1]},
     "a padded image no smaller than its window, [3, 3], found [2, 11]"),
])  # fmt: skip
def test_refused_integer_convolutions(x, w, zeros, attributes, text):
    zeros = [np.zeros(shape, np.uint8) for shape in zeros]
    proto, _ = model(np.zeros(x, np.uint8), np.zeros(w, np.uint8), zeros, **attributes)
    with pytest.raises(ModelError) as caught:
        import_model(proto, "m")
    assert str(caught.value) == f"m: node it (ConvInteger): expected {text}"


@pytest.mark.parametrize("dtypes", [*product(BYTES, BYTES)])
@pytest.mark.parametrize(("a", "b", "zeros"), [
    ((2, 3, 5), (5, 4), [(), (4,)]),
    ((3, 5), (2, 5, 4), [None, (1,)]),
    ((3, 5), (5, 4), [(3,), ()]),
    ((2, 3, 5), (2, 5, 4), [(2, 3, 1), (2, 1, 4)]),
])  # fmt: skip
@pytest.mark.parametrize("constant", [(), ("w", "wz")])
def test_integer_products(a, b, zeros, dtypes, constant):
    """As ONNX defines them; onnxruntime has no zero points for rows and stacks."""
    rng = np.random.default_rng(5)
    a, b = (random_bytes(rng, dtype, shape) for dtype, shape in zip(dtypes, (a, b), strict=True))
    drawn = zip(dtypes, zeros, strict=True)
    zeros = [None if shape is None else random_bytes(rng, dtype, shape) for dtype, shape in drawn]
    found = result(*model(a, b, zeros, constant, op="MatMulInteger"))
    rows, columns = (0 if zero is None else zero.astype(np.int64) for zero in zeros)
    rows = rows[:, np.newaxis] if np.ndim(rows) == 1 else rows
    np.testing.assert_array_equal(found, (a - rows) @ (b - columns))
