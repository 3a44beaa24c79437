"""Operators of float models: what they become computes what onnxruntime does, by vdla alone."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_operators import F, agrees, check_refusal, model, one, real, typed

from vdla.compiler.frontend import ModelError, import_model, import_onnx
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate


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
def test_a_choice_where_only_running_tells(taken, shape):
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Mul")
    )
    graph = agrees([node], {"x": real(3), "c": np.full(shape, taken)})
    assert [[n.op for n in region.nodes] for region in graph.node("If_0").regions] == [
        ["Add"], ["Binary"],
    ]  # fmt: skip


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
])  # fmt: skip
def test_refusals(op, operands, dtype, attributes, text):
    check_refusal(op, operands, dtype, attributes, text)


def test_sequences_and_strings():
    shapes = "expected shapes of a sequence's elements, found none; give them: --shape "
    for kind, text in (
        (helper.make_tensor_type_proto(TensorProto.STRING, [2]), "expected .*, found .*string$"),
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])), shapes),
    ):
        proto = model(one("Identity", "x"), {})
        proto.graph.input.append(helper.make_value_info("x", kind))
        proto = typed(proto)
        with pytest.raises(ModelError, match=f"^m: input x: {text}"):
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
