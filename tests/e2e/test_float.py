"""Models of floats: the host compiles and runs them, devices with an accelerator refuse them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vdla as api
from vdla.analysis import difference
from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import ModelError

NOT_QDQ = (
    "expected a quantized (QDQ) model; `vdla quantize` makes one, "
    "found no QuantizeLinear or DequantizeLinear node"
)


def network(path, opset=17):
    """A convolution, a pool and a dense layer with a softmax; the batch is open."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((6, 3, 3, 3)).astype(np.float32),
        "b": rng.standard_normal(6).astype(np.float32),
        "v": rng.standard_normal((6, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "v"], ["m"], name="dense"),
        helper.make_node("Softmax", ["m"], ["y"], name="soft"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("N", 5))],
        [numpy_helper.from_array(v, k) for k, v in weights.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_the_host_runs_it(tmp_path):
    path = network(tmp_path / "m.onnx")
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    module = api.compile(path, device="cpu", shapes={"N": 2})
    module.save(tmp_path / "m.vdla")
    (want,) = ort_run(str(path), {"x": x}).values()
    for model in (module, tmp_path / "m.vdla", path):
        got = api.run(model, {"x": x}, device="cpu").outputs["y"]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_commands_run_it(vdla, tmp_path):
    path, module = network(tmp_path / "m.onnx"), tmp_path / "m.vdla"
    assert vdla("compile", path, "--device", "cpu", "--shape", "N=1", "-o", module).code == 0
    found = vdla("run", path, "--device", "cpu", "--shape", "N=1", "--json").json
    assert vdla("run", module, "--device", "cpu", "--json").json["outputs"] == found["outputs"]
    assert {row["device"] for row in found["placement"]} == {"cpu"}
    done = vdla("run", path, "--device", "cpu", "--shape", "N=2", "--check", "--json")
    assert done.code == 0
    assert all(a["relative"] < 1e-5 for a in done.json["whole"])


@pytest.mark.parametrize("device", ["sim", "rtl"])
def test_an_accelerator_refuses_it(vdla, tmp_path, device):
    path = network(tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=r"expected a quantized \(QDQ\) model"):
        api.compile(path, "tiny", device=device, shapes={"N": 1})
    done = vdla("run", path, "-c", "tiny", "--device", device, "--shape", "N=1")
    assert (done.code, done.err) == (2, f"vdla: {path}: {NOT_QDQ}\n")


def test_a_wrong_output_fails_the_check(vdla, tmp_path, monkeypatch):
    path = network(tmp_path / "m.onnx")
    right = difference.ort_run
    monkeypatch.setattr(
        difference, "ort_run", lambda *of: {name: 1.1 * y for name, y in right(*of).items()}
    )
    done = vdla("run", path, "--device", "cpu", "--shape", "N=1", "--check")
    assert done.code == 1
    assert "expected every output within 0.0001 of its largest value, found " in done.out + done.err


def test_how_far_apart_outputs_are():
    nan, inf = float("nan"), float("inf")
    for got, want, far in [
        ([1.0, 8.0], [1.0, 8.0], 0.0),
        ([1.5, 8.0], [1.0, 8.0], 0.0625),
        ([nan, inf, 2.0], [nan, inf, 2.0], 0.0),
        ([nan, 2.0], [1.0, 2.0], inf),
        ([inf, 2.0], [-inf, 2.0], inf),
        ([1e-9], [0.0], 1e-9),
    ]:
        assert difference._relative(np.array(got), np.array(want)) == far


def test_outputs_may_be_as_far_apart_as_the_references_own():
    want, other = np.array([1e-8, 5e-8]), np.array([2e-8, 5e-8])
    assert difference.is_close(want, want, want)
    assert difference.is_close(np.array([1.5e-8, 5e-8]), want, other)
    assert not difference.is_close(np.array([1e-8, 7e-8]), want, other)
    assert not difference.is_close(np.array([np.nan, 5e-8]), want, other)


def test_check_says_which_types_onnxruntime_does_not_exchange(vdla, tmp_path):
    ends = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    path = tmp_path / "m.onnx"
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    done = vdla("run", path, "--device", "cpu", "--check")
    assert (done.code, done.err) == (
        2,
        "vdla: --check: expected inputs and outputs of types that onnxruntime exchanges with "
        "numpy, found x of bfloat16\n",
    )
    output = tmp_path / "y.npz"
    assert vdla("run", path, "--device", "cpu", "--output", output).code == 0
    with np.load(output) as file:
        assert file["y"].dtype.itemsize == 2


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_check_of_an_input_without_dimensions(vdla, tmp_path, dtype):
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [helper.make_tensor_value_info(name, code, []) for name in ("x", "y")]
    cast = helper.make_node("Cast", ["x"], ["y"], to=code)
    graph = helper.make_graph([cast], "g", ends[:1], ends[1:])
    path = tmp_path / "m.onnx"
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    assert vdla("run", path, "--device", "cpu", "--check", "--samples", 1).code == 0
