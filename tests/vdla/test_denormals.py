"""--denormals: on each way that a processor's code runs, against numpy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from in_c import InC
from onnx import TensorProto, helper, numpy_helper

import vdla
from vdla.api.packages import _of_module
from vdla.compiler.targets.processor.codegen.denormals import BITS
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.part import without_denormals
from vdla.options import Package
from vdla.options.spelling import UsageError
from vdla.packaging.forms import FORMS
from vdla.runtime.executor import Executor

TINY = np.finfo(np.float32).tiny
X = (np.tile([1, TINY / 4, -TINY / 2, 3, TINY, 0], 1000)).astype(np.float32).reshape(60, 100)
C = np.float32([1, TINY / 8, 2, -TINY, 1e-40] * 20)
DENORMALS = ("flush", "keep")

pytestmark = pytest.mark.skipif(NATIVE.machine not in BITS, reason="a processor without the bits")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A model ``y = x + c``, ``z = x * 1``; what is quantized in it lets an accelerator have it."""
    x, y, z, w = (helper.make_tensor_value_info(n, TensorProto.FLOAT, X.shape) for n in "xyzw")
    known = {"c": C, "one": np.float32([1]), "scale": np.float32(0.5), "zero": np.int8(0)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["w"], "dequantize"),
        helper.make_node("Add", ["x", "c"], ["y"], "sum"),
        helper.make_node("Sub", ["x", "one"], ["less"], "less"),
        helper.make_node("Add", ["less", "one"], ["more"], "more"),
        helper.make_node("Mul", ["x", "more"], ["z"], "product"),
    ]
    values = [numpy_helper.from_array(value, name) for name, value in known.items()]
    graph = helper.make_graph(nodes, "g", [x], [y, z, w], values)
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path_factory.mktemp("denormals") / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def wanted(denormals):
    """Outputs by numpy, of numbers that are zeros or not."""
    x, c = (without_denormals(a) if denormals == "flush" else a for a in (X, C))
    result = {"y": x + c, "z": x * ((x - 1) + 1)}
    if denormals == "flush":
        result = {name: without_denormals(value) for name, value in result.items()}
    assert (result["y"] != X + C).any() == (denormals == "flush")
    return result


def same(outputs, denormals):
    for name, value in wanted(denormals).items():
        np.testing.assert_array_equal(outputs[name], value)


@pytest.mark.parametrize("denormals", DENORMALS)
@pytest.mark.parametrize("given", [{"device": "cpu"}, {"config": "tiny"}], ids=str)
def test_networks_and_the_host_beside_an_accelerator(given, denormals, path, tmp_path):
    """Threads share the work, a saved module keeps what it was compiled with, and so does one
    whose functions are compiled once more."""
    module = vdla.compile(path, denormals=denormals, **given)
    module.save(tmp_path / "m.vdla")
    loaded = vdla.load(tmp_path / "m.vdla")
    if "config" in given:
        same(vdla.run(loaded, {"x": X}).outputs, denormals)
        return
    for each in (module, loaded):
        for threads in (1, 2):
            same(Executor(each, threads=threads).run({"x": X}).outputs, denormals)
    for threads in (1, 2):
        same(InC(module, threads).run({"x": X}), denormals)
    packaged = _of_module(loaded, Package(form="c"), FORMS["c"])
    assert packaged.processor.denormals == denormals


def test_flush_is_the_default_and_the_cache_knows_the_difference(path):
    for denormals in ("keep", "flush", "keep"):
        same(vdla.run(path, {"x": X}, device="cpu", denormals=denormals).outputs, denormals)
    same(vdla.run(path, {"x": X}, device="cpu").outputs, "flush")


@pytest.mark.parametrize("denormals", DENORMALS)
def test_a_check_holds(denormals, path, vdla):
    """The interpreter's numbers are as near as 1.2e-38."""
    given = ("--device", "cpu", "--check", "--denormals", denormals)
    assert vdla("run", str(path), *given).code == 0


@pytest.mark.parametrize("denormals", DENORMALS)
def test_the_host_beside_a_gpu(denormals, path, gpu):
    places = dict.fromkeys(("sum", "less", "more", "product"), "cpu")
    given = {"device": "gpu", "places": places, "denormals": denormals}
    same(vdla.run(path, {"x": X}, **given).outputs, denormals)


def test_another_word(path):
    with pytest.raises(UsageError) as found:
        vdla.compile(path, device="cpu", denormals="zero")
    assert str(found.value) == "--denormals: expected flush or keep, found zero"


def test_constants():
    for dtype in (np.float32, np.float64):
        tiny = np.finfo(dtype).tiny
        given = np.array([tiny, tiny / 2, -tiny, -tiny / 2, 0, np.nan, np.inf], dtype)
        want = np.array([tiny, 0, -tiny, 0, 0, np.nan, np.inf], dtype)
        found = without_denormals(given)
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(given))
    for array in (np.float16([6e-8]), np.int32([1, 0]), np.float32([1, 2])):
        assert without_denormals(array) is array
