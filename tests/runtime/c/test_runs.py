"""Runs in C give what the executor gives: random programs, loops that don't end, wrong indices."""

from __future__ import annotations

import ctypes

import numpy as np
import onnx
import pytest
from fuzz_c import OPTIONS, TINY, fault, outcome
from in_c import InC
from onnx import TensorProto, helper

import vdla
from vdla.compiler.build import compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.targets.processor.part import native_code
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import Clear, Copy, Next
from vdla.runtime.table import memory_of
from vdla.runtime.values import Absent, Each, Listed, Maybe, Rows


@pytest.mark.parametrize("seed", range(300, 316))
def test_random_programs(seed):
    """Every other one is an ONNX model with loops, lists and optional values."""
    assert outcome(seed) == (seed, "")


@vdla.fn(returns=lambda x: x)
def steps_down(x):
    """Calls itself as often as x says."""
    return vdla.cond(x[0] > 0, lambda x: steps_down(x - 1) + x, lambda x: x, x)


def test_functions_that_call_themselves():
    graph = steps_down.graph(np.zeros(3, np.float32))
    made = compile_graph(graph, TINY, OPTIONS)
    (name,) = made.inputs
    samples = [{name: np.full(3, n, np.float32)} for n in (0, 1, 5, 200)]
    assert fault(made, samples) == ""
    in_c = InC(made)
    with pytest.raises(in_c.package.NetworkError) as caught:
        in_c.run({name: np.full(3, 5000, np.float32)})
    assert "expected at most 1000 calls inside one another, found more" in str(caught.value)
    assert fault(made, samples[:1]) == ""  # the network goes on


def test_loops_that_do_not_end():
    with pytest.raises(Exception) as caught:  # noqa: PT011  the package's own class
        loop_of(4, strict=True).run({"x": np.zeros(4, np.float32)})
    assert str(caught.value) == (
        "step 2 (loop): expected an end after at most its turns, found none; compile with more, "
        "--turns, if it is to go on"
    )


def loop_of(turns: int, strict: bool = False) -> InC:
    """A loop that writes x to a row of y in each turn."""
    tensors = {
        "x": TensorInfo((4,), "float32", 0), "y": TensorInfo((4, 4), "float32", 64),
        "turn": TensorInfo((), "int64", 128),
    }  # fmt: skip
    steps = (Clear("clear", ("turn",)), Copy("put", ("x", "y"), "turn", "put"),
             Next("loop", 1, "turn", turns, strict))  # fmt: skip
    return InC(Module(tensors, ["x"], ["y"], 192, steps))


def test_rows_beyond_a_tensor_are_not_written():
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(loop_of(4).run({"x": x})["y"], np.tile(x, (4, 1)))
    with pytest.raises(Exception) as caught:  # noqa: PT011  the package's own class
        loop_of(5).run({"x": x})
    assert str(caught.value) == "step 1: expected turns as many as there are rows, found more"


INDEX, TABLE = TensorProto.INT64, np.arange(10, dtype=np.float32)


def test_indices():
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "i"], ["y"])], "g", [info("i", INDEX, [2])],
        [info("y", TensorProto.FLOAT, [2])], [onnx.numpy_helper.from_array(TABLE, "table")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    in_c = InC(compile_graph(import_model(model), TINY, OPTIONS))
    for good in ([0, 9], [-10, -1]):
        np.testing.assert_array_equal(in_c.run({"i": np.array(good)})["y"], TABLE[good])
    for bad in ([0, 10], [-11, 0], [1 << 40, 0], [-(1 << 63), 0]):
        with pytest.raises(in_c.package.NetworkError) as caught:
            in_c.run({"i": np.array(bad)})
        assert str(caught.value) == "input i: expected indices from -10 to 9, found another"


def test_lists_and_what_is_not_there():
    """Of one tensor of rows, all kinds of results."""
    tensors = {
        "rows": TensorInfo((3, 2, 2), "float32", 0), "count": TensorInfo((), "int64", 64),
        "sizes": TensorInfo((3, 2), "int64", 128), "flag": TensorInfo((), "bool", 192),
    }  # fmt: skip
    values = {
        "plain": "rows", "first": Rows("rows", "count"), "each": Each("rows", "count"),
        "cut": Each("rows", "count", "sizes"), "none": Absent(), "maybe": Maybe("rows", "flag"),
        "list": Listed(("rows", Each("rows", "count"), Absent(), Listed(("count",)))),
        "empty": Listed(), "perhaps": Maybe(Rows("rows", "count"), "flag"),
        "optional": Maybe(Listed(("rows", Each("rows", "count"))), "flag"),
        "hollow": Maybe(Listed(), "flag"),
    }  # fmt: skip
    made = Module(
        tensors, [*tensors], ["rows"], 256, (Clear("c", ("spare",)),), values=values,
    )  # fmt: skip
    made.tensors["spare"] = TensorInfo((1,), "int8", 200)
    made.host = native_code([], empty=True)  # what executors clear by
    rng = np.random.default_rng(3)
    samples = [
        {"rows": rng.standard_normal((3, 2, 2)).astype(np.float32), "count": np.array(count),
         "sizes": rng.integers(0, 3, (3, 2)), "flag": np.array(flag)}
        for count, flag in ((0, True), (2, False), (3, True))
    ]  # fmt: skip
    assert fault(made, samples) == ""


def test_two_networks_at_once_and_threads():
    made = vdla.compile("characters", device="cpu")
    first, second = InC(made, 2), InC(made, 1)
    inputs = [vdla.random_inputs(made, seed) for seed in (1, 2)]
    wanted = [vdla.run(made, each).outputs for each in inputs]
    for in_c in (first, second, first):
        for each, outputs in zip(inputs, wanted, strict=True):
            for name, value in in_c.run(each).items():
                assert value.tobytes() == outputs[name].tobytes()


def test_a_state_is_kept_and_restored():
    made = vdla.compile("digits", device="cpu")
    in_c, inputs = InC(made), [vdla.random_inputs(made, seed) for seed in (1, 2)]
    library, net = in_c.package._library(), in_c.net._net
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    first = in_c.run(inputs[0])["logits"]
    library.vdla_state(net, ctypes.byref(data), ctypes.byref(size))
    assert size.value == memory_of(made).image
    kept = ctypes.string_at(data, size.value)
    assert in_c.run(inputs[1])["logits"].tobytes() != first.tobytes()
    ctypes.memmove(data, kept, size.value)
    (output,) = in_c.net._tensors("output")
    assert output.array().tobytes() == first.tobytes()
