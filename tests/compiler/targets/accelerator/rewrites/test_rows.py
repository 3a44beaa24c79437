"""Steps of recurrent networks on vectors: nothing is left to the host, and numbers stay."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops import QConcat, QReshape, QTable, QTake
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.recurrent import RecurrentBuilder, Sizes, cells
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.rows import sequences_as_rows
from vdla.isa.config import load_config
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

TINY = load_config("tiny", ["table_bytes=2048"])
HOST = {"Take", "Reshape", "Quantize", "Dequantize"}  # before and behind all integers


def lstm():
    """Two layers of four steps, whose data are parts of the input before it is quantized."""
    return cells("lstm", Sizes(steps=4, inputs=12, hidden=8, layers=2)), "states"


def gru():
    """Three steps, as those of ``lstm``."""
    return cells("gru", Sizes(steps=3, inputs=12, hidden=8)), "states"


def no_blocks():
    """Gates of six features, where blocks have four."""
    return cells("gru", Sizes(steps=3, inputs=5, hidden=6)), "states"


def mixed():
    """Both behind a layer of the whole sequence, with another one behind them."""
    rng = np.random.default_rng(8)
    b = RecurrentBuilder("mixed", 7, rng.standard_normal((1, 3, 12)).astype(np.float32))
    first = b.linear("first", "input", 8)
    x = b.emit("Tanh", "first.tanh", [first], np.tanh(b.values[first]))
    start = b.constant("start", np.zeros((1, 8), np.float32))
    vectors = b.layer("gru", b.vectors(x), b.gru_step, (start,))
    begin = tuple(b.constant(f"begin{n}", np.zeros((1, 8), np.float32)) for n in range(2))
    states = b.sequence("states", b.layer("lstm", vectors, b.lstm_step, begin))
    return b, b.linear("head", states, 12)


def sliced():
    """A cell with one gate, of which every tensor has three dimensions: [1, 1, C]."""
    rng = np.random.default_rng(9)
    b = RecurrentBuilder("sliced", 7, rng.standard_normal((1, 3, 8)).astype(np.float32))
    x, state, states = b.linear("first", "input", 8), b.constant("begin", _zeros(1, 1, 8)), []
    for step in range(3):
        ends = ((f"step{step}.{n}", v) for n, v in (("a", step), ("b", step + 1), ("axis", 1)))
        names = [b.constant(name, np.array([value], np.int64)) for name, value in ends]
        row = b.emit("Slice", f"row{step}", [x, *names], b.values[x][:, step : step + 1])
        of_state = b.linear(f"of_state{step}", state, 8)
        keep = b.sigmoid(f"keep{step}", b.add(f"sum{step}", row, of_state))
        kept = b.mul(f"kept{step}", keep, state)
        new = b.mul(f"new{step}", b.rest(f"rest{step}", keep), row)
        state = b.add(f"state{step}", kept, new)
        states.append(state)
    return b, b.emit("Concat", "states", states, b.values_of(states), axis=1)


def _zeros(*shape):
    return np.zeros(shape, np.float32)


@pytest.fixture(
    params=[lstm, gru, no_blocks, mixed, sliced], ids=lambda make: make.__name__, scope="module"
)
def network(request, tmp_path_factory):
    """A quantized network's file, its output's name and an input."""
    builder, output = request.param()
    path = tmp_path_factory.mktemp(request.param.__name__) / "network.onnx"
    quantize_model(builder.model(output), path, [{"input": builder.values["input"]}])
    return path, output, {"input": builder.values["input"]}


def test_all_steps_are_one_stream(network):
    path, output, inputs = network
    module = compile_graph(import_onnx(path), TINY, Options())
    rows = module.metadata["placement"]
    assert {row["op"] for row in rows if row["device"] == "cpu"} <= HOST
    assert len(module.programs) == 1
    result = Executor(module, SimDevice(TINY)).run(inputs).outputs[output]
    wanted = evaluate(optimize(import_onnx(path)), inputs)[output]
    np.testing.assert_array_equal(result, wanted)


def test_outputs_are_onnxruntimes(network):
    path, output, inputs = network
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    wanted = session.run([output], inputs)[0].ravel()
    result = evaluate(optimize(import_onnx(path)), inputs)[output].ravel()
    assert result @ wanted / np.sqrt((result @ result) * (wanted @ wanted)) > 0.995


def test_dense_layers_of_all_rows_are_convolutions(tmp_path):
    builder, output = mixed()
    quantize_model(builder.model(output), tmp_path / "m.onnx", [{"input": builder.values["input"]}])
    graph = optimize(import_onnx(tmp_path / "m.onnx"))
    after = sequences_as_rows(graph, Capability(TINY))
    kinds = [node.op for node in after.nodes]
    assert (kinds.count("QConv2d"), kinds.count("QExchange")) == (2, 4)  # there and back
    assert kinds.count("QDense") == [node.op for node in graph.nodes].count("QDense") - 2
    same_numbers(graph, after)


def test_transformers_have_no_steps():
    """Rows of which one is taken aren't taken one by one: what works on all stays."""
    shape = (1, 3, 8)
    graph = graph_of(
        QTable(name="f", output="f", data="x", table="table"),
        QTable(name="g", output="g", data="f", table="table"),
        row("y", "g", 0),
        outputs=("f", "y"), x=shape, f=shape, g=shape, y=(1, 1, 8),
    )  # fmt: skip
    after = sequences_as_rows(graph, Capability(TINY))
    assert after.producers["f"] == graph.producers["f"]
    same_numbers(graph, after)


def graph_of(*nodes, outputs=("y",), **shapes):
    """A graph of int8 tensors with one input, x, and a table of squares."""
    table = (np.arange(-128, 128) ** 2 // 129).astype(np.int8)
    tensors = {name: TensorType(shape, "int8") for name, shape in shapes.items()}
    tensors["table"] = TensorType((256,), "int8")
    return Graph(("x",), outputs, nodes, tensors, {"table": table})


def row(name, data, number, features=8):
    """A node that takes a row of [1, 3, features]."""
    places = 0, number, *range(features)
    return QTake(name=name, output=name, data=data, shape=(1, 1, features), places=places)


def same_numbers(before, after):
    (name,) = before.inputs
    kind, rng = before.tensors[name], np.random.default_rng(3)
    real = kind.dtype == "float32"
    data = rng.standard_normal(kind.shape) if real else rng.integers(-128, 128, kind.shape)
    x = {name: data.astype(kind.dtype)}
    wanted, result = evaluate(before, x), evaluate(after, x)
    assert before.outputs == after.outputs
    for name in before.outputs:
        np.testing.assert_array_equal(result[name], wanted[name])


def test_a_table_of_one_row_of_a_table():
    """The row is taken first, so that the table works on a vector."""
    shape = (1, 3, 8)
    graph = graph_of(
        QTable(name="f", output="f", data="x", table="table"),
        row("y", "f", 1),
        x=shape, f=shape, y=(1, 1, 8),
    )  # fmt: skip
    after = sequences_as_rows(graph, Capability(TINY))
    assert [n.op for n in after.nodes] == ["QReshape", "QTakeView", "QTable", "QReshape"]
    assert after.tensors[after.nodes[2].output].shape == (1, 8)
    same_numbers(graph, after)


def test_a_table_that_is_an_output_stays():
    shape = (1, 3, 8)
    graph = graph_of(
        QTable(name="f", output="f", data="x", table="table"),
        row("y", "f", 1),
        outputs=("f", "y"), x=shape, f=shape, y=(1, 1, 8),
    )  # fmt: skip
    after = sequences_as_rows(graph, Capability(TINY))
    assert after.producers["f"] == graph.producers["f"]
    same_numbers(graph, after)


def test_every_second_feature_is_no_row():
    node = QTake(name="y", output="y", data="x", shape=(1, 1, 4), places=(0, 1, 0, 2, 4, 6))
    graph = graph_of(node, x=(1, 3, 8), y=(1, 1, 4))
    assert sequences_as_rows(graph, Capability(TINY)).nodes == graph.nodes


def test_rows_of_two_batches_are_no_vectors_side_by_side():
    """Two sequences joined along their steps: their rows take turns in the result."""
    shapes = {"x": (2, 8), "r": (2, 1, 8), "y": (2, 2, 8)}
    graph = graph_of(
        QReshape(name="r", output="r", data="x"),
        QConcat(name="y", output="y", parts=("r", "r"), axis=1, zeros=(0, 0),
                requant=Requant((1.0, 1.0), 0)),
        **shapes,
    )  # fmt: skip
    after = sequences_as_rows(graph, Capability(TINY))
    assert [n.op for n in after.nodes] == ["QReshape", "QConcat"]
    same_numbers(graph, after)
