"""Models that onnxruntime runs, made ready by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.runtime.errors import InputError, ModuleError
from vdla.runtime.external import Session


def model(op="Sub", kind=TensorProto.FLOAT):
    """``op(a, b)`` of two vectors."""
    a, b, out = (helper.make_tensor_value_info(name, kind, ["n", 2]) for name in ("a", "b", "out"))
    node = helper.make_node(op, ["a", "b"], ["out"])
    graph = helper.make_graph([node], "g", [a, b], [out])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


X = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_operands_go_by_position():
    np.testing.assert_array_equal(Session(model()).run([X, 5 * X]), -4 * X)


def test_values_that_onnxruntime_refuses():
    with pytest.raises(InputError) as caught:
        Session(model(), "step s").run([X, np.ones((2, 2), np.float32)])
    opening = "step s: expected values that onnxruntime computes with, found "
    assert str(caught.value).startswith(opening)
    assert "\n" not in str(caught.value)


def test_results_of_any_size():
    ends = [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["n", 2]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k"]),
            helper.make_tensor_value_info("i", TensorProto.INT64, ["k"])]  # fmt: skip
    node = helper.make_node("Unique", ["a"], ["y", "i"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    built = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = Session(built.SerializeToString())
    assert session.results == [(("k",), "float32"), (("k",), "int64")]
    values, places = session.run_all([X // 2])
    assert (values.tolist(), places.tolist()) == ([0.0, 1.0, 2.0], [0, 2, 4])


@pytest.mark.parametrize("operands", [[X], [X, X, X]], ids=len)
def test_as_many_operands_as_inputs(operands):
    with pytest.raises(ValueError, match="zip"):
        Session(model()).run(operands)


@pytest.mark.parametrize(("kind", "dtype"), [
    (TensorProto.FLOAT, "float32"), (TensorProto.DOUBLE, "float64"), (TensorProto.INT64, "int64"),
])  # fmt: skip
def test_the_result_has_numpys_type(kind, dtype):
    assert Session(model(kind=kind)).results == [(("n", 2), dtype)]


def test_it_takes_one_thread():
    """As the other host steps do."""
    options = Session(model()).session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_products_of_bytes_do_not_saturate():
    """Two products of uint8 and int8 exceed 16 bits, in which an x86 without VNNI adds them."""
    a, b = np.full((4, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    ends = [("a", TensorProto.UINT8, [4, 64]), ("y", TensorProto.INT32, [4, 16])]
    infos = [helper.make_tensor_value_info(*end) for end in ends]
    weights = [numpy_helper.from_array(b, "b")]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    built = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    result = Session(built.SerializeToString()).run([a])
    np.testing.assert_array_equal(result, a.astype(np.int32) @ b.astype(np.int32))


def test_a_model_that_does_not_run_is_one_line():
    with pytest.raises(ModuleError, match=r"^step s: expected operators that onnxruntime .* runs,"):
        Session(model("NoSuch"), "step s")
    with pytest.raises(ModuleError, match=r"^step s: expected .*, found .*$"):
        Session(b"no model", "step s")
