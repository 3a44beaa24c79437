"""Which operators become one function, and that it computes what they did one by one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from floats import Net
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.rewrites.fuse_ops import fuse_ops
from vdla.compiler.targets.processor.rewrites.products import stack_products
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

PAPER = load_config("paper")


def groups(graph):
    """The operators of each function."""
    return [[p.op for p in getattr(n, "parts", (n,))] for n in fuse_ops(graph, NATIVE).nodes]


def check(graph, seed=0):
    """Compiled for the processor, it computes what the reference does."""
    x = np.random.default_rng(seed).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    want = evaluate(graph, {"x": x})
    found = Executor(compile_graph(graph, PAPER, Options(device="cpu"))).run({"x": x}).outputs
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], want[name], rtol=1e-4, atol=1e-5)


def gelu(net, x):
    """x / 2 * (1 + erf(x / √2)): what it reads is read on two ways."""
    half, one, root = net.constant(), net.constant(), net.constant()
    gate = net.binary("add", net.unary("erf", net.binary("div", x, root)), one)
    return net.binary("mul", net.binary("mul", x, gate), half)


def test_a_diamond_joins_the_product_before_it():
    net = Net(5, 24)
    product = net.add(ops.MatMul, a="x", b=net.constant(24, 20))
    graph = net.graph(gelu(net, net.binary("add", product, net.constant(20))))
    assert groups(graph) == [["MatMul", "Add", "Binary", "Unary", "Add", "Binary", "Binary"]]
    check(graph)


def test_what_somebody_else_reads_stays():
    net = Net(4, 6)
    y = net.unary("exp", "x")
    z = net.unary("tanh", y)
    total = net.add(ops.Reduce, data=y, function="sum", axes=(1,))
    graph = net.graph(z, total)
    assert groups(graph) == [["Unary"], ["Unary"], ["Reduce"]]
    check(graph)


def test_a_result_of_the_graph_stays():
    net = Net(4, 6)
    y = net.unary("exp", "x")
    graph = net.graph(y, net.unary("tanh", y))
    assert groups(graph) == [["Unary"], ["Unary"]]


def test_of_two_products_the_later_one_takes_the_sum():
    net = Net(4, 6)
    left = net.add(ops.MatMul, a="x", b=net.constant(6, 8))
    right = net.add(ops.MatMul, a="x", b=net.constant(6, 8))
    graph = net.graph(net.binary("add", left, right))
    assert groups(graph) == [["MatMul"], ["MatMul", "Add"]]
    check(graph)


def test_other_sizes_stay_apart():
    net = Net(4, 6)
    row = net.unary("exp", net.add(ops.Reduce, data="x", function="max", axes=(0,)))
    graph = net.graph(net.binary("sub", "x", row))
    assert groups(graph) == [["Reduce", "Unary"], ["Binary"]] or groups(graph) == [
        ["Reduce"], ["Unary"], ["Binary"]
    ]  # fmt: skip
    check(graph)


def test_a_reduction_computes_what_it_reads():
    net = Net(9, 64)
    square = net.binary("mul", "x", "x")
    graph = net.graph(net.add(ops.Reduce, data=square, function="mean", axes=(1,)))
    assert groups(graph) == [["Binary", "Reduce"]]
    check(graph)


def test_a_product_reads_what_is_transposed_where_it_lies():
    net = Net(3, 10, 20)
    turned = net.add(ops.Transpose, data="x", perm=(0, 2, 1))
    graph = net.graph(net.add(ops.MatMul, a="x", b=turned))
    assert groups(graph) == [["Transpose", "MatMul"]]
    check(graph)


def test_comparisons_and_choices():
    net = Net(5, 7)
    smaller = net.binary("lt", "x", net.constant(5, 7))
    y = net.add(ops.Where, condition=smaller, a="x", b=net.unary("exp", "x"))
    assert groups(net.graph(y)) == [["Binary", "Unary", "Where"]]
    check(net.graph(y))


def test_a_long_row_of_diamonds_is_cut():
    net, y = Net(3, 5), "x"
    for _ in range(12):
        y = net.binary("add", net.unary("sin", y), y)
    graph = net.graph(y)
    assert 2 < len(groups(graph)) < 13
    check(graph)


@settings(max_examples=8)
@given(data=st.data())
def test_any_graph_of_elements(data):
    net = Net(2, 9, seed=1)
    names = ["x", net.constant(2, 9), net.constant(9)]
    for _ in range(data.draw(st.integers(2, 9))):
        a, b = (data.draw(st.sampled_from(names)) for _ in range(2))
        kind = data.draw(st.sampled_from(["tanh", "abs", "add", "mul", "matmul", "sum"]))
        if kind in ("tanh", "abs"):
            names.append(net.unary(kind, a))
        elif kind == "matmul":
            names.append(net.add(ops.MatMul, a=names[0], b=net.constant(9, 9)))
        elif kind == "sum" and len(net.tensors[a].shape) == 2:
            names.append(net.add(ops.Reduce, data=a, function="mean", axes=(1,)))
        else:
            names.append(net.binary("mul" if kind == "sum" else kind, a, b))
    outputs = [n.output for n in net.nodes][-2:]
    check(net.graph(*dict.fromkeys(outputs)))


# Slices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [range(0, 9, 2), range(8, -1, -3), [4] * 5], ids=str)
def test_a_slice_is_read_where_it_lies(rows):
    net = Net(9, 12)
    part = net.take("x", rows, range(12))
    graph = net.graph(net.unary("tanh", net.binary("mul", part, net.constant(12))))
    assert groups(graph) == [["Take", "Binary", "Unary"]]
    check(graph)


@pytest.mark.parametrize("rows", [range(2, 7), [4]], ids=str)
def test_a_run_of_rows_stays_alone(rows):
    """It is a view, which takes no function."""
    net = Net(9, 12)
    part = net.take("x", rows, range(12))
    graph = net.graph(net.unary("tanh", net.binary("mul", part, net.constant(12))))
    assert groups(graph) == [["Take"], ["Binary", "Unary"]]
    check(graph)


def test_two_slices_and_what_adds_them():
    net = Net(9, 12)
    a, b = (net.take("x", range(9), range(n, 12, 2)) for n in (0, 1))
    graph = net.graph(net.binary("add", net.unary("exp", a), b))
    assert groups(graph) == [["Take", "Take", "Unary", "Add"]]
    check(graph)


def test_a_gate_of_halves():
    """Half of the channels times the sigmoid of the others, as in a gated linear unit."""
    net = Net(3, 16)
    a, b = (net.take("x", range(3), range(n, n + 8)) for n in (0, 8))
    graph = net.graph(net.binary("mul", a, net.unary("sigmoid", b)))
    (group,) = groups(graph)
    assert sorted(group) == ["Binary", "Take", "Take", "Unary"]
    check(graph)


@pytest.mark.parametrize("rows", [(0, 1, 3), (0, 0, 1), (3, 1, 2)], ids=str)
def test_rows_at_uneven_distances_are_copied(rows):
    net = Net(9, 12)
    graph = net.graph(net.unary("tanh", net.take("x", rows, range(12))))
    assert groups(graph) == [["Take"], ["Unary"]]
    check(graph)


@pytest.mark.parametrize("rows", [(-1, *range(9)), (*range(9), -1), (-1, 0), (-1,)], ids=str)
def test_what_is_filled_is_no_slice(rows):
    """-1 and 0 are at an even distance too, but -1 is no place."""
    net = Net(9, 12)
    graph = net.graph(net.unary("tanh", net.take("x", rows, range(12), fill=0.5)))
    assert groups(graph) == [["Take"], ["Unary"]]
    check(graph)


def test_a_slice_that_is_a_result_stays():
    net = Net(9, 12)
    part = net.take("x", range(2, 7), range(12))
    graph = net.graph(part, net.unary("tanh", part))
    assert groups(graph) == [["Take"], ["Unary"]]
    check(graph)


def test_a_slice_that_a_product_reads_stays():
    net = Net(9, 12)
    part = net.take("x", range(2, 7), range(12))
    graph = net.graph(net.add(ops.MatMul, a=part, b=net.constant(12, 8)))
    assert groups(graph) == [["Take"], ["MatMul"]]
    check(graph)


@settings(max_examples=6)
@given(data=st.data())
def test_any_slices_of_slices(data):
    net, names = Net(6, 8, seed=2), ["x"]
    for _ in range(data.draw(st.integers(2, 6))):
        name = data.draw(st.sampled_from(names))
        sizes = net.tensors[name].shape
        kind = data.draw(st.sampled_from(["slice", "fill", "tanh", "mul"]))
        if kind in ("slice", "fill"):
            steps = [data.draw(st.sampled_from([1, 2, -1])) for _ in sizes]
            tables = [[*range(n)][::step] for n, step in zip(sizes, steps, strict=True)]
            tables[0] = [-1, *tables[0]] if kind == "fill" else tables[0]
            names.append(net.take(name, *tables, fill=0.5))
        elif kind == "tanh":
            names.append(net.unary("tanh", name))
        else:
            others = [n for n in names if net.tensors[n].shape == sizes]
            names.append(net.binary("mul", name, data.draw(st.sampled_from(others))))
    outputs = [n.output for n in net.nodes][-2:]
    check(net.graph(*outputs))


# Dense layers of stacks --------------------------------------------------------------------------


def stacked(net, outputs, *shape):
    rows = net.add(ops.Reshape, data="x", shape=(6, 5))
    dense = net.add(ops.Dense, data=rows, weight=net.constant(outputs, 5))
    return net.add(ops.Reshape, data=dense, shape=shape)


def test_a_dense_layer_between_reshapes_is_a_product():
    net = Net(2, 3, 5)
    graph = stack_products(net.graph(stacked(net, 4, 2, 3, 4)))
    (node,) = graph.nodes
    assert isinstance(node, ops.MatMul)
    assert (node.a, graph.tensors[node.b].shape) == ("x", (5, 4))
    check(net.graph(net.nodes[-1].output))


@pytest.mark.parametrize("shape", [(3, 2, 4), (24,)])
def test_one_that_ends_in_another_shape_stays(shape):
    net = Net(2, 3, 5)
    graph = net.graph(stacked(net, 4, *shape))
    assert stack_products(graph) == graph
    check(graph)


def test_rows_that_others_read_stay():
    net = Net(2, 3, 5)
    last = stacked(net, 4, 2, 3, 4)
    graph = net.graph(last, net.unary("exp", net.nodes[0].output))
    assert [n.op for n in stack_products(graph).nodes] == ["Reshape", "MatMul", "Unary"]
    check(graph)


def test_what_follows_a_dense_layer_of_integers_is_one_function_with_it(tmp_path):
    """Here int8 results become floats again without a DequantizeLinear."""
    rng, path = np.random.default_rng(5), tmp_path / "m.onnx"
    weights = {
        "sx": np.float32(0.02), "z": np.int8(3), "sw": np.float32(0.01), "zw": np.int8(0),
        "sy": np.float32(0.2), "w": rng.integers(-127, 127, (64, 32)).astype(np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"]),
        helper.make_node("MatMul", ["xd", "wd"], ["t"]),
        helper.make_node("QuantizeLinear", ["t", "sy", "z"], ["tq"]),
        helper.make_node("Cast", ["tq"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["c", "sx"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(*e) for e in (("x", 1, [5, 64]), ("y", 1, [5, 32]))]
    known = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], known)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    module = compile_graph(import_onnx(path, floats=True), PAPER, Options(device="cpu"))
    assert [row["op"] for row in module.metadata["placement"]] == ["Quantize", "QDense"]
    x = {"x": rng.standard_normal((5, 64)).astype(np.float32)}
    want = ort_run(path, x, fuse=False)["y"]
    off = np.abs(Executor(module).run(x).outputs["y"] - want)
    assert off.max() <= 0.021  # a step where float32 may round either way
    assert (off > 0.001).mean() <= 0.02
