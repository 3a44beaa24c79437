"""A target in a package of its own: found by name, compiled for, run, and its mistakes named."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from packages import lay_out
from qdq import QdqModel

import vdla
from vdla.analysis.ort import ort_run
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.outside import outside_targets
from vdla.options.spelling import UsageError
from vdla.runtime.errors import DeviceError, ModuleError
from vdla.runtime.module import Module


@pytest.fixture
def dot8(tmp_path_factory, monkeypatch):
    """The package, installed for one test."""
    folder = lay_out(tmp_path_factory.mktemp("dot8"))
    monkeypatch.syspath_prepend(str(folder))
    for name in [name for name in sys.modules if name.startswith("vdla_dot8")]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def places(module):
    """Operator to device, of a module's placement."""
    return {row["op"]: row["device"] for row in module.metadata["placement"]}


def dense(path, rows, inputs, outputs, seed):
    """A dense layer as a quantized model."""
    model = QdqModel(seed)
    model.output(model.dense(model.input("x", (rows, inputs)), outputs))
    onnx.save(model.model(), path)
    return path


def matmul(path, rows, inputs, outputs, seed, kind="int8", zero=3):
    """MatMulInteger of an input and constants."""
    rng = np.random.default_rng(seed)
    a = TensorProto.INT8 if kind == "int8" else TensorProto.UINT8
    constants = [
        helper.make_tensor("b", TensorProto.INT8, (inputs, outputs),
                           rng.integers(-127, 128, inputs * outputs).tolist()),
        helper.make_tensor("za", a, (), [zero]),
    ]  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b", "za"], ["y"], "product")], "g",
        [helper.make_tensor_value_info("a", a, (rows, inputs))],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (rows, outputs))], constants,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def assert_as_onnxruntime(path, module, seed):
    """One run on random bytes is onnxruntime's, element by element."""
    rng = np.random.default_rng(seed)
    (name,) = module.inputs
    info = module.tensors[name]
    x = (rng.integers(-128, 128, info.shape) % 256).astype(np.uint8).view(np.int8)
    x = x.astype(info.dtype) if info.dtype == "float32" else x
    got = vdla.run(module, {name: x})
    want = next(iter(ort_run(path, {name: x}).values()))
    assert np.array_equal(next(iter(got.outputs.values())), want)
    return got


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 8, 1), (3, 20, 5), (2, 64, 9)])
def test_products_are_computed_there(dot8, tmp_path, rows, inputs, outputs):
    path = matmul(tmp_path / "m.onnx", rows, inputs, outputs, seed=inputs)
    module = vdla.compile(path, target="dot8")
    assert places(module) == {"MatMulInteger": "dot8"}
    result = assert_as_onnxruntime(path, module, inputs)
    filled = -(-inputs // 8)
    moved = rows * filled * 8 if inputs % 8 else 0
    assert result.cycles == rows * outputs * (filled + 1) + moved


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 3, 1), (4, 40, 7)])
def test_dense_layers_are_the_processors(dot8, tmp_path, rows, inputs, outputs):
    path = dense(tmp_path / "m.onnx", rows, inputs, outputs, seed=inputs)
    module = vdla.compile(path, target="dot8")
    assert places(module)["QDense"] == "dot8"
    x = {"x": np.random.default_rng(inputs).standard_normal((rows, inputs)).astype(np.float32)}
    there, here = vdla.run(module, x), vdla.run(path, x, device="cpu")
    for name, value in here.outputs.items():
        assert np.array_equal(there.outputs[name], value)


def test_the_rest_runs_on_the_processor(dot8):
    module = vdla.compile("digits", target="dot8")
    assert {op for op, device in places(module).items() if device == "dot8"} == {"QDense"}
    image = {"image": np.random.default_rng(0).random((1, 1, 8, 8), np.float32)}
    there, here = vdla.run(module, image), vdla.run("digits", image, device="cpu")
    assert np.array_equal(there.outputs["logits"], here.outputs["logits"])
    assert there.cycles == 90
    assert here.cycles is None


def test_check_runs_every_layer_there(dot8):
    check = vdla.check("digits", target="dot8", samples=2)
    assert check.holds
    assert [layer.name for layer in check.layers][-1] == "fc"


def test_a_module_is_saved_with_its_code(dot8, tmp_path):
    path = matmul(tmp_path / "m.onnx", 2, 16, 3, seed=1)
    file = tmp_path / "m.vdla"
    vdla.compile(path, target="dot8").save(file)
    module = Module.load(file)
    assert [str(step) for step in module.steps] == ["product"]
    assert module.outside["product"].startswith(b"func node_product(")
    assert_as_onnxruntime(path, module, 1)


@pytest.mark.parametrize(
    ("kind", "reason"), [("uint8", "dot8 multiplies int8, not int8 and uint8")]
)
def test_what_its_templates_refuse_runs_on_the_processor(dot8, tmp_path, kind, reason):
    path = matmul(tmp_path / "m.onnx", 2, 16, 3, seed=1, kind=kind)
    module = vdla.compile(path, target="dot8")
    (row,) = module.metadata["placement"]
    assert (row["device"], row["reason"]) == ("cpu", reason)


def test_without_the_package_there_is_no_such_target():
    assert "dot8" not in outside_targets()
    with pytest.raises(TargetError, match=r"expected one of native, .*, found dot8"):
        vdla.compile("digits", target="dot8")


def test_without_the_package_its_modules_do_not_run(dot8, tmp_path, monkeypatch):
    module = vdla.compile(matmul(tmp_path / "m.onnx", 1, 8, 1, seed=1), target="dot8")
    sys.path.remove(str(dot8))
    with pytest.raises(ModuleError, match=r"a runtime for dot8 \(entry points vdla.runtimes\)"):
        vdla.run(module)


def test_an_unknown_target_is_told_what_packages_bring(dot8):
    with pytest.raises(TargetError, match="found dot9; installed packages bring dot8"):
        vdla.compile("digits", target="dot9")


def test_it_runs_in_the_accelerators_place_alone(dot8):
    with pytest.raises(UsageError, match=r"--target dot8: expected --device sim, .* found --dev"):
        vdla.run("digits", target="dot8", device="rtl")


def test_no_native_refuses_its_code(dot8, tmp_path):
    file = tmp_path / "m.vdla"
    vdla.compile(matmul(tmp_path / "m.onnx", 1, 8, 1, seed=1), target="dot8").save(file)
    with pytest.raises(UsageError, match="programs for the accelerator alone, found code for dot8"):
        vdla.run(file, no_native=True)


def test_a_package_that_does_not_load_is_named(dot8):
    (dot8 / "vdla_dot8" / "target.py").write_text("import nothing_there\n")
    with pytest.raises(TargetError, match=r"vdla_dot8.target:Dot8 to load, found ModuleNotFound"):
        vdla.compile("digits", target="dot8")


def test_a_package_that_brings_no_target_is_named(dot8):
    (dot8 / "vdla_dot8" / "target.py").write_text("Dot8 = dict\n")
    with pytest.raises(TargetError, match="to be a Target, found dict for no device"):
        vdla.compile("digits", target="dot8")


def test_code_that_its_runtime_refuses_is_named(dot8, tmp_path):
    module = vdla.compile(matmul(tmp_path / "m.onnx", 1, 8, 1, seed=1), target="dot8")
    module.outside["product"] = b"nonsense"
    with pytest.raises(ModuleError, match=r"vdla_dot8.runtime:load to take its code, found Pa"):
        vdla.run(module)


def test_a_runtime_that_fails_is_named(dot8, tmp_path):
    (dot8 / "vdla_dot8" / "runtime.py").write_text(
        "def load(code):\n    return lambda arrays: 1 // 0\n"
    )
    module = vdla.compile(matmul(tmp_path / "m.onnx", 1, 8, 1, seed=1), target="dot8")
    with pytest.raises(DeviceError, match="device dot8: expected its code to run, found ZeroDiv"):
        vdla.run(module)
