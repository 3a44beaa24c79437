"""Products by block-sparse weights: which are taken, what they read, and their numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from convolutions import check
from floats import Net
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX2, AVX512, NATIVE, SSE
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.operators import TEMPLATES, sparse, template_for
from vdla.compiler.targets.processor.operators.pieces import BLOCK
from vdla.compiler.targets.processor.operators.sparse import Sparse
from vdla.compiler.targets.processor.passes import to_processor
from vdla.compiler.targets.processor.source import from_source, to_source
from vdla.compiler.targets.template import express
from vdla.compiler.tir.interp import run

# By the portable products: another processor's instructions don't run here.
VECTORS = [None, *(replace(v, dot4="multiply") for v in (SSE, AVX2, AVX512))]
SIZES = st.sampled_from([1, 5, 16, 17, 40, 64, 70])
KINDS = ("dense", "no bias", "matmul", "stack", "int8")


@dataclass
class Layer:
    """One layer with its operands, and its result by numpy."""

    graph: Graph
    x: np.ndarray
    want: np.ndarray

    @property
    def node(self):
        return self.graph.nodes[0]

    def function(self, vectors=None):
        """Its function, with the vectors of this processor where none are given."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sparse, "LEAST_BLOCKS", 1)
            if vectors:
                patch.setattr(description, "_native_vectors", lambda: vectors)
            assert template_for(self.node, self.graph, NATIVE) is Sparse
            return node_function(self.node, self.graph, "f", NATIVE)

    def given(self, function):
        """What a function takes, and where its result goes."""
        known = {"x": self.x, **self.graph.constants, **function.constants}
        arrays = [np.array(known[name], order="C") for name in function.args[:-1]]
        return [*arrays, np.full(self.want.shape, 77, self.want.dtype)]


def blocks(rng, n, k, zeros):
    """Which weights may differ from 0: all but those of so many blocks of outputs and inputs."""
    shape = -(-n // BLOCK), -(-k // BLOCK)
    keep = np.arange(shape[0] * shape[1]) >= zeros * shape[0] * shape[1]
    return rng.permutation(keep).reshape(shape).repeat(BLOCK, 0).repeat(BLOCK, 1)[:n, :k]


def layer(kind, m, k, n, zeros, seed=0):
    """A layer of whole numbers, whose sums are exact in float32 in every order."""
    rng = np.random.default_rng(seed)
    dtype = "int8" if kind == "int8" else "float32"
    shape = (2, 3, m, k) if kind == "stack" else (m, k)
    x = rng.integers(-128 if dtype == "int8" else -9, 128 if dtype == "int8" else 10, shape)
    weight = rng.integers(-127, 128, (n, k)) * blocks(rng, n, k, zeros)
    known = {"w": weight.astype(dtype), "b": rng.integers(-999, 999, n)}
    known["b"] = known["b"].astype("int32" if dtype == "int8" else dtype)
    names = {"name": "d", "output": "y"}
    if kind in ("matmul", "stack"):
        known = {"w": np.ascontiguousarray(known["w"].T)}
        node = ops.MatMul(**names, a="x", b="w")
    elif kind == "int8":
        requant = Requant(tuple(map(float, rng.uniform(1e-4, 2e-3, n).astype("f4"))), 3, -100)
        node = ops.QDense(**names, data="x", weight="w", bias="b", zeros=(7,), requant=requant)
    else:
        node = ops.Dense(**names, data="x", weight="w", bias="b" if kind == "dense" else None)
        known = known if node.bias else {"w": known["w"]}
    x = x.astype(dtype)
    types = {a: TensorType(v.shape, str(v.dtype)) for a, v in {"x": x, **known}.items()}
    types["y"] = TensorType((*shape[:-1], n), dtype)
    graph = Graph(("x",), ("y",), (node,), types, known)
    return Layer(graph, x, node.evaluate([x, *known.values()], types["y"]))


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(KINDS), m=st.sampled_from([1, 2, 5, 17, 33]), k=SIZES, n=SIZES,
    zeros=st.sampled_from([0.4, 0.8, 1.0]), seed=st.integers(0, 99),
    vectors=st.sampled_from(VECTORS),
)  # fmt: skip
def test_any_size(kind, m, k, n, zeros, seed, vectors):
    case = layer(kind, m, k, n, zeros, seed)
    function = case.function(vectors)
    arrays = case.given(function)
    jit([function.func])["f"](*arrays)
    np.testing.assert_array_equal(arrays[-1], case.want)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_zeros(kind):
    """Blocks of outputs without any weight, and one with all."""
    case = layer(kind, 3, 200, 100, 1.0)
    matrix = case.graph.constants["w"]
    matrix = matrix.T if case.node.inputs[1] == "w" and kind in ("matmul", "stack") else matrix
    matrix[32:48] = 2
    constants = case.graph.constants
    case.want = case.node.evaluate([case.x, *constants.values()], case.graph.tensors["y"])
    function = case.function()
    arrays = case.given(function)
    jit([function.func])["f"](*arrays)
    np.testing.assert_array_equal(arrays[-1], case.want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 3])
def test_the_interpreter_agrees(kind, m):
    case = layer(kind, m, 40, 36, 0.5)
    function = case.function()
    arrays = case.given(function)
    run(to_processor(function.func), arrays)
    np.testing.assert_array_equal(arrays[-1], case.want)


@pytest.mark.parametrize("kind", ["dense", "int8"])
def test_its_text_is_a_function(kind):
    """As a module's file keeps it, for other processors."""
    case = layer(kind, 5, 80, 64, 0.6)
    function = case.function()
    (again,) = from_source(to_source([function.func]), NATIVE)
    arrays = case.given(function)
    jit([again])["f"](*arrays)
    np.testing.assert_array_equal(arrays[-1], case.want)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_blocks_are_nowhere(kind):
    case = layer(kind, 2, 512, 512, 0.8)
    sizes = {name: value.size for name, value in case.function().constants.items()}
    assert "d.blocks" in sizes
    assert sum(sizes.values()) < 1.3 * 0.2 * 512 * 512


@pytest.mark.parametrize("follows", ["nothing", "tanh", "sum"])
def test_what_follows_is_fused(follows):
    net = Net(9, 300)
    weight, bias = net.constant(260, 300), net.constant(260)
    net.constants[weight] *= blocks(net.rng, 260, 300, 0.7)
    y = net.add(ops.Dense, data="x", weight=weight, bias=bias)
    y = net.unary("tanh", y) if follows == "tanh" else y
    y = net.binary("add", y, net.constant(9, 260)) if follows == "sum" else y
    graph = net.graph(y)
    assert template_for(graph.nodes[0], graph, NATIVE) is Sparse
    check(graph, y)


def refusal(case):
    """Why a layer isn't taken."""
    return Sparse.refusal(case.node, case.graph, NATIVE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_to_others(kind):
    assert refusal(layer(kind, 1, 256, 256, 0.4)) is None
    few = layer(kind, 1, 256, 256, 0.39)
    assert template_for(few.node, few.graph, NATIVE) is not Sparse
    few.graph.constants["w"][::3] = 0  # zeros enough, but not in blocks
    assert refusal(few) == "39% of its blocks of weights are zero"
    assert refusal(layer(kind, 1, 256, 256, 0)) == "fewer than 40% of its weights are zero"
    assert refusal(layer(kind, 1, 240, 256, 0.9)) == "it has 240 blocks of weights"


def test_weights_that_are_computed():
    net = Net(4, 256)
    weight = net.unary("tanh", net.constant(256, 256))
    net.add(ops.Dense, data="x", weight=weight)
    graph = net.graph("t1")
    assert Sparse.refusal(graph.nodes[1], graph, NATIVE) == (
        "it has no matrix of weights that is known"
    )


def test_other_types():
    net = Net(4, 256)
    net.constants["c0"] = np.zeros((256, 256), np.float16)
    net.tensors |= {name: TensorType((256, 256), "float16") for name in ("c0", "x")}
    net.add(ops.MatMul, a="x", b="c0", dtype="float16")
    graph = net.graph("t0")
    assert Sparse.refusal(graph.nodes[0], graph, NATIVE) == "it is a product of float16"


@pytest.mark.parametrize("kind", ["matmul", "int8"])
def test_a_search_may_try_other_indices(kind):
    """Its arrays are random, within what the parameters promise."""
    case = layer(kind, 2, 300, 256, 0.5)
    expression = express(case.node, case.graph, TEMPLATES, NATIVE)
    params = dict(
        zip(expression.recipe.args, expression.unscheduled("f").built.func.params, strict=False)
    )
    blocks_there = case.function().constants["d.blocks"].size // BLOCK**2
    assert params["d.columns"].value_range == (0, 18)
    assert params["d.places"].value_range == (0, params["d.columns"].shape[0] - 1)
    assert params["d.columns"].span == blocks_there
