"""``run --check``: nothing wrong passes, for a stated reason; something wrong doesn't."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from qdq import QdqModel

from vdla.analysis import difference
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import numbers, ops
from vdla.compiler.graph.compare import layer_differences, ort_tensors
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate_node
from vdla.compiler.graph.rounding import undecided
from vdla.runtime.executor import Executor


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
        name="p", output="y", data="x", kernel=(2, 2), in_scale=0.25, out_scale=0.25,
        in_zp=0, out_zp=0,
    )  # fmt: skip
    sums = np.arange(-9, 10)
    x = np.zeros((len(sums), 1, 2, 2), np.int8)
    x[:, 0, 0, 0] = sums
    assert undecided(node, [x]).ravel().tolist() == [s % 4 == 2 for s in sums.tolist()]
    other = replace(node, in_scale=numbers.f32(0.25 * (1 + 1e-5)))
    assert not undecided(other, [x]).any()


def test_what_is_undecided_of_a_minimum():
    """The lesser of both decides; it lies in the middle but for three roundings, or it doesn't."""
    fields = {"name": "m", "output": "y", "a": "a", "b": "b", "a_zp": 3, "b_zp": -2, "out_zp": 0}
    node = QMinimum(**fields, scales=(0.5, 0.25))
    a, b = (each.astype(np.int8) for each in np.meshgrid(np.arange(-20, 20), np.arange(-40, 40)))
    least = np.minimum((a.astype(int) - 3) / 2, (b.astype(int) + 2) / 4)
    np.testing.assert_array_equal(undecided(node, [a, b]), least % 1 == 0.5)
    x = np.array([67 + 3, 67 - 2], np.int8)
    for roundings, either in ((2.9, True), (3.1, False), (-2.9, True), (-3.1, False)):
        scale = 1.5 * (1 + roundings * 2.0**-24)  # 67 times that is next to 100.5
        for scales in ((scale, 9.0), (9.0, scale)):
            assert undecided(replace(node, scales=scales), [x[:1], x[1:]]).tolist() == [either]


class Fixed:
    """An executor that answers with given logits."""

    def __init__(self, logits):
        self.logits = logits

    def run(self, inputs):
        return SimpleNamespace(outputs={"y": self.logits})


def compared(monkeypatch, got, want, unfused=None, step=0.5):
    """The agreement of our logits with the reference's two answers."""
    graph = SimpleNamespace(outputs=["y"])
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
