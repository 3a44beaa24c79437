"""LSTM and GRU that become quantized, and what stays."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.models.recurrent_quantizer import (
    has_recurrent,
    quantize_recurrent,
    recurrent_ranges,
)

RNG = np.random.default_rng(4)
SIZES = {"x": (3, 1, 5), "w": (1, 16, 5), "r": (1, 16, 4)}


def model(*, named=True, given_weights=True, times=1):
    """Layers of one LSTM's weights, all on the input."""
    weights = {
        name: RNG.standard_normal(SIZES[name]).astype(np.float32)
        for name in ("w", "r")
        if given_weights or name == "r"
    }
    inputs = ["x"] if given_weights else ["x", "w"]
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], [f"y{n}"], f"it{n}" if named else "",
                         hidden_size=4)
        for n in range(times)
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, SIZES[n]) for n in inputs],
        [
            helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, (3, 1, 1, 4))
            for n in range(times)
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    result = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(result)
    return result


def samples(*names):
    arrays = {name: RNG.standard_normal(SIZES[name]).astype(np.float32) for name in names}
    return [arrays, {name: 3 * array for name, array in arrays.items()}]


def kinds(graph_of):
    return [node.op_type for node in graph_of.graph.node]


def test_ranges_are_those_of_all_samples():
    given = samples("x")
    ranges = recurrent_ranges(model(), given)
    assert ranges.keys() == {"x", "y0"}
    assert ranges["x"].low == given[1]["x"].min()
    assert ranges["x"].high == given[1]["x"].max()
    assert -1 < ranges["y0"].low < 0 < ranges["y0"].high < 1


def test_results_stay_near_the_floats():
    before, given = model(times=2, named=False), samples("x")
    after = quantize_recurrent(before, recurrent_ranges(before, given))
    onnx.checker.check_model(after)
    assert kinds(after).count("DequantizeLinear") == 2 * 4
    assert {each.name for each in after.graph.initializer} & {"w", "r"} == set()
    wanted, result = ort_run(before, given[0]), ort_run(after, given[0])
    for name, array in wanted.items():
        assert np.abs(result[name] - array).max() < 0.02


def test_weights_known_only_at_run_time_stay():
    before, given = model(given_weights=False), samples("x", "w")
    assert has_recurrent(before)
    after = quantize_recurrent(before, recurrent_ranges(before, given))
    assert kinds(after) == kinds(before) == ["LSTM"]


def test_data_that_are_quantized_already():
    before = model()
    numbers = [
        numpy_helper.from_array(np.float32(0.05), "scale"),
        numpy_helper.from_array(np.int8(3), "zero"),
    ]
    before.graph.initializer.extend(numbers)
    pair = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["data"]),
    ]
    layer = before.graph.node[0]
    layer.input[0] = "data"
    nodes = [*pair, layer]
    del before.graph.node[:]
    before.graph.node.extend(nodes)
    after = quantize_recurrent(before, recurrent_ranges(before, samples("x")))
    onnx.checker.check_model(after)
    assert kinds(after).count("QuantizeLinear") == 2  # of the data, and of the result
