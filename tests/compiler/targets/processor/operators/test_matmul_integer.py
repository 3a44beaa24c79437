"""Products of bytes: MatMulInteger and int8 dense layers, in vectors of every size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from vdla import api
from vdla.analysis.ort import ort_run
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX2, AVX512, NATIVE, SSE
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.operators.product import packed_words
from vdla.compiler.tir.printer import show
from vdla.runtime import Executor

# By the portable products: another processor's instructions don't run here.
VECTORS = [None, *(replace(v, dot4="multiply") for v in (SSE, AVX2, AVX512))]
SIZES = st.sampled_from([1, 2, 3, 5, 8, 17, 40])


def kernel_of(node, graph, vectors):
    """The host function of one node; of this processor where ``vectors`` is None."""
    with pytest.MonkeyPatch.context() as patch:
        if vectors:
            patch.setattr(description, "_native_vectors", lambda: vectors)
        return node_function(node, graph, "f", NATIVE)


def equal(node, known, data, vectors):
    """Compiled as numpy has it."""
    types = {n: TensorType(a.shape, str(a.dtype)) for n, a in {**known, **data}.items()}
    shape = node.result_shape([types[name].shape for name in node.inputs])
    types["y"] = TensorType(shape, "int32" if isinstance(node, ops.MatMulInteger) else "int8")
    graph = Graph(tuple(data), ("y",), (node,), types, known)
    want = node.evaluate([{**known, **data}[name] for name in node.inputs], types["y"])
    kernel = kernel_of(node, graph, vectors)
    given = {**known, **data, **kernel.constants}
    found = np.empty(shape, want.dtype)
    jit([kernel.func])["f"](*(np.array(given[n], order="C") for n in kernel.args[:-1]), found)
    np.testing.assert_array_equal(found, want)


def bytes_of(rng, dtype, *shape):
    """All values, and often the ends of the range."""
    limits = np.iinfo(dtype)
    ends = rng.choice([limits.min, limits.max], shape)
    values = rng.integers(limits.min, limits.max, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.3, ends, values).astype(dtype)


@settings(max_examples=15)
@given(
    m=SIZES, k=SIZES, n=SIZES, stack=st.sampled_from([(), (1,), (3,), (2, 2)]),
    kinds=st.tuples(*[st.sampled_from(["int8", "uint8"])] * 2),
    zeros=st.sampled_from(["none", "one", "each"]), seed=st.integers(0, 99),
    vectors=st.sampled_from(VECTORS),
)  # fmt: skip
def test_products_with_zero_points(m, k, n, stack, kinds, zeros, seed, vectors):
    rng = np.random.default_rng(seed)
    shape = {"none": 1, "one": 1, "each": n}[zeros]
    known = {"b": bytes_of(rng, kinds[1], k, n), "t": bytes_of(rng, kinds[1], shape)}
    if zeros == "none":
        known["t"] = np.zeros(1, kinds[1])
    data = {"a": bytes_of(rng, kinds[0], *stack, m, k), "z": bytes_of(rng, kinds[0], 1)}
    node = ops.MatMulInteger(name="p", output="y", a="a", b="b", a_zero="z", b_zero="t")
    equal(node, known, data, vectors)


@pytest.mark.parametrize("seed", range(3))
def test_one_column_that_threads_share(seed):
    """A loop that isn't inlined: LLVM's SLP vectorizer led to other numbers here."""
    rng = np.random.default_rng(seed)
    known = {"b": bytes_of(rng, "int8", 5, 1), "t": np.zeros(1, np.int8)}
    data = {"a": bytes_of(rng, "int8", 5, 5), "z": bytes_of(rng, "int8", 1)}
    node = ops.MatMulInteger(name="p", output="y", a="a", b="b", a_zero="z", b_zero="t")
    equal(node, known, data, None)


@settings(max_examples=8)
@given(m=SIZES, k=SIZES, n=SIZES, zero=st.integers(-128, 127), seed=st.integers(0, 99),
       vectors=st.sampled_from(VECTORS))  # fmt: skip
def test_dense_layers(m, k, n, zero, seed, vectors):
    rng = np.random.default_rng(seed)
    known = {
        "w": bytes_of(rng, "int8", n, k),
        "b": rng.integers(-(1 << 20), 1 << 20, n).astype(np.int32),
    }
    scale = tuple(float(np.float32(s)) for s in rng.uniform(1e-4, 2e-3, n))
    node = ops.QDense(
        name="d",
        output="y",
        data="x",
        weight="w",
        bias="b",
        zeros=(zero,),
        requant=Requant(scale, 3, -100),
    )
    equal(node, known, {"x": bytes_of(rng, "int8", m, k)}, vectors)


def test_four_bytes_are_one_step():
    rng = np.random.default_rng(0)
    known = {"b": bytes_of(rng, "int8", 64, 48), "t": np.zeros(1, np.int8)}
    types = {n: TensorType(a.shape, str(a.dtype)) for n, a in known.items()}
    types |= {"a": TensorType((32, 64), "uint8"), "z": TensorType((1,), "uint8")}
    types["y"] = TensorType((32, 48), "int32")
    node = ops.MatMulInteger(name="p", output="y", a="a", b="b", a_zero="z", b_zero="t")
    graph = Graph(("a", "z"), ("y",), (node,), types, known)
    text = show(kernel_of(node, graph, description.VNNI).func)
    assert text.count("dot4x") == 1
    loops = [line.strip() for line in text.partition("dot4x")[0].splitlines() if "for " in line]
    assert loops[-4:-1] == ["for k in 16:", "for i2_1 in 8 unrolled:", "for i3_1 in 3 unrolled:"]


def test_words_of_a_matrix():
    matrix = np.arange(1, 16, dtype=np.int8).reshape(5, 3)
    words = packed_words(matrix, wide=1, lanes=2)
    assert words.shape == (2, 2, 1, 2, 4)  # panels, words, vectors, lanes, bytes
    assert words[0, 0, 0].tolist() == [[1, 4, 7, 10], [2, 5, 8, 11]]
    assert words[1, 1, 0].tolist() == [[15, 0, 0, 0], [0, 0, 0, 0]]


def test_what_does_not_fit():
    node = ops.MatMulInteger(name="p", output="y", a="a", b="b", a_zero="z", b_zero="t")
    for shapes, message in (
        ([(2, 3), (4, 5), (1,), (1,)], r"expected matrices that fit each other, found \[2, 3\]"),
        ([(3,), (3, 5), (1,), (1,)], "expected matrices that fit each other"),
        ([(2, 3), (3, 5), (2,), (1,)], r"zero points of shapes \[1\] and \[1\] or \[5\], found"),
        ([(2, 3), (3, 5), (1,), (4,)], r"found \[1\], \[4\]"),
    ):
        with pytest.raises(GraphError, match=message):
            node.result_shape(shapes)


def model(path, zeros, weight="b", a_zero=()):
    """One MatMulInteger; ``zeros`` are the weights' zero points, or None."""
    rng = np.random.default_rng(1)
    known = {"b": bytes_of(rng, "uint8", 6, 5)}
    if zeros is not None:
        known["t"] = np.asarray(zeros, np.uint8)
    names = ["x", weight, "z", *(["t"] if zeros is not None else [])]
    kinds = {"x": (2, 4, 6), "z": a_zero, "v": (6, 5)}
    inputs = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in kinds.items()]
    y = helper.make_tensor_value_info("y", TensorProto.INT32, (2, 4, 5))
    nodes = [helper.make_node("MatMulInteger", names, ["y"], "product")]
    values = [numpy_helper.from_array(v, n) for n, v in known.items()]
    graph = helper.make_graph(nodes, "g", inputs, [y], values)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    data = {n: bytes_of(rng, "uint8", *shape) for n, shape in kinds.items()}
    return path, {**data, "z": np.full(a_zero, 9, np.uint8)}


@pytest.mark.parametrize("zeros", [None, 7, [1, 2, 3, 4, 5]])
def test_onnx_runs_it_alike(zeros, tmp_path):
    path, data = model(tmp_path / "m.onnx", zeros)
    module = api.compile(path, device="cpu")
    assert "MatMulInteger" in {row["op"] for row in module.metadata["placement"]}
    (found,) = Executor(module).run(data).outputs.values()
    (want,) = ort_run(path, data).values()
    np.testing.assert_array_equal(found, want)


def test_weights_that_are_computed(tmp_path):
    path, data = model(tmp_path / "m.onnx", 3, weight="v")
    module = api.compile(path, device="cpu")
    assert {row["device"] for row in module.metadata["placement"]} == {"cpu"}
    (found,) = Executor(module).run(data).outputs.values()
    want = np.matmul(data["x"].astype(int) - 9, data["v"].astype(int) - 3)
    np.testing.assert_array_equal(found, want)
