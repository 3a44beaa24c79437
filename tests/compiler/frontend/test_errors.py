"""Every error of the importer, word for word."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.frontend import ModelError, import_model, import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import TENSOR_DTYPES
from vdla.compiler.models import model_path

SCALE = {"s": np.array(0.05, np.float32), "z": np.array(3, np.int8)}


def model(nodes, x=(1, 4, 6, 7), constants=None, opset=17, dtype=TensorProto.FLOAT):
    weights = [numpy_helper.from_array(v, k) for k, v in {**SCALE, **(constants or {})}.items()]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", dtype, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1,))],
        weights,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def one(op, *extra, x=(1, 4, 6, 7), constants=None, opset=17, **attributes):
    return model(
        [helper.make_node(op, ["x", *extra], ["y"], name="it", **attributes)], x, constants, opset
    )


def message(proto, **arguments):
    with pytest.raises(ModelError) as caught:
        import_model(proto, "m.onnx", **arguments)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_no_file(tmp_path):
    with pytest.raises(ModelError) as caught:
        import_onnx(tmp_path / "none.onnx")
    assert str(caught.value) == f"{tmp_path}/none.onnx: expected an ONNX file, found no file"


def test_folder(tmp_path):
    with pytest.raises(ModelError) as caught:
        import_onnx(tmp_path)
    assert str(caught.value) == f"{tmp_path}: expected an ONNX file, found a folder"


def test_empty_file(tmp_path):
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"")
    with pytest.raises(ModelError) as caught:
        import_onnx(path)
    assert str(caught.value) == f"{path}: expected an ONNX model, found no operators in it"


def test_not_onnx(tmp_path):
    path = tmp_path / "text.onnx"
    path.write_text("certainly not protobuf")
    with pytest.raises(ModelError, match=r"text\.onnx: expected an ONNX model, found .+"):
        import_onnx(path)


@settings(max_examples=25)
@given(part=st.floats(0.0, 0.98))  # behind the graph lie fields that a model may lack
def test_truncated_anywhere(tmp_path_factory, part):
    data = model_path("digits").read_bytes()
    path = tmp_path_factory.mktemp("cut") / "cut.onnx"
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(ModelError) as caught:
        import_onnx(path)
    assert str(caught.value).startswith(f"{path}: expected ")
    assert "\n" not in str(caught.value)


@settings(max_examples=60)
@given(place=st.floats(0, 0.9999), bit=st.integers(0, 7))
def test_a_flipped_bit_is_an_error_or_another_model(tmp_path_factory, place, bit):
    data = bytearray(model_path("digits").read_bytes())
    data[int(len(data) * place)] ^= 1 << bit
    path = tmp_path_factory.mktemp("flip") / "flip.onnx"
    path.write_bytes(bytes(data))
    with contextlib.suppress(ModelError):
        import_onnx(path)


def test_an_operator_whose_name_is_no_text(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(one("Relu").SerializeToString().replace(b"Relu", b"Rel\xf5"))
    with pytest.raises(ModelError) as caught:
        import_onnx(path, floats=True)
    wanted = f"{path}: expected operators' names in UTF-8, found b'Rel\\xf5'"
    assert str(caught.value) == wanted


def test_float_model(tmp_path):
    """Refused where an accelerator is to run it; taken where it may be of floats."""
    path = tmp_path / "m.onnx"
    path.write_bytes(one("Relu").SerializeToString())
    with pytest.raises(ModelError) as caught:
        import_onnx(path)
    assert str(caught.value) == (
        f"{path}: expected a quantized (QDQ) model; `vdla quantize` makes one, "
        "found no QuantizeLinear or DequantizeLinear node"
    )
    assert [n.op for n in import_onnx(path, floats=True).nodes] == ["Relu"]


def test_operator_of_another_domain():
    node = helper.make_node("Relu", ["x"], ["y"], name="it", domain="com.acme")
    assert message(model([node])) == (
        "m.onnx: node it (Relu): expected an operator that vdla or onnxruntime can run, "
        "found com.acme.Relu: Fatal error: com.acme:Relu(-1) is not a registered function/op"
    )


def test_dynamic_shape():
    assert message(one("Relu", x=("N", 4, 6, 7))) == (
        "m.onnx: input x: expected a static shape, "
        "found 'N' in dimension 0; give it: --shape N=SIZE"
    )
    assert message(one("Relu", x=("N", 4, "H", 7)), shapes={"N": 1}) == (
        "m.onnx: input x: expected a static shape, "
        "found 'H' in dimension 2; give it: --shape H=SIZE"
    )
    assert message(one("Relu", x=("N", 4, "H", "N"))) == (
        "m.onnx: input x: expected a static shape, "
        "found 'N' in dimension 0; give it: --shape N=SIZE --shape H=SIZE"
    )
    for unknown in (None, -1, "?"):
        assert message(one("Relu", x=(unknown, 4))) == (
            "m.onnx: input x: expected a static shape, "
            "found an unknown size in dimension 0; give it: --shape x=D0,4"
        )


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"q": (1,)}, "expected shapes for its inputs (x) or dimensions (H, N), found one for q"),
        ({"N": (1, 2)}, "input x: expected one size for dimension 'N', found [1, 2]"),
        ({"N": 0}, "shape N: expected positive sizes, found [0]"),
        (
            {"x": (1, 4, 6)},
            "input x: expected a shape that fits the file's [N, 4, H, 7], found [1, 4, 6]",
        ),
        (
            {"x": (1, 5, 6, 7)},
            "input x: expected a shape that fits the file's [N, 4, H, 7], found [1, 5, 6, 7]",
        ),
    ],
)
def test_shapes_that_do_not_fit(shapes, text):
    assert message(one("Relu", x=("N", 4, "H", 7)), shapes=shapes) == f"m.onnx: {text}"


def test_a_shape_for_no_input():
    assert message(one("Relu"), shapes={"q": (1,)}) == (
        "m.onnx: expected shapes for its inputs (x), found one for q"
    )


def test_input_dtype():
    node = helper.make_node("Relu", ["x"], ["y"], name="it")
    assert message(model([node], dtype=TensorProto.COMPLEX64)) == (
        f"m.onnx: input x: expected elements of {', '.join(TENSOR_DTYPES)}, found complex64"
    )


def test_operand_without_a_source():
    proto = one("Relu")
    proto.graph.node[0].input[0] = "ghost"
    assert message(proto) == (
        "m.onnx: node it (Relu): expected operands that something writes, found ghost"
    )


W = np.zeros((6, 4, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (
            one("Conv", "w", constants={"w": W}, x=(1, 3, 6, 7)),
            "node it (Conv): expected 4 input channels, found 3",
        ),
        (
            one("Conv", "w", constants={"w": W}, x=(1, 4, 6)),
            "node it (Conv): expected a weight of shape [O, I, K], found [6, 4, 3, 3]",
        ),
        (
            one("Conv", "w", constants={"w": W}, x=(1, 4, 2, 7)),
            "node it (Conv): expected a padded image no smaller than its 3x3 window, found [2, 7]",
        ),
        (
            one("Conv", "w", constants={"w": W}, x=(1, 16, 6, 7), group=4),
            "node it (Conv): expected output channels divisible by 4 groups, found 6",
        ),
        (
            one("Conv", "w", constants={"w": W}, kernel_shape=[2, 2]),
            "node it (Conv): expected kernel_shape [3, 3] as in the weight, found [2, 2]",
        ),
        (
            one("Conv", "w", constants={"w": W}, strides=[0, 1]),
            "node it (Conv): expected two positive strides, found [0, 1]",
        ),
        (
            one("Conv", "w", constants={"w": W}, pads=[0, -1, 0, 0]),
            "node it (Conv): expected four pads ≥ 0, found [0, -1, 0, 0]",
        ),
        (
            one("Conv", "w", constants={"w": W}, auto_pad="ODD"),
            "node it (Conv): expected auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER, found ODD",
        ),
        (
            one("Conv", "w", "b", constants={"w": W, "b": np.zeros(5, np.float32)}),
            "node it (Conv): expected a bias of shape [6], found [5]",
        ),
        (
            one("MaxPool", kernel_shape=[2]),
            "node it (MaxPool): expected a kernel_shape of two, found [2]",
        ),
        (
            one("Gemm", "w", x=(2, 3), constants={"w": np.zeros((4, 5), np.float32)}),
            "node it (Gemm): expected data of shape [N, 4], found [2, 3]",
        ),
        (
            one("Add", "c", constants={"c": np.zeros((3, 1, 1), np.float32)}),
            "node it (Add): expected operands of one shape, found [1, 4, 6, 7] and [3, 1, 1]",
        ),
        (
            one("Concat", "c", constants={"c": np.zeros((1, 4, 5, 7), np.float32)}, axis=1),
            "node it (Concat): expected parts that differ from [1, 4, 6, 7] only in axis 1, "
            "found [1, 4, 5, 7]",
        ),
        (
            one("Reshape", "r", constants={"r": np.array([5, -1])}),
            "node it (Reshape): expected a shape of 168 elements, found [5, -1]",
        ),
        (
            one("QuantizeLinear", "bad", "z", constants={"bad": np.array(np.inf, np.float32)}),
            "node it (QuantizeLinear): expected finite scales, found inf",
        ),
        (
            one(
                "QuantizeLinear",
                "s3",
                "z3",
                constants={"s3": np.ones(3, np.float32), "z3": np.zeros(3, np.int8)},
            ),
            "node it (QuantizeLinear): expected 4 scales along axis 1, found 3",
        ),
        (
            one("BatchNormalization", *"gggg", constants={"g": np.ones(5, np.float32)}),
            "node it (BatchNormalization): expected statistics of shape [4], found [5]",
        ),
        (
            one("QuantizeLinear", "s", precision=TensorProto.DOUBLE, opset=23),
            "node it (QuantizeLinear): expected a precision of float32, found float64",
        ),
    ],
)
def test_node_errors(proto, text):
    assert message(proto) == f"m.onnx: {text}"


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (
            one("GlobalAveragePool", x=(1, 4)),
            "node it (GlobalAveragePool): expected data of shape "
            "[N, C, W] or [N, C, H, W] or [N, C, D, H, W], found [1, 4]",
        ),
        (
            model([
                helper.make_node("MaxPool", ["x"], ["y", "where"], name="it", kernel_shape=[2, 2]),
                helper.make_node("Neg", ["where"], ["there"]),
            ]),
            "node it (MaxPool): expected one output, found a second one, where",
        ),
    ],
)  # fmt: skip
def test_forms_that_onnxruntime_takes(proto, text):
    """Right, but none of ours: the reason is what it was refused for."""
    proto.graph.node.append(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]))
    graph = import_model(proto, "m.onnx")
    node = next(node for node in graph.nodes if isinstance(node, ops.External))
    where, _, reason = text.partition(": ")
    assert f"node {node.name} ({node.op})" == where
    assert node.reason == reason


def test_operators_that_onnxruntime_takes():
    proto = one("Det", x=(1, 4, 6, 6))
    proto.graph.node.append(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]))
    (node,) = (n for n in import_model(proto).nodes if isinstance(n, ops.External))
    assert (node.op, node.shape, node.dtype) == ("Det", (1, 4), "float32")
    assert node.reason == "no operator Det here"


def test_a_form_that_onnxruntime_refuses_too():
    """Then the reason for which vdla did is told."""
    assert message(one("MaxPool", kernel_shape=[2])) == (
        "m.onnx: node it (MaxPool): expected a kernel_shape of two, found [2]"
    )


def test_damaged_initializer():
    proto = one("Conv", "w", constants={"w": W})
    proto.graph.initializer[-1].raw_data = b"12"
    text = message(proto)
    assert text.startswith("m.onnx: expected a valid ONNX model, found ") or "initializer w" in text


def test_missing_external_data(tmp_path):
    proto = one("Conv", "w", constants={"w": W})
    tensor = proto.graph.initializer[-1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    path = tmp_path / "external.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match=r"external\.onnx: expected .*weights\.bin"):
        import_onnx(path)
    tensor.external_data[0].value = "../weights.bin"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match=r"external\.onnx: expected .*outside the directory"):
        import_onnx(path)


def test_weights_that_memory_does_not_hold(tmp_path):
    proto = one("Conv", "w", constants={"w": W})
    tensor = proto.graph.initializer[-1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    path = tmp_path / "large.onnx"
    path.write_bytes(proto.SerializeToString())
    with open(tmp_path / "weights.bin", "wb") as file:
        file.truncate(1 << 43)  # 8 TiB, none of which is on the disk
    with pytest.raises(ModelError) as caught:
        import_onnx(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: expected weights that fit into ")
    assert text.endswith("GiB, found 8192.0 GiB in weights.bin")


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (
            one("Relu", slope=1),
            "Unrecognized attribute: slope for operator Relu, in node it (Relu)",
        ),
        (
            one("Gelu", opset=13),
            "No Op registered for Gelu with domain_version of 13, in node it (Gelu)",
        ),
        (
            one("Transpose", perm=1.5),
            "Mismatched attribute type in 'it : perm'. Expected: 'INTS', actual: 'FLOAT', "
            "in node it (Transpose)",
        ),
    ],
)
def test_what_no_opset_has(proto, text):
    assert message(proto) == f"m.onnx: expected a valid ONNX model, found {text}"


def test_an_operator_that_nobody_has():
    opening = (
        "m.onnx: node it (Relux): expected an operator that vdla or onnxruntime can run, found "
    )
    text = message(one("Relux"))
    assert text.startswith(f"{opening}Relux: This is an invalid model. In Node, ")
    assert text.endswith("Error No Op registered for Relux with domain_version of 17")


def test_an_opset_that_is_not_there_yet():
    newest = onnx.defs.onnx_opset_version()
    assert message(one("Relu", opset=999)) == (
        f"m.onnx: expected opset {newest} or an earlier one, found 999"
    )
