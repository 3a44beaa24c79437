"""Indices beyond their axis, means of nothing, initializers that are not plain: one line each."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vdla as package
from vdla.analysis.ort import ort_run
from vdla.api.modules import random_inputs
from vdla.runtime.errors import InputError


def saved(path, nodes, ends, constants=(), **more):
    """A model; ``ends`` are (name, type, shape) of inputs and, last, of the output y."""
    values = [helper.make_tensor_value_info(*end) for end in ends]
    weights = [c if isinstance(c, TensorProto) else numpy_helper.from_array(*c) for c in constants]
    graph = helper.make_graph(nodes, "g", values[:-1], values[-1:], weights, **more)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


def looked_up(path, op="Gather", shape=(2,)):
    node = helper.make_node(op, ["rows", "i"], ["y"], axis=0)
    made = [*shape, 4] if op == "Gather" else list(shape)
    return saved(path, [node], [("i", INT, list(shape)), ("y", FLOAT, made)], [(ROWS, "rows")])


@pytest.mark.parametrize(("op", "shape"), [("Gather", (2,)), ("GatherElements", (2, 4))])
@pytest.mark.parametrize("index", [7, -9, 3, -4])
def test_an_input_that_leads_beyond_its_axis_is_refused(tmp_path, op, shape, index):
    module = package.compile(looked_up(tmp_path / "m.onnx", op, shape), device="cpu")
    given = np.zeros(shape, np.int64)
    given.flat[1] = index
    ends = f"{min(index, 0)}..{max(index, 0)}"
    with pytest.raises(InputError) as error:
        package.run(module, {"i": given}, device="cpu")
    assert str(error.value) == f"input i: expected indices from -3 to 2, found {ends}"


@pytest.mark.parametrize(("op", "shape"), [("Gather", (2,)), ("GatherElements", (2, 4))])
def test_indices_within_their_axis(tmp_path, op, shape):
    path = looked_up(tmp_path / "m.onnx", op, shape)
    module = package.compile(path, device="cpu")
    given = {"i": np.resize([-3, 2], shape).astype(np.int64)}
    (want,) = ort_run(path, given).values()
    np.testing.assert_array_equal(package.run(module, given, device="cpu").outputs["y"], want)


def test_random_indices_lie_within_their_axis(tmp_path):
    module = package.compile(looked_up(tmp_path / "m.onnx", shape=(500,)), device="cpu")
    assert set(random_inputs(module)["i"].tolist()) == {0, 1, 2}
    assert package.check(tmp_path / "m.onnx", device="cpu").holds


def test_a_module_keeps_its_bounds(tmp_path):
    package.compile(looked_up(tmp_path / "m.onnx"), device="cpu").save(tmp_path / "m.vdla")
    with pytest.raises(InputError, match=r"expected indices from -3 to 2, found 0\.\.5"):
        package.run(tmp_path / "m.vdla", {"i": np.array([0, 5])}, device="cpu")


def test_computed_indices_read_nothing_outside(tmp_path):
    """As docs/onnx.md has it: the nearest element stands for it."""
    nodes = [helper.make_node("Mul", ["i", "i"], ["j"]),
             helper.make_node("Gather", ["rows", "j"], ["y"], axis=0)]  # fmt: skip
    ends = [("i", INT, [3]), ("y", FLOAT, [3, 4])]
    path = saved(tmp_path / "m.onnx", nodes, ends, [(ROWS, "rows")])
    found = package.run(path, {"i": np.array([0, 1, 99])}, device="cpu").outputs["y"]
    np.testing.assert_array_equal(found, ROWS[[0, 1, 2]])


@pytest.mark.parametrize("index", [5, -4])
def test_a_constant_index_beyond_its_axis(vdla, tmp_path, index):
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1, name="pick")
    ends = [("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 2])]
    path = saved(tmp_path / "m.onnx", [node], ends, [(np.array([0, index]), "i")])
    done = vdla("run", path, "--device", "cpu")
    assert (done.code, done.err) == (
        2, f"vdla: {path}: node pick (Gather): expected indices from -3 to 2 along axis 1, "
        f"found {index}\n",
    )  # fmt: skip


def test_a_constant_index_from_the_end(tmp_path):
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    ends = [("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 2])]
    path = saved(tmp_path / "m.onnx", [node], ends, [(np.array([-3, -1]), "i")])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(
        package.run(path, {"x": x}, device="cpu").outputs["y"], x[:, [0, 2]]
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_mean_of_nothing_is_zero(tmp_path, keepdims):
    """As of onnxruntime; numpy has NaN, and warns."""
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=keepdims)
    ends = [("x", FLOAT, [2, 0]), ("y", FLOAT, [2, 1][: 1 + keepdims])]
    path = saved(tmp_path / "m.onnx", [node], ends)
    x = {"x": np.zeros((2, 0), np.float32)}
    (want,) = ort_run(path, x).values()
    found = package.run(path, x, device="cpu").outputs["y"]
    np.testing.assert_array_equal(found, want)
    assert not found.any()


def test_an_initializer_of_no_type(vdla, tmp_path):
    weights = TensorProto(name="w", data_type=77, dims=[3], raw_data=bytes(12))
    node = helper.make_node("Add", ["x", "w"], ["y"])
    ends = [("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 3])]
    path = saved(tmp_path / "m.onnx", [node], ends, [weights])
    done = vdla("run", path, "--device", "cpu")
    assert done.err == (
        f"vdla: {path}: initializer w: expected an element type of ONNX, found 77\n"
    )


def test_a_sparse_initializer(vdla, tmp_path):
    values, places = (
        helper.make_tensor("w", FLOAT, [1], [2.0]),
        helper.make_tensor("p", INT, [1], [1]),
    )
    sparse = [helper.make_sparse_tensor(values, places, [3])]
    node = helper.make_node("Add", ["x", "w"], ["y"])
    ends = [("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 3])]
    path = saved(tmp_path / "m.onnx", [node], ends, sparse_initializer=sparse)
    done = vdla("run", path, "--device", "cpu")
    assert done.err == (
        f"vdla: {path}: initializer w: expected a dense tensor, found a sparse one; "
        "write it dense\n"
    )
