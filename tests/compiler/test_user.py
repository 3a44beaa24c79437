"""Operators that users bring, in a network: on the accelerator, on the host, and refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vdla
from vdla import te
from vdla.compiler import user
from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.user import REGISTERED, OperatorError
from vdla.isa.config import load_config

SHAPE = (2, 8, 4)


@pytest.fixture(autouse=True)
def registered():
    """Whatever a test registers is gone after it."""
    before = dict(REGISTERED)
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


def clamp(x, least=0):
    wide = te.compute(x.shape, lambda *i: x[i].astype("int32") + 0, "wide")
    bounded = te.compute(x.shape, lambda *i: te.max(wide[i], least), "bounded")
    one = te.compute((4,), lambda l: te.const(te.scale_word(1, 0)), "one")
    return te.compute(
        x.shape, lambda n, y, x: te.requantize(bounded[n, y, x], one[x]).astype("int8"), "out"
    )


def vectors(s, out, inputs, ins):
    for name in ("wide", "bounded", "one"):
        s[name].set_scope(vdla.ACC)
    for stage in (s["wide"], s["bounded"], s["one"], s[out]):
        stage.tensorize(stage.axis[-1], ins)


def network(tmp_path, **attributes):
    """Quantize, the user's operator, Dequantize."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("Clamp", ["q"], ["c"], domain="mine", **attributes),
        helper.make_node("DequantizeLinear", ["c", "scale", "zero"], ["y"]),
    ]
    constants = {"scale": np.array(0.5, np.float32), "zero": np.array(0, np.int8)}
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in "xy"]
    weights = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def placed(module):
    return {row["op"]: (row["device"], row["reason"]) for row in module.metadata["placement"]}


@pytest.mark.parametrize("scheduled", [True, False])
def test_it_runs_where_its_schedule_says(scheduled, tmp_path):
    vdla.register_operator("mine::Clamp", clamp, vectors if scheduled else None)
    module = vdla.compile(network(tmp_path, least=3), "tiny")
    wanted = ("vdla", "a user's schedule")
    if not scheduled:
        wanted = ("cpu", "a user's operator without a schedule")
    assert placed(module)["mine::Clamp"] == wanted
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32) * 20
    result = vdla.run(module, {"x": x})
    want = np.maximum(np.clip(np.rint(x / 0.5), -128, 127), 3) * np.float32(0.5)
    np.testing.assert_array_equal(result.outputs["y"], want)
    assert (result.cycles is not None) == scheduled


def test_the_reference_interprets_it(tmp_path):
    vdla.register_operator("mine::Clamp", clamp)
    graph = import_model(onnx.load(network(tmp_path, least=3)))
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32) * 20
    want = np.maximum(np.clip(np.rint(x / 0.5), -128, 127), 3) * np.float32(0.5)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], want)


def test_a_schedule_that_does_not_fit_leaves_it_on_the_host(tmp_path):
    vdla.register_operator("mine::Clamp", clamp, lambda s, out, inputs, ins: None)
    device, reason = placed(vdla.compile(network(tmp_path), "tiny"))["mine::Clamp"]
    assert device == "cpu"
    assert reason.startswith("wide: expected a tensorized stage, found plain stores")


def test_a_schedule_for_another_config_leaves_it_on_the_host(tmp_path):
    """Its vectors are of 4 as the tensor's are, the config's of 8."""
    vdla.register_operator(
        "mine::Clamp", clamp, lambda s, out, i, _: vectors(s, out, i, vdla.intrinsics("tiny"))
    )
    config = load_config("tiny", ["block_out=8", "block_in=8"])
    device, reason = placed(vdla.compile(network(tmp_path), config))["mine::Clamp"]
    assert device == "cpu"
    assert "expected intrinsics of config tiny, where an entry of vdla.acc is [8]" in reason


def test_attributes_that_it_does_not_take(tmp_path):
    vdla.register_operator("mine::Clamp", clamp, vectors)
    text = r"node Clamp_1 \(Clamp\): expected operands that mine::Clamp takes, found " \
           r"int8\[2, 8, 4\]: clamp\(\) got an unexpected keyword argument 'most'$"  # fmt: skip
    with pytest.raises(ModelError, match=text):
        vdla.compile(network(tmp_path, most=3), "tiny")


@pytest.mark.parametrize(
    ("result", "found"), [(lambda x: 42, "42"), (lambda x: x, "in0"), (lambda x: [x, x], r"\[.*")]
)
def test_an_expression_that_makes_no_tensor(tmp_path, result, found):
    vdla.register_operator("mine::Clamp", lambda x, **_: result(x), vectors)
    text = r"found int8\[2, 8, 4\]: mine::Clamp: expected its expression to return one tensor " \
           rf"that it computes, found {found}$"  # fmt: skip
    with pytest.raises(ModelError, match=text):
        vdla.compile(network(tmp_path), "tiny")


@pytest.mark.parametrize("name", ["Clamp", "::Clamp", "mine::", "ai.onnx::Clamp"])
def test_a_name_without_a_domain_of_its_own(name):
    with pytest.raises(ValueError, match=r"^register_operator: expected domain::OpType with a dom"):
        vdla.register_operator(name, clamp)


def test_rtl_agrees(tmp_path):
    vdla.register_operator("mine::Clamp", clamp, vectors)
    module = vdla.compile(network(tmp_path), "tiny")
    x = {"x": np.linspace(-40, 40, 64, dtype=np.float32).reshape(SHAPE)}
    sim, rtl = vdla.run(module, x), vdla.run(module, x, device="rtl")
    assert sim.cycles == rtl.cycles
    np.testing.assert_array_equal(sim.outputs["y"], rtl.outputs["y"])


def test_a_name_that_nobody_registered():
    with pytest.raises(OperatorError, match=r"^operator mine::Clamp: expected a registered one"):
        user.registered("mine::Clamp")
