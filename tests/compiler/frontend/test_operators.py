"""Operators of float models: what they become computes what onnxruntime does, by vdla alone."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import ModelError, import_model, import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

RNG = np.random.default_rng(7)
F = np.float32


def model(nodes, inputs, constants=None, outputs=("y",), opset=18):
    """A model of nodes; inputs are arrays, outputs have the types that onnxruntime gives them."""
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=n) for n in outputs]
    weights = [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", ends, results, weights)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def typed(proto):
    """With the types of its outputs, which the checker wants; float32 where nobody knows."""
    proto = onnx.shape_inference.infer_shapes(proto)
    for value in proto.graph.output:
        if not value.type.WhichOneof("value"):
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        kind = value.type
        if kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape"):
            kind.tensor_type.shape.dim.add()
    return proto


def agrees(nodes, inputs, constants=None, outputs=("y",), opset=18, rtol=1e-5):
    """The graph, which is vdla's own and computes what onnxruntime does."""
    proto = typed(model(nodes, inputs, constants, outputs, opset))
    graph = import_model(proto, "m")
    assert not any(isinstance(node, ops.External) for node in graph.nodes)
    want = ort_run(proto, inputs)
    found = evaluate(optimize(graph), inputs)
    for name, output in zip(graph.outputs, want.values(), strict=True):
        assert found[name].dtype == output.dtype
        np.testing.assert_allclose(found[name], output, rtol=rtol, atol=1e-5)
    return graph


def real(*shape):
    return RNG.standard_normal(shape).astype(F)


def one(op, *operands, **attributes):
    return [helper.make_node(op, operands, ["y"], name="it", **attributes)]


@pytest.mark.parametrize(("shape", "kernel", "attributes"), [
    ((2, 4, 9), (6, 2, 3), {"group": 2, "strides": [2], "pads": [1, 2]}),
    ((1, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"dilations": [2, 1, 1], "pads": [1, 0, 1, 0, 1, 0]}),
    ((1, 3, 5, 6, 7), (4, 3, 3, 3, 3), {"strides": [2, 1, 2], "auto_pad": "SAME_UPPER"}),
])  # fmt: skip
def test_convolutions_of_signals_and_volumes(shape, kernel, attributes):
    weights = {"w": real(*kernel), "b": real(kernel[0])}
    agrees(one("Conv", "x", "w", "b", **attributes), {"x": real(*shape)}, weights)


@pytest.mark.parametrize(("shape", "kernel", "attributes"), [
    ((1, 4, 5), (4, 3, 3), {"strides": [2], "output_padding": [1]}),
    ((2, 4, 5, 4), (4, 3, 3, 2), {"strides": [2, 3], "pads": [1, 0, 2, 1], "group": 2}),
    ((1, 2, 4, 4), (2, 3, 3, 3), {"dilations": [2, 1], "strides": [2, 2]}),
    ((1, 2, 4, 4), (2, 3, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 2, 3, 3, 4), (2, 2, 2, 3, 2), {"strides": [2, 1, 2]}),
])  # fmt: skip
def test_transposed_convolutions(shape, kernel, attributes):
    x, weights = {"x": real(*shape)}, {"w": real(*kernel)}
    agrees(one("ConvTranspose", "x", "w", **attributes), x, weights)


@pytest.mark.parametrize("shape", [(2, 3, 11), (1, 3, 9, 8), (1, 2, 7, 6, 8)])
@pytest.mark.parametrize(("op", "attributes"), [
    ("MaxPool", {}), ("MaxPool", {"ceil_mode": 1}), ("AveragePool", {"count_include_pad": 1}),
    ("AveragePool", {"ceil_mode": 1}), ("AveragePool", {"count_include_pad": 1, "ceil_mode": 1}),
    ("LpPool", {"p": 3}),
])  # fmt: skip
def test_pools(op, attributes, shape):
    rank = len(shape) - 2
    window = {"kernel_shape": [3, 2, 3][:rank], "strides": [2, 1, 2][:rank], "pads": [1] * 2 * rank}
    agrees(one(op, "x", **window, **attributes), {"x": real(*shape)}, opset=19)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 3, 4, 5), (1, 2, 3, 4, 2)])
def test_pools_over_all(op, shape):
    agrees(one(op, "x"), {"x": real(*shape)})


@pytest.mark.parametrize("way", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers(op, gates, way):
    steps, batch, size, hidden, sides = 4, 2, 3, 5, 2 if way == "bidirectional" else 1
    constants = {
        "w": real(sides, gates * hidden, size), "r": real(sides, gates * hidden, hidden),
        "b": real(sides, 2 * gates * hidden),
    }  # fmt: skip
    x = {"x": real(steps, batch, size), "h": real(sides, batch, hidden)}
    names, results = ["x", "w", "r", "b", "", "h"], ["y", "last"]
    settings = {"linear_before_reset": 1} if op == "GRU" else {}
    if op == "LSTM":
        x["c"], constants["p"] = real(sides, batch, hidden), real(sides, 3 * hidden)
        names, results = [*names, "c", "p"], [*results, "cell"]
    node = helper.make_node(op, names, results, hidden_size=hidden, direction=way, **settings)
    agrees([node], x, constants, tuple(results), opset=14)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize(
    ("dtype", "other"), [("f4", "f4"), ("f4", "i8"), ("f8", "f8"), ("f8", "i4")]
)
def test_a_power_of_two_is_a_product(dtype, other, shape):
    """Of numbers of either sign."""
    x, constants = {"x": real(3, 4).astype(dtype)}, {"a": np.full(shape, 2, other)}
    graph = agrees(one("Pow", "x", "a"), x, constants)
    (node,) = graph.nodes
    assert (node.function, node.a, node.b) == ("mul", "x", "x")


@pytest.mark.parametrize("exponent", [
    np.full(4, 2, F), np.full((1, 1, 1), 2, F), np.full((2, 1, 1), 2, F), np.array([2, 3, 2, 1], F),
    F(3), F(-2), F(0.5), F(2.0000002), F(0), np.int64(3),
], ids=str)  # fmt: skip
def test_another_power_is_none(exponent):
    x = {"x": np.abs(real(3, 4)) + F(0.5)}
    graph = agrees(one("Pow", "x", "a"), x, {"a": np.asarray(exponent)})
    assert "pow" in functions_of(graph)
    assert "mul" not in functions_of(graph)


def test_a_power_that_is_not_known_is_no_product():
    graph = agrees(one("Pow", "x", "a"), {"x": np.abs(real(3, 4)), "a": np.full(1, 2, F)})
    assert functions_of(graph) == ["pow"]


@pytest.mark.parametrize("other", ["i4", "f4"])
def test_a_power_of_integers_is_no_product(other):
    x = {"x": np.arange(-3, 4, dtype=np.int32)}
    graph = agrees(one("Pow", "x", "a"), x, {"a": np.array(2, other)})
    assert "pow" in functions_of(graph)


def functions_of(graph):
    """What functions of two tensors there are."""
    return [node.function for node in graph.nodes if isinstance(node, ops.Binary)]


@pytest.mark.parametrize(("attributes", "scales"), [
    ({"mode": "linear"}, [1, 1, 2, 1.5]),
    ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, [1, 1, 2, 3]),
    ({"mode": "cubic", "coordinate_transformation_mode": "asymmetric"}, [1, 1, 2, 2]),
    ({"mode": "nearest", "nearest_mode": "floor"}, [1, 1, 0.5, 3]),
    ({"mode": "linear", "antialias": 1}, [1, 1, 0.5, 0.5]),
])  # fmt: skip
def test_resizing(attributes, scales):
    constants = {"s": np.array(scales, F)}
    agrees(one("Resize", "x", "", "s", **attributes), {"x": real(1, 2, 6, 8)}, constants)


@pytest.mark.parametrize(("op", "operands", "constants", "attributes"), [
    ("Slice", "xabcd", {"a": [5, -1], "b": [0, -9], "c": [1, 2], "d": [-2, -1]}, {}),
    ("Pad", "xa", {"a": [0, 1, 2, 1, 0, -1]}, {"mode": "reflect"}),
    ("Pad", "xa", {"a": [1, 0, 0, 0, 2, 1]}, {"mode": "edge"}),
    ("Pad", "xa", {"a": [1, 0, 0, 0, 2, -1]}, {}),
    ("Tile", "xa", {"a": [2, 1, 3]}, {}),
    ("Expand", "xa", {"a": [2, 1, 6, 4]}, {}),
    ("Gather", "xa", {"a": [[0, -1], [2, 0]]}, {"axis": 2}),
    ("Trilu", "xa", {"a": 1}, {"upper": 0}),
    ("CumSum", "xa", {"a": -2}, {"reverse": 1}),
    ("ReduceMean", "xa", {"a": [-1, 0]}, {"keepdims": 0}),
    ("ReduceLogSumExp", "xa", {"a": [1]}, {}),
    ("ReduceL2", "xa", {"a": [1]}, {}),
    ("LogSoftmax", "x", {}, {"axis": 1}),
    ("ArgMin", "x", {}, {"axis": 1, "keepdims": 0}),
    ("InstanceNormalization", "xgg", {}, {}),
    ("Hardmax", "x", {}, {"axis": 1}),
    ("Einsum", "x", {}, {"equation": "b...i->...b"}),
    ("HardSwish", "x", {}, {}),
    ("Softsign", "x", {}, {}),
])  # fmt: skip
def test_other_operators(op, operands, constants, attributes):
    known = {name: np.array(value) for name, value in constants.items()}
    x = {"x": real(3, 6, 4)}
    agrees(
        one(op, *operands, **attributes), x, {**known, "g": real(6)} if "g" in operands else known
    )


@pytest.mark.parametrize("shape", [(2, 40), (2, 40, 1)])
def test_short_transforms_of_signals(shape):
    constants = {"step": np.array(5), "w": real(16)}
    agrees(one("STFT", "x", "step", "w"), {"x": real(*shape)}, constants, rtol=1e-4)


def test_hard_swish_on_both_sides_of_its_bends():
    agrees(one("HardSwish", "x"), {"x": np.linspace(-5, 5, 24, dtype=F).reshape(4, 6)}, {})


def test_several_results():
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["best", "where"]),
        helper.make_node("Split", ["x"], ["low", "high"], axis=1, num_outputs=2),
        helper.make_node("LayerNormalization", ["x", "g"], ["norm", "mean", "inverse"]),
    ]
    names = ("best", "where", "low", "high", "norm", "mean", "inverse")
    agrees(nodes, {"x": real(2, 7)}, {"k": np.array([3]), "g": real(7)}, names)


def test_operators_that_onnx_defines_by_others():
    """Attention, which no converter knows, in a few dozen nodes; ONNX's reference is the judge."""
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], name="it", is_causal=1)
    shapes = {"q": (2, 3, 4, 8), "k": (2, 3, 6, 8), "v": (2, 3, 6, 8)}
    x = {name: real(*shape) for name, shape in shapes.items()}
    proto = typed(model([node], x, opset=23))
    graph = import_model(proto, "m")
    assert {"MatMul", "Softmax"} <= {n.op for n in graph.nodes}
    (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, x)
    found = evaluate(optimize(graph), x)["y"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_shapes_are_computed_while_importing():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = {"zero": np.array([0]), "rest": np.array([-1])}
    graph = agrees(nodes, {"x": real(2, 3, 4)}, constants)
    assert [node.op for node in graph.nodes] == ["Reshape"]


def branch(op):
    ends = [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)]
    weight = numpy_helper.from_array(np.array(2, F), "two")
    return helper.make_graph([helper.make_node(op, ["x", "two"], ["b"])], op, [], ends, [weight])


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_whose_condition_is_known(taken):
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Mul")
    )
    graph = agrees([node], {"x": real(3)}, {"c": np.array(taken)})
    assert [n.op for n in graph.nodes] == ["Add" if taken else "Binary"]


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_both_branches_where_only_running_tells(taken, shape):
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Mul")
    )
    graph = agrees([node], {"x": real(3), "c": np.full(shape, taken)})
    assert {n.op for n in graph.nodes} >= {"Add", "Binary", "Where"}


def test_a_branch_inside_a_branch_reads_the_outer_ones_tensors():
    ends = [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)]
    deep = [helper.make_graph([helper.make_node(op, ["t", "x"], ["b"])], op, [], ends)
            for op in ("Add", "Mul")]  # fmt: skip
    inner = helper.make_node("If", ["d"], ["b"], then_branch=deep[0], else_branch=deep[1])
    negated = helper.make_node("Neg", ["x"], ["t"])
    outer = helper.make_graph([negated, inner], "outer", [], ends)
    node = helper.make_node("If", ["c"], ["y"], then_branch=outer, else_branch=branch("Sub"))
    agrees([node], {"x": real(3), "d": np.array(True)}, {"c": np.array(True)})
    agrees([node], {"x": real(3), "d": np.array(False), "c": np.array(True)})


def test_axes_without_a_dimension():
    """As ONNX's own definitions have them."""
    agrees(one("Unsqueeze", "x", "a"), {"x": real(2, 3)}, {"a": np.array(1)})


def test_tensors_without_elements():
    """They are known: a result of them is a constant, and one for nobody's eyes is no matter."""
    nodes = [
        helper.make_node("ReduceSum", ["e", "axes"], ["y"], keepdims=0),
        helper.make_node("CastLike", ["x", "e"], ["z"]),
    ]  # fmt: skip
    for dtype in (np.float64, np.uint8):
        x = {"e": np.zeros((2, 0), dtype), "x": real(3)}
        nodes[0].op_type = "ReduceSum" if dtype is np.float64 else "ReduceMin"
        graph = import_model(typed(model(nodes, x, {"axes": np.array([1])}, ("y", "z"))), "m")
        found = evaluate(optimize(graph), x)
        assert found["z"].dtype == dtype
        assert found["y"].tolist() == ([0, 0] if dtype is np.float64 else [255, 255])


@pytest.mark.parametrize(("op", "operands", "dtype", "attributes", "text"), [
    ("RandomNormalLike", "x", F, {},
     "expected a result that follows from the inputs, found random numbers"),
    ("Sqrt", "x", np.int64, {}, "expected float data, found int64"),
    ("Add", "xi", F, {}, "expected operands of one type, found float32, int64"),
    ("Concat", "xx", F, {"axis": 3}, "expected an axis from -2 to 1, found 3"),
    ("Gather", "xi", F, {"axis": 2}, "expected an axis from -2 to 1, found 2"),
    ("MatMul", "xw", F, {}, "expected matrices that fit each other, found [2, 3] and [2, 2]"),
    ("DepthToSpace", "v", F, {"blocksize": 2},
     "expected channels in blocks of blocksize², found 3 and 2"),
    ("Tile", "xi", F, {}, "expected 2 repeats, found 1"),
    ("BitShift", "ii", F, {"direction": "UP"}, "expected direction LEFT or RIGHT, found UP"),
    ("Dropout", "xft", F, {}, "expected training_mode = 0: vdla runs inference, found 1"),
])  # fmt: skip
def test_refusals(op, operands, dtype, attributes, text):
    constants = {
        "i": np.array([1]), "v": real(1, 3, 2, 2), "f": np.array(0.5, F), "t": np.array(True),
    }  # fmt: skip
    x = {"x": np.ones((2, 3), dtype), "w": np.ones((2, 2), F)}
    nodes = [helper.make_node("Identity", ["x"], ["unused"]), *one(op, *operands, **attributes)]
    if not {"x", "w"} & {*operands}:  # nothing is computed while importing
        x["v"], x["i"] = constants.pop("v"), constants.pop("i")
    with pytest.raises(ModelError) as caught:
        import_model(typed(model(nodes, x, constants)), "m")
    assert str(caught.value) == f"m: node it ({op}): {text}"


def test_sequences_and_strings():
    for kind, found in (
        (helper.make_tensor_type_proto(TensorProto.STRING, [2]), "string"),
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])), "sequence"),
    ):
        proto = model(one("Identity", "x"), {})
        proto.graph.input.append(helper.make_value_info("x", kind))
        proto = typed(proto)
        with pytest.raises(ModelError, match=f"^m: input x: expected .*, found .*{found}$"):
            import_model(proto, "m")


def test_truncated_external_data(tmp_path):
    proto = typed(model(one("MatMul", "x", "w"), {"x": real(2, 300)}, {"w": real(300, 40)}))
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert import_onnx(path, floats=True).nodes
    whole = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError) as caught:
        import_onnx(path, floats=True)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
