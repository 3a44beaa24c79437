"""Files that onnx's checker refuses as they are, though onnxruntime runs them; and texts that name
what is wrong."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.frontend.normal_form import normalize
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.models.quantizer import quantize

F = np.float32
RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 4, 3, 5)).astype(F)
ROW = RNG.standard_normal(5).astype(F)
PAIR = {"s": np.array([2, -1], F), "b": np.array([0.5, 3], F)}  # one for each of two groups
MICROSOFT = helper.make_opsetid("com.microsoft", 1)


def op(operator, inputs, outputs, name="", **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), name, **attributes)


def model(*nodes, constants=None, opset=18, ir_version=8, results=("y",), domain=""):
    """A model of an input x, whose results have no types."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [onnx.ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(domain, opset), MICROSOFT]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def check(proto):
    """The graph, whose results are onnxruntime's for the model as it is."""
    before = proto.SerializeToString()
    graph = import_model(proto, "m.onnx")
    assert proto.SerializeToString() == before
    actual, expected = evaluate(graph, {"x": X}), ort_run(proto, {"x": X}, fuse=False)
    for name, array in zip(graph.outputs, expected.values(), strict=True):
        assert actual[name].dtype == array.dtype
        np.testing.assert_allclose(actual[name], array, rtol=1e-5, atol=1e-6)
    return graph


def branches(domain=""):
    """An If of which a branch has two nodes."""
    two = [op("Neg", "a", "c", domain=domain), op("Relu", "c", "d")]
    inner = [
        helper.make_graph(nodes, "inner", [], [onnx.ValueInfoProto(name="d")])
        for nodes in (two, [op("Exp", "a", "d", domain=domain)])
    ]
    return op("If", "k", "y", then_branch=inner[0], else_branch=inner[1], domain=domain)


TYPED = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


@pytest.mark.parametrize("output", [onnx.ValueInfoProto(name="y"), TYPED])
def test_outputs_without_a_type_or_a_shape(output):
    proto = model(op("Relu", "x", "y"))
    proto.graph.output[0].CopyFrom(output)
    check(proto)


@pytest.mark.parametrize("spelled", ["", "ai.onnx"])
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_the_default_domain_spelled_out(domain, spelled):
    check(model(op("Neg", "x", "a", domain=spelled), op("Relu", "a", "y"), domain=domain))
    nodes = [op("Neg", "x", "a"), branches(spelled)]  # where onnxruntime doesn't take it
    proto = model(*nodes, constants={"k": np.array(True)}, domain=domain)
    result = evaluate(import_model(proto), {"x": X})["y"]
    np.testing.assert_array_equal(result, np.maximum(X, 0))


def test_nodes_in_any_order():
    chain = [op("Add", "b a", "y", "third"), op("Exp", "a", "b", "second"), op("Neg", "x", "a")]
    check(model(*chain))
    proto = model(branches(), op("Neg", "x", "a"), constants={"k": np.array(True)})
    (inner,) = (a.g.node for a in proto.graph.node[0].attribute if a.name == "then_branch")
    inner.reverse()
    assert [node.op_type for node in inner] == ["Relu", "Neg"]
    result = evaluate(import_model(proto), {"x": X})["y"]  # onnxruntime wants order inside nodes
    np.testing.assert_array_equal(result, np.maximum(X, 0))


def test_nodes_in_order_stay():
    nodes = [op("Neg", "x", "a"), op("Exp", "x", "b"), op("Abs", "b", "c"), op("Add", "a c", "y")]
    proto = model(*nodes)
    normalize(proto, "m.onnx")
    assert list(proto.graph.node) == nodes


def test_initializers_that_are_no_inputs_of_an_ir_3_file():
    check(model(op("Mul", "x w", "y"), constants={"w": ROW}, opset=8, ir_version=3))


def test_a_graph_without_a_name():
    proto = model(op("Relu", "x", "y"))
    proto.graph.name = ""
    check(proto)


def test_quantize_takes_them(tmp_path):
    """A file with all of it at once."""
    proto = model(
        op("Relu", "m", "y"), op("MatMul", "x w", "m", domain="ai.onnx"),
        constants={"w": RNG.standard_normal((5, 8)).astype(F)}, opset=12, ir_version=3,
    )  # fmt: skip
    onnx.save(proto, str(tmp_path / "f.onnx"))
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx")
    check(onnx.load(str(tmp_path / "q.onnx")))


# Operators ---------------------------------------------------------------------------------------


def own(graph):
    """Whether vdla has all of the operators."""
    return not any(isinstance(node, ops.External) for node in graph.nodes)


def test_group_normalization_of_opset_18():
    """Withdrawn: its scales are those of groups."""
    node = op("GroupNormalization", "x s b", "y", num_groups=2, epsilon=0.01)
    assert own(check(model(node, constants=PAIR)))
    with pytest.raises(ModelError) as caught:
        import_model(model(node, constants={k: np.ones(4, F) for k in PAIR}), "m.onnx")
    assert str(caught.value) == (
        "m.onnx: node GroupNormalization_0 (GroupNormalization): expected scales and biases of "
        "shape [2], found [4]"
    )


@pytest.mark.parametrize("results", ["y", "y r"])
def test_simplified_layer_normalization(results):
    """An operator of onnxruntime's in ONNX's own domain."""
    node = op("SimplifiedLayerNormalization", "x s", results, epsilon=0.01, axis=-1, stash_type=1)
    assert own(check(model(node, constants={"s": ROW}, results=results.split())))


@pytest.mark.parametrize("bias", ["", " c"])
def test_skip_simplified_layer_normalization(bias):
    constants = {"s": ROW, "r": X[::-1][:, :, 0], **({"c": ROW} if bias else {})}
    nodes = [
        op("ReduceMax", "x k", "m", keepdims=0),
        op("SkipSimplifiedLayerNormalization", "m r s" + bias, "y   t", domain="com.microsoft"),
    ]
    nodes[1].output[:] = ["y", "", "", "t"]
    constants["k"] = np.array([2])
    assert own(check(model(*nodes, constants=constants, results=("y", "t"))))


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (
            [op("Relu", "ghost", "y", "it")],
            "m.onnx: node it (Relu): expected operands that something writes, found ghost",
        ),
        (
            [op("Add", "x b", "a"), op("Exp", "a", "b"), op("Neg", "b", "y")],
            "m.onnx: node Add_0 (Add): expected operands that don't follow from its own result, "
            "found b",
        ),
        (
            [op("Relu", "x", "y", slope=1)],
            "m.onnx: expected a valid ONNX model, found Unrecognized attribute: slope for operator "
            "Relu, in node without a name (Relu)",
        ),
        (
            [op("Neg", "x", "y"), op("Relu", "x", "y", "it")],
            "m.onnx: expected a valid ONNX model, found Graph must be in single static assignment "
            "(SSA) form, however 'y' has been used as output names multiple times",
        ),
        (
            [op("Relux", "x", "y", "it")],
            "m.onnx: node it (Relux): expected an operator that vdla or onnxruntime can run, "
            "found Relux: This is an invalid model. In Node, ",
        ),
    ],
)
def test_nodes_that_are_wrong(nodes, text):
    with pytest.raises(ModelError) as caught:
        import_model(model(*nodes), "m.onnx")
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


def test_two_opsets_of_one_domain():
    proto = model(op("Relu", "x", "y"))
    proto.opset_import.append(helper.make_opsetid("ai.onnx", 13))
    with pytest.raises(ModelError) as caught:
        import_model(proto, "m.onnx")
    assert str(caught.value) == "m.onnx: expected one opset of ONNX's operators, found 13 and 18"


def test_inputs_without_a_shape():
    proto = model(op("Relu", "x", "y"))
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError) as caught:
        import_model(proto, "m.onnx")
    assert str(caught.value) == (
        "m.onnx: input x: expected a shape, found none; give it: --shape x=D0,D1,…"
    )
    assert import_model(proto, "m.onnx", {"x": (2, 3)}).tensors["y"].shape == (2, 3)
    proto.graph.input[0].ClearField("type")
    with pytest.raises(ModelError) as caught:
        import_model(proto, "m.onnx")
    assert str(caught.value) == "m.onnx: input x: expected an element type, found none"
