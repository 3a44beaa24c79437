"""Host functions as they are scheduled: products, rows, vectors, whatever the processor has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX2, AVX512, NATIVE, SSE
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.operators.product import packed, tile_of
from vdla.compiler.tir.printer import show

VECTORS = [SSE, AVX2, AVX512]
SIZES = st.sampled_from([1, 2, 3, 7, 14, 15, 29, 40])


def graph_of(node, shapes, result, constants=()):
    """One node over float tensors of these shapes; ``constants`` are known."""
    rng = np.random.default_rng(sum(map(sum, shapes.values())))
    values = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
    tensors = {n: TensorType(v.shape, "float32") for n, v in values.items()}
    known = {n: values[n] for n in constants}
    tensors[node.output] = TensorType(result, "float32")
    inputs = tuple(n for n in node.inputs if n not in known)
    return Graph(inputs, (node.output,), (node,), tensors, known), values


def kernel_of(node, graph, vectors=None):
    """The host function of one node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(description, "_native_vectors", lambda: vectors or AVX512)
        return node_function(node, graph, "f", NATIVE)


def text_of(node, shapes, result):
    """The host function as text."""
    return show(kernel_of(node, graph_of(node, shapes, result)[0]).func)


def kernel_and_result(node, shapes, result, constants=(), vectors=None):
    """The host function of one node, and what it computes."""
    graph, values = graph_of(node, shapes, result, constants)
    kernel = kernel_of(node, graph, vectors)
    given_ = {**values, **kernel.constants}
    params = kernel.func.params
    arrays = [np.ascontiguousarray(given_[n]).reshape(p.shape)
              for n, p in zip(kernel.args[:-1], params, strict=False)]  # fmt: skip
    out = np.full(params[-1].shape, np.nan, np.float32)
    jit([kernel.func])["f"](*arrays, out)
    return show(kernel.func), out.reshape(result), values


@settings(max_examples=8)
@given(
    m=SIZES, k=SIZES, n=st.sampled_from([1, 5, 16, 48, 100, 530]), vectors=st.sampled_from(VECTORS),
    known=st.booleans(), stack=st.sampled_from([((), ()), ((2, 3), (3,)), ((1,), (9,))]),
)  # fmt: skip
def test_products_of_matrices(m, k, n, vectors, known, stack):
    left, right = stack
    node = ops.MatMul(name="p", output="y", a="a", b="b")
    shapes = {"a": (*left, m, k), "b": (*right, k, n)}
    result = (*np.broadcast_shapes(left, right), m, n)
    constants = ("b",) if known else ()
    _, found, values = kernel_and_result(node, shapes, result, constants, vectors)
    want = values["a"].astype(np.float64) @ values["b"].astype(np.float64)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("bias", [None, "c"])
def test_dense_layers(known, bias):
    node = ops.Dense(name="d", output="y", data="a", weight="b", bias=bias)
    shapes = {"a": (17, 33), "b": (21, 33), **({"c": (21,)} if bias else {})}
    _, found, values = kernel_and_result(node, shapes, (17, 21), ("b",) if known else ())
    want = values["a"] @ values["b"].T + (values["c"] if bias else 0)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@given(rows=st.integers(1, 300), columns=st.integers(1, 70), registers=st.sampled_from([16, 32]))
def test_a_tile_fits_in_registers(rows, columns, registers):
    high, wide = tile_of(rows, columns, registers)
    assert high * wide + wide + 1 <= registers
    assert 1 <= wide <= columns
    assert 1 <= high <= rows


def test_large_tiles_are_fourteen_rows_by_two_vectors_or_like_them():
    high, wide = tile_of(1024, 64, 32)
    assert 24 <= high * wide <= 28
    assert tile_of(1, 64, 32) == (1, 8)


def test_panels():
    matrix = np.arange(2 * 3 * 10).reshape(2, 3, 10)
    found = packed(matrix, 2, 4)
    assert found.shape == (2, 2, 3, 2, 4)
    for stack, k, n in np.ndindex(2, 3, 10):
        assert found[stack, n // 8, k, n % 8 // 4, n % 4] == matrix[stack, k, n]
    assert (found[:, 1, :, 0, 2:] == 0).all()


@pytest.mark.parametrize("shapes", [((7, 30), (30, 45)), ((3, 20, 8), (3, 8, 600))])
def test_products_of_float64_have_vectors_of_half_as_many(shapes):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape) for shape in shapes)
    node = ops.MatMul(name="p", output="y", a="a", b="b")
    tensors = {n: TensorType(v.shape, "float64") for n, v in (("a", a), ("b", b), ("y", a @ b))}
    kernel = kernel_of(node, Graph(("a", "b"), ("y",), (node,), tensors, {}))
    found = np.full_like(a @ b, np.nan)
    jit([kernel.func])["f"](a, b, found)
    np.testing.assert_allclose(found, a @ b, rtol=1e-12, atol=1e-12)
    assert "in 8 vectorized" in show(kernel.func)
    assert "in 16 vectorized" not in show(kernel.func)


def test_the_left_factor_is_rearranged_where_it_is_read_often():
    node = ops.MatMul(name="p", output="y", a="a", b="b")
    assert "alloc rows" in text_of(node, {"a": (40, 8), "b": (8, 600)}, (40, 600))
    assert "alloc rows" not in text_of(node, {"a": (40, 8), "b": (8, 40)}, (40, 40))


@settings(max_examples=8)
@given(
    shape=st.sampled_from([(3, 64), (2, 5, 96), (70, 48), (4, 33), (200, 128)]),
    function=st.sampled_from(["sum", "max", "min", "mean", "prod"]),
    vectors=st.sampled_from(VECTORS), data=st.data(),
)  # fmt: skip
def test_reductions(shape, function, vectors, data):
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    node = ops.Reduce(name="r", output="y", data="x", function=function, axes=axes)
    result = tuple(1 if n in axes else size for n, size in enumerate(shape))
    _, found, values = kernel_and_result(node, {"x": shape}, result, vectors=vectors)
    reduce = {"mean": np.mean, "sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}
    want = reduce[function](values["x"].astype(np.float64), axis=axes, keepdims=True)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


def test_rows_are_reduced_in_lanes():
    node = ops.Softmax(name="s", output="y", data="x", axis=1)
    text, found, values = kernel_and_result(node, {"x": (300, 64)}, (300, 64))
    assert text.count("_rf[") > 1
    assert "parallel" in text
    e = np.exp(values["x"].astype(np.float64))
    np.testing.assert_allclose(found, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_little_work_is_not_shared():
    node = ops.Softmax(name="s", output="y", data="x", axis=1)
    assert "parallel" not in text_of(node, {"x": (3, 64)}, (3, 64))


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("steps", [(80, 80), (1, 6400), (3, 397)])
def test_long_sums_of_vectors_are_sums_of_parts(steps, vectors):
    """One after the other, 6,400 steps would be off by more than ten times as much."""
    shape = (1, 2, *steps, 16)
    node = ops.Reduce(name="r", output="y", data="x", function="sum", axes=(2, 3), keepdims=False)
    rng = np.random.default_rng(0)
    graph, _ = graph_of(node, {"x": shape}, (1, 2, 16))
    func = kernel_of(node, graph, vectors).func
    x, out = rng.random(shape, dtype=np.float32), np.full((1, 2, 16), np.nan, np.float32)
    jit([func])["f"](*(a.reshape(p.shape) for a, p in zip((x, out), func.params, strict=True)))
    np.testing.assert_allclose(out, x.sum((2, 3), dtype=np.float64), rtol=5e-7)
    assert "_rf" in show(func)


@pytest.mark.parametrize("function", ["max", "min"])
def test_other_long_reductions_of_vectors(function):
    node = ops.Reduce(name="r", output="y", data="x", function=function, axes=(1,), keepdims=False)
    text, out, values = kernel_and_result(node, {"x": (3, 200, 8)}, (3, 8))
    assert f"{function}_rf" in text
    want = getattr(values["x"].astype(np.float64), function)(1)
    np.testing.assert_array_equal(out, want.astype(np.float32))


def test_short_sums_of_vectors_have_no_parts():
    node = ops.Reduce(name="r", output="y", data="x", function="sum", axes=(1,), keepdims=False)
    assert "_rf" not in text_of(node, {"x": (3, 49, 16)}, (3, 16))
