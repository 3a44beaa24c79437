"""``run --check``: nothing wrong passes, for a stated reason; something wrong doesn't."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from qdq import QdqModel

from vdla.analysis import difference
from vdla.analysis.layers import layer_differences
from vdla.analysis.ort import ort_tensors
from vdla.compiler.build import Options
from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import numbers, ops
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate_node
from vdla.compiler.graph.rounding import undecided
from vdla.compiler.graph.types import Requant
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import Sizes, vit
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

FULL = load_config("tiny", ["table_bytes=2048", "reciprocal_units=2"])


def pools(batch=1):
    """2x2 averages at one scale: every fourth lies in the middle between two steps."""
    m = QdqModel(seed=5)
    x = m.input("x", (batch, 16, 16, 16))
    y = m.node("AveragePool", [x], (batch, 16, 8, 8), kernel_shape=[2, 2], strides=[2, 2])
    y = m.quantized(y, m.scales[x], 0)
    m.output(m.dense(m.flatten(m.global_pool(y)), 10))
    return m.model()


@pytest.mark.parametrize("batch", [1, 3])
def test_ties_of_average_pools_are_no_differences(vdla, tmp_path, batch):
    onnx.save(pools(batch), tmp_path / "pools.onnx")
    done = vdla("run", tmp_path / "pools.onnx", "-c", "tiny", "--check", "--json")
    assert done.code == 0, done.out
    layer = next(each for each in done.json["layers"] if each["name"].startswith("averagepool"))
    assert layer["different"] / layer["elements"] > 0.01
    assert layer["ties"] == layer["different"]


def test_a_pool_one_step_off_is_wrong():
    graph = optimize(import_model(pools()))
    x = {"x": np.random.default_rng(0).standard_normal((1, 16, 16, 16)).astype(np.float32)}

    def wrong(graph, node, operands):
        return np.clip(evaluate_node(graph, node, operands) + 1, -128, 127)

    found = layer_differences(graph, ort_tensors(pools(), x), wrong)
    assert all(layer.share > 0.5 for layer in found)


def test_only_the_middle_is_undecided():
    """Sums of 4 values by 4: 2 of 4 is a tie, 1 and 3 of 4 are not, nor is 2.001 of 4."""
    node = ops.QAvgPool(
        name="p", output="y", data="x", kernel=(2, 2), zeros=(0,),
        requant=Requant((0.25,), 0),
    )  # fmt: skip
    sums = np.arange(-9, 10)
    x = np.zeros((len(sums), 1, 2, 2), np.int8)
    x[:, 0, 0, 0] = sums
    assert undecided(node, [x]).ravel().tolist() == [s % 4 == 2 for s in sums.tolist()]
    other = replace(node, requant=Requant((numbers.f32(0.25 * (1 + 1e-5)),), 0))
    assert not undecided(other, [x]).any()


def test_what_is_undecided_of_a_minimum():
    """The lesser of both decides; it lies in the middle but for three roundings, or it doesn't."""
    fields = {"name": "m", "output": "y", "a": "a", "b": "b", "zeros": (3, -2)}
    node = QMinimum(**fields, requant=Requant((0.5, 0.25), 0))
    a, b = (each.astype(np.int8) for each in np.meshgrid(np.arange(-20, 20), np.arange(-40, 40)))
    least = np.minimum((a.astype(int) - 3) / 2, (b.astype(int) + 2) / 4)
    np.testing.assert_array_equal(undecided(node, [a, b]), least % 1 == 0.5)
    x = np.array([67 + 3, 67 - 2], np.int8)
    for roundings, either in ((2.9, True), (3.1, False), (-2.9, True), (-3.1, False)):
        scale = 1.5 * (1 + roundings * 2.0**-24)  # 67 times that is next to 100.5
        for scales in ((scale, 9.0), (9.0, scale)):
            other = replace(node, requant=Requant(scales, 0))
            assert undecided(other, [x[:1], x[1:]]).tolist() == [either]


# Sums that lie next to the middle ----------------------------------------------------------------


def saved(path, nodes, given, made, constants):
    """A model's file; ``given`` and ``made`` are (type, shape) of x and y."""
    ends = [helper.make_tensor_value_info(n, *k) for n, k in (("x", given), ("y", made))]
    values = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], values)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def near_ties(path, seed):
    """A convolution at the scales 0.02, 0.01 and 0.05: sums of 125, 375 … times 0.004 are in the
    middle between two steps, but for float32's idea of these scales."""
    q, d, node = "QuantizeLinear", "DequantizeLinear", helper.make_node
    nodes = [
        node(q, ["x", "sx", "z"], ["xq"]), node(d, ["xq", "sx", "z"], ["xd"]),
        node(d, ["w", "sw", "z"], ["wd"]), node("Conv", ["xd", "wd"], ["t"], pads=[1] * 4),
        node(q, ["t", "sy", "z"], ["tq"]), node(d, ["tq", "sy", "z"], ["y"]),
    ]  # fmt: skip
    weights = np.random.default_rng(seed).integers(-20, 20, (64, 64))[:8, :36]
    scales = {n: np.float32(v) for n, v in (("sx", 0.02), ("sw", 0.01), ("sy", 0.05))}
    constants = {"w": weights.astype(np.int8).reshape(8, 4, 3, 3), "z": np.int8(0), **scales}
    shapes = (TensorProto.FLOAT, [1, 4, 8, 8]), (TensorProto.FLOAT, [1, 8, 8, 8])
    return saved(path, nodes, *shapes, constants)


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_sums_in_the_middle_are_no_differences(vdla, tmp_path, seed):
    """One element of 512 is more than one in a thousand."""
    done = vdla("run", near_ties(tmp_path / "m.onnx", seed), "-c", "tiny", "--check", "--json")
    (layer,) = done.json["layers"]
    assert layer["different"] > 0
    assert layer["ties"] == layer["different"]
    assert done.code == 0


def test_only_sums_in_the_middle_are_undecided():
    """``acc * 0.004`` for every acc: those a half above an integer, no neighbour of theirs."""
    scale = float(np.float32(0.02) * np.float32(0.01) / np.float32(0.05))
    node = ops.QDense(
        name="d", output="y", data="x", weight="w", bias="b", zeros=(0,),
        requant=Requant((scale,), 0),
    )  # fmt: skip
    acc = np.arange(-5000, 5000)
    found = undecided(node, [np.zeros((1, 1), np.int8), np.zeros((1, 1), np.int8), acc[:1]])
    assert found.shape == (1, 1)
    sums = [undecided(node, [np.zeros((1, 1)), np.zeros((1, 1)), np.array([a])])[0, 0] for a in acc]
    assert [a for a, either in zip(acc.tolist(), sums, strict=True) if either] == [
        a for a in acc.tolist() if a % 250 == 125
    ]


def test_a_residual_is_undecided_with_its_convolution():
    """Where the convolution may round either way, so may the sum; elsewhere its own value tells."""
    addition = ops.AddStep(addend="r", zeros=(0, 0), requant=Requant((1.0, 0.25), 0))
    node = ops.QConv2d(
        name="c", output="y", data="x", weight="w", bias="b", zeros=(0,),
        requant=Requant((0.5,), 0), epilogue=(addition,),
    )  # fmt: skip
    x = np.arange(8, dtype=np.int8).reshape(1, 1, 1, 8)
    r = np.array([0, 0, 2, 1, 2, 1, 0, 2], np.int8).reshape(1, 1, 1, 8)
    found = undecided(node, [x, np.ones((1, 1, 1, 1), np.int8), np.zeros(1, np.int32), r])
    assert found.ravel().tolist() == [False, True, True, True, True, True, False, True]


def test_a_convolution_one_step_off_is_wrong(tmp_path):
    path = near_ties(tmp_path / "m.onnx", 0)
    graph = optimize(import_model(onnx.load(path)))
    x = {"x": np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)}

    def wrong(graph, node, operands):
        return np.clip(evaluate_node(graph, node, operands).astype(int) + 1, -128, 127)

    (layer,) = layer_differences(graph, ort_tensors(path, x), wrong)
    assert layer.share > 0.9


# Operators in integers that are floats in the file -----------------------------------------------


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    """A quantized vision transformer of one block."""
    path = tmp_path_factory.mktemp("vit") / "vit.onnx"
    b = vit(Sizes(blocks=1, features=16, heads=2, length=5), image=(1, 3, 4, 16), patch=4)
    quantize_model(b.model("head"), path, b.samples)
    return path, b.samples[0]


def test_clusters_are_within_their_bounds(transformer):
    path, inputs = transformer
    layers = difference.per_cluster(import_onnx(path), inputs, FULL, Options())
    assert Counter(each.op for each in layers) == {"QSoftmax": 1, "QNormalize": 3, "QMatMul": 2}
    assert all(layer.holds for layer in layers)


@pytest.mark.long
def test_clusters_are_checked(vdla, transformer):
    path, _ = transformer
    sets = ("--set", "table_bytes=2048", "--set", "reciprocal_units=2")
    done = vdla("run", path, "-c", "tiny", *sets, "--check", "--samples", 1, "--json")
    assert done.code == 0, done.out
    kinds = Counter(layer["op"] for layer in done.json["layers"])
    assert (kinds["QSoftmax"], kinds["QNormalize"], kinds["QMatMul"]) == (1, 3, 2)
    most = {layer["op"]: layer["most"] for layer in done.json["layers"]}
    assert (most["QSoftmax"], most["QNormalize"], most["QMatMul"]) == (0.003, 0.04, 0.001)


def test_a_cluster_one_step_off_is_wrong(transformer, monkeypatch):
    path, inputs = transformer

    def wrong(graph, node, values, *_):
        return np.clip(evaluate_node(graph, node, [values[n] for n in node.inputs]) + 1, -128, 127)

    monkeypatch.setattr(difference, "_alone", wrong)
    layers = difference.per_cluster(import_onnx(path), inputs, FULL, Options())
    assert len(layers) == 6
    assert not any(layer.holds for layer in layers)


def test_rounding_that_grows_is_no_error():
    """Of a network where the reference's own rounding moves the outputs."""
    agreement = difference.Agreement(0.9965, True, False, 1.0, 0.0, 1.0, 0.1, False, 0.998)
    assert difference.Check([], [agreement]).holds
    assert not difference.Check([], [replace(agreement, unfused=0.999)]).holds


# What onnxruntime doesn't run, coarse floats, no elements -----------------------------------------


def test_what_onnxruntime_lacks_is_one_line(vdla, tmp_path):
    """bfloat16: vdla multiplies it, onnxruntime's CPU provider has no kernel."""
    cast, kind = partial(helper.make_node, "Cast"), TensorProto.BFLOAT16
    nodes = [cast(["x"], ["a"], to=kind), cast(["w"], ["b"], to=kind),
             helper.make_node("MatMul", ["a", "b"], ["c"]), cast(["c"], ["y"], to=1)]  # fmt: skip
    shape = (TensorProto.FLOAT, [4, 8])
    path = saved(tmp_path / "m.onnx", nodes, shape, shape, {"w": np.eye(8, dtype=np.float32)})
    assert vdla("run", path, "--device", "cpu").code == 0
    done = vdla("run", path, "--device", "cpu", "--check")
    assert done.code == 2
    assert re.fullmatch(
        r"vdla: onnxruntime: expected a model that onnxruntime [\d.]+ runs, to compare with, found "
        r".*NOT_IMPLEMENTED : Could not find an implementation for MatMul\(13\) node .*\n",
        done.err.splitlines(True)[-1],
    )


INT, FLOAT = TensorProto.INT32, TensorProto.FLOAT
STOPS = {
    "integer division by 0": ([("Sub", ["x", "x"], "z"), ("Div", ["x", "z"], "y")], INT, {}),
    "a constant 0": ([("Div", ["x", "z"], "y")], INT, {"z": np.zeros(3, np.int32)}),
    "too much padding": ([("Pad", ["x", "p"], "y")], FLOAT, {"p": np.array([-9, 0])}),
    "two nodes of one name": ([("Relu", ["x"], "a"), ("Relu", ["a"], "y")], FLOAT, {}),
}


@pytest.mark.parametrize("case", STOPS)
def test_where_onnxruntime_stops(vdla, tmp_path, case):
    listed, kind, constants = STOPS[case]
    name = "twice" if "name" in case else None
    nodes = [helper.make_node(op, args, [out], name=name) for op, args, out in listed]
    path = saved(tmp_path / "m.onnx", nodes, (kind, [3]), (kind, [None]), constants)
    done = vdla("run", path, "--device", "cpu", "--check")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(
        "vdla: onnxruntime: expected a model that onnxruntime "
    )


@pytest.mark.parametrize("terms", [8, 64, 512])
def test_float16_may_be_off_by_a_step(vdla, tmp_path, terms):
    weights = np.random.default_rng(0).standard_normal((terms, 8)).astype(np.float16)
    half = TensorProto.FLOAT16
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = saved(tmp_path / "m.onnx", nodes, (half, [4, terms]), (half, [4, 8]), {"w": weights})
    assert vdla("run", path, "--device", "cpu", "--check").code == 0


def test_the_bound_is_that_of_the_coarsest_floats():
    def graph(*kinds):
        return SimpleNamespace(tensors={k: SimpleNamespace(dtype=k) for k in kinds})

    assert difference.relative_bound(graph("float32", "int64")) == 1e-4
    assert difference.relative_bound(graph("float32", "float16")) == 2.0**-10
    assert difference.relative_bound(graph("float16", "bfloat16")) == 2.0**-7
    want = np.array([1000.0, 1.0], np.float16)
    for off, close in ((0.5, True), (2.0, False)):
        assert difference.is_close(want + np.float16(off), want, want, 2.0**-10) == close


@pytest.mark.parametrize("shape", [[1, 0, 4], [0, 4], [0]])
def test_tensors_without_elements(vdla, tmp_path, shape):
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = saved(tmp_path / "m.onnx", nodes, (FLOAT, shape), (FLOAT, shape), {})
    done = vdla("run", path, "--device", "cpu", "--check", "--json")
    assert done.code == 0
    assert {(each["largest"], each["same_top1"]) for each in done.json["whole"]} == {(0.0, True)}


def test_a_layer_without_elements_has_no_share():
    assert difference.LayerDifference("n", "op", 0, 0, 0, 0).share == 0


class Fixed:
    """An executor that answers with given logits."""

    def __init__(self, logits):
        self.logits = logits

    def run(self, inputs):
        return SimpleNamespace(outputs={"y": self.logits})


def compared(monkeypatch, got, want, unfused=None, step=0.5):
    """The agreement of our logits with the reference's two answers."""
    graph = SimpleNamespace(outputs=["y"], tensors={})
    answers = {True: want, False: want if unfused is None else unfused}
    monkeypatch.setattr(difference, "output_step", lambda graph: step)
    monkeypatch.setattr(
        difference, "ort_run", lambda path, inputs, fuse=True: {"y": np.array(answers[fuse])}
    )
    (found,) = difference.whole(graph, None, Fixed(np.array(got)), [{}])
    return found


def test_best_two_one_step_apart_and_ours_equal(monkeypatch):
    found = compared(monkeypatch, [[4.0, 4.0, 1.0]], [[4.0, 4.5, 1.0]])
    assert (found.same_top1, found.tie, found.holds) == (False, True, True)
    assert (found.behind, found.rounding) == (0.5, 0.5)


def test_another_class_two_steps_behind_is_wrong(monkeypatch):
    found = compared(monkeypatch, [[5.0, 4.0, 1.0]], [[4.0, 5.0, 1.0]])
    assert not found.holds
    assert (found.behind, found.rounding) == (1.0, 0.5)


def test_another_class_within_the_references_own_movement(monkeypatch):
    got, want = [[5.0, 4.0, 1.0]], [[4.0, 5.0, 1.0]]
    assert compared(monkeypatch, got, want, [[4.0, 5.0, 2.0]]).holds
    assert not compared(monkeypatch, got, want, [[4.0, 5.0, 1.9]]).holds


def test_best_class_per_sample(monkeypatch):
    """A batch's overall best may change where no sample's does, and the reverse."""
    found = compared(monkeypatch, [[3.0, 1.0], [2.0, 3.5]], [[4.0, 1.0], [2.0, 3.5]])
    assert found.same_top1
    found = compared(monkeypatch, [[9.0, 1.0], [2.0, 3.5]], [[9.0, 1.0], [3.5, 2.0]])
    assert not found.holds
    assert (found.behind, found.largest) == (1.5, 1.5)


@pytest.mark.parametrize("change", ["rolled", "negated", "swapped"])
def test_wrong_logits_exit_with_1(vdla, monkeypatch, change):
    """Shifted by a class, of the other sign, or the best two apart exchanged."""
    run = Executor.run

    def wrong(self, inputs):
        result = run(self, inputs)
        if "image" not in inputs:  # a layer alone
            return result
        (name,) = result.outputs
        y = result.outputs[name]
        if change == "swapped":
            best, second = np.argsort(y[0])[::-1][:2]
            y[0, [best, second]] = y[0, [second, best]]
        else:
            y = np.roll(y, 1, 1) if change == "rolled" else -y
        return replace(result, outputs={name: y})

    monkeypatch.setattr(Executor, "run", wrong)
    done = vdla("run", "digits", "-c", "tiny", "--check", "--json")
    assert done.code == 1
    assert done.json["holds"] is False


@pytest.mark.long
def test_mobilenet_holds(vdla):
    """One of its eight inputs has two best classes that onnxruntime itself can't tell apart."""
    done = vdla("run", "mobilenet", "--check", "--json")
    assert done.code == 0
    for each in done.json["whole"]:
        assert each["same_top1"] or each["behind"] <= each["rounding"] * 1.00001
