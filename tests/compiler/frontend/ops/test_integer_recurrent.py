"""LSTM and GRU between quantized tensors become integers; others stay float."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.isa.config import load_config
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

TINY = load_config("tiny", ["table_bytes=2048"])
SIZE, HIDDEN = 7, 6
SCALE = 2.0 / 255  # of states
WIDTH = {"LSTM": 4, "GRU": 3, "RNN": 1}
HOST = {"Reshape", "Quantize", "Dequantize", "Transpose", "Binary", "Unary", "Cast", "Pack"}


class Network:
    """A network around one recurrent operator, whose weights are int8."""

    def __init__(self, op, steps, batch=1, *, dtype=np.int8, columns=True, seed=3):
        self.op, self.steps, self.batch, self.dtype = op, steps, batch, dtype
        self.rng, self.columns = np.random.default_rng(seed), columns
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.data = {}

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def input(self, name, *shape, scale=0.03, zero=5):
        """An input and its quantization."""
        values = self.rng.standard_normal(shape).astype(np.float32)
        self.data[name] = values
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.quantized(name, scale, zero)

    def quantized(self, name, scale, zero):
        shift = 128 if self.dtype == np.uint8 else 0
        numbers = [
            self.constant(f"{name}.scale", np.float32(scale)),
            self.constant(f"{name}.zero", self.dtype(zero + shift)),
        ]
        steps = self.node("QuantizeLinear", [name, *numbers], f"{name}.q")
        return self.node("DequantizeLinear", [steps, *numbers], f"{name}.dq")

    def weight(self, name, features, ways=1):
        rows = WIDTH[self.op] * HIDDEN
        values = self.rng.integers(-127, 128, (ways, rows, features)).astype(np.int8)
        count = rows if self.columns else ()
        scale = self.rng.uniform(0.5, 1, count) / 60 / np.sqrt(features)
        numbers = [
            self.constant(f"{name}.scale", scale.astype(np.float32)),
            self.constant(f"{name}.zero", np.zeros(count, np.int8)),
        ]
        stored = self.constant(f"{name}.q", values)
        return self.node("DequantizeLinear", [stored, *numbers], name, axis=1)

    def biases(self, ways=1):
        values = 0.3 * self.rng.standard_normal((ways, 2 * WIDTH[self.op] * HIDDEN))
        return self.constant("b", values.astype(np.float32))

    def layer(self, data, *, bias="", states=(), outputs=("y",), **attributes):
        """The operator, and its outputs quantized."""
        ways = 2 if attributes.get("direction") == "bidirectional" else 1
        weights = self.weight("w", SIZE, ways), self.weight("r", HIDDEN, ways)
        inputs = [data, *weights, bias, "", *states]
        names = [f"{name}.real" if name else "" for name in outputs]
        node = helper.make_node(self.op, inputs, names, "it", hidden_size=HIDDEN, **attributes)
        self.nodes.append(node)
        for name in filter(None, names):
            self.outputs.append(self.quantized(name, SCALE, 0))

    def model(self, outputs=None):
        ranks = [(n, 4 if n.startswith("y.") else 3) for n in outputs or self.outputs]
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank)
            for name, rank in ranks
        ]
        graph = helper.make_graph(self.nodes, "g", self.inputs, ends, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def data(network):
    return network.input("x", network.steps, network.batch, SIZE)


def plain(op, steps, **attributes):
    network = Network(op, steps)
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    network.layer(data(network), bias=network.biases(ways), **attributes)
    return network


def without_bias(op, steps):
    network = Network(op, steps, columns=False)
    network.layer(data(network))
    return network


def unsigned(op, steps):
    network = Network(op, steps, dtype=np.uint8)
    network.layer(data(network), bias=network.biases())
    return network


def backwards(op, steps):
    return plain(op, steps, direction="reverse")


def both_ways(op, steps):
    return plain(op, steps, direction="bidirectional", outputs=("y", "yh"))


def batch(op, steps):
    network = Network(op, steps, batch=3)
    network.layer(data(network), bias=network.biases())
    return network


def from_constants(op, steps):
    """States before the first step that are constants."""
    network = Network(op, steps)
    names = ("h", "c")[: 2 if op == "LSTM" else 1]
    states = [
        network.constant(name, network.rng.uniform(-0.9, 0.9, (1, 1, HIDDEN)).astype(np.float32))
        for name in names
    ]
    network.layer(data(network), bias=network.biases(), states=states)
    return network


def from_inputs(op, steps, ways=1, **attributes):
    """States that go in and come out."""
    network = Network(op, steps, batch=attributes.pop("batch", 1))
    names = ("h", "c")[: 2 if op == "LSTM" else 1]
    shape = ways, network.batch, HIDDEN
    states = [network.input(n, *shape, scale=SCALE, zero=0) for n in names]
    outputs = ("y", "yh", "yc")[: len(names) + 1]
    bias = network.biases(ways)
    network.layer(data(network), bias=bias, states=states, outputs=outputs, **attributes)
    return network


def both_ways_from_inputs(op, steps):
    """Each direction's states of several sequences."""
    return from_inputs(op, steps, ways=2, batch=3, direction="bidirectional")


def last_state_alone(op, steps):
    return plain(op, steps, outputs=("", "yh"))


def behind_weights(op, steps):
    """GRU's other form."""
    return plain(op, steps, **({"linear_before_reset": 1} if op == "GRU" else {}))


KINDS = [
    plain, without_bias, unsigned, backwards, both_ways, batch, from_constants, from_inputs,
    last_state_alone, behind_weights,
]  # fmt: skip


def results(network):
    graph = import_model(network.model())
    return graph, evaluate(optimize(graph), network.data)


def integers(graph):
    return [node.op for node in graph.nodes if node.op == "QGates"]


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_strict_leaves_cells_float(op):
    network = plain(op, 4)
    graph = import_model(network.model(), strict=True)
    assert not integers(graph)
    cells = {n.name for n in graph.nodes if n.op == "Unary"}
    text = "kept on the host by --strict: recurrent cells in integers round gates and states"
    assert {graph.reasons[name] for name in cells} == {text}
    optimized = optimize(graph)
    assert {optimized.reasons[n.name] for n in optimized.nodes if n.op == "Unary"} == {text}
    (wanted,) = ort_run(network.model(), network.data, fuse=False).values()
    result = evaluate(optimized, network.data)[optimized.outputs[0]]
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("kind", [*KINDS, both_ways_from_inputs], ids=lambda kind: kind.__name__)
def test_one_step_is_within_the_bound(kind, op):
    """Half a step of the state's scale and 1/500 from the float operator of the same weights."""
    network = kind(op, 1)
    graph, result = results(network)
    assert integers(graph)
    reals = [name.removesuffix(".dq") for name in network.outputs]
    wanted = ort_run(network.model(reals), network.data)
    for name, real in zip(network.outputs, reals, strict=True):
        limited = np.clip(wanted[real], -128 * SCALE, 127 * SCALE)
        assert np.abs(result[name] - limited).max() <= SCALE / 2 + 1 / 500


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("kind", [*KINDS, both_ways_from_inputs], ids=lambda kind: kind.__name__)
def test_twenty_steps(kind, op):
    network = kind(op, 20)
    _, result = results(network)
    wanted = ort_run(network.model(), network.data)
    for name in network.outputs:
        a, b = result[name].ravel(), wanted[name].ravel()
        assert a.shape == b.shape
        assert a @ b / np.sqrt((a @ a) * (b @ b)) > 0.999
        assert np.abs(a - b).max() < 4 * SCALE


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_accelerator_gives_the_same(kind, op):
    network = kind(op, 3)
    graph, wanted = results(network)
    module = compile_graph(graph, TINY, Options())
    rows = module.metadata["placement"]
    assert len(module.programs) == 1
    assert {"QGates", "QLstmState" if op == "LSTM" else "QGruState"} <= {
        row["op"] for row in rows if row["device"] == "vdla"
    }
    outputs = Executor(module, SimDevice(TINY)).run(network.data).outputs
    for name in network.outputs:
        np.testing.assert_array_equal(outputs[name], wanted[name])


def too_large(op):
    """Sums that fixed point doesn't hold."""
    network = Network(op, 3)
    network.layer(network.input("x", 3, 1, SIZE, scale=1e5), bias=network.biases())
    return network


def of_floats(op):
    """Data that nothing quantizes."""
    network = Network(op, 3)
    data(network)
    network.layer("x", bias=network.biases())
    return network


def to_floats(op):
    """Results that nothing quantizes."""
    network = Network(op, 3)
    network.layer(data(network), bias=network.biases())
    network.outputs = ["y.real"]
    network.nodes = [n for n in network.nodes if "y.real." not in n.name]
    return network


def of_other_functions(op):
    names = {"LSTM": ["HardSigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Relu"]}
    activations = ["Sigmoid", "Relu", "Tanh"] if op == "LSTM" else names[op]
    return plain(op, 3, activations=activations)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("kind", [too_large, of_floats, to_floats, of_other_functions])
def test_what_stays_float(kind, op):
    network = kind(op)
    graph, result = results(network)
    assert not integers(graph)
    wanted = ort_run(network.model(), network.data)
    for name in network.outputs:
        assert np.abs(result[name] - wanted[name]).max() <= SCALE * 1.001


def of_float_weights(op):
    """Weights that a quantizer has left in floats, two directions, and functions by name."""
    network = Network(op, 6)
    rng, rows = network.rng, WIDTH[op] * HIDDEN
    parts = [
        network.constant(name, rng.normal(0, 0.4, (2, rows, size)).astype(np.float32))
        for name, size in (("w", SIZE), ("r", HIDDEN))
    ]
    names = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}[op] * 2
    network.nodes.append(
        helper.make_node(
            op, [data(network), *parts], ["both"], "both", hidden_size=HIDDEN,
            direction="bidirectional", activations=names,
        )
    )  # fmt: skip
    turned = network.node("Transpose", ["both"], "turned", perm=[0, 2, 1, 3])
    shape = network.constant("shape", np.array([6, 2 * HIDDEN]))
    network.node("Reshape", [turned, shape], "y.real")
    network.outputs.append(network.quantized("y.real", SCALE, 0))
    return network


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_weights_that_are_floats_are_rounded_for_the_accelerator_alone(op):
    network = of_float_weights(op)
    model = network.model()
    assert not integers(import_model(model))
    graph = optimize(import_model(model, floats=False))
    assert integers(graph)
    (wanted,) = ort_run(model, network.data).values()
    result = evaluate(graph, network.data)[graph.outputs[0]]
    assert np.abs(result - wanted).max() <= 3 * SCALE
    module = compile_graph(graph, TINY, Options())
    (output,) = Executor(module, SimDevice(TINY)).run(network.data).outputs.values()
    np.testing.assert_array_equal(output, result)


def test_two_layers_without_numbers_between():
    """The first one's state has steps of 1/128."""
    network = Network("LSTM", 4)
    first = data(network)
    parts = [network.weight("w0", SIZE), network.weight("r0", HIDDEN)]
    network.nodes.append(
        helper.make_node("LSTM", [first, *parts], ["first"], "first", hidden_size=HIDDEN)
    )
    axes = network.constant("axes", np.array([1]))
    network.node("Squeeze", ["first", axes], "between")
    parts = ["between", network.weight("w1", HIDDEN), network.weight("r1", HIDDEN)]
    network.nodes.append(helper.make_node("LSTM", parts, ["y.real"], "it", hidden_size=HIDDEN))
    network.outputs.append(network.quantized("y.real", SCALE, 0))
    graph, result = results(network)
    assert len(integers(graph)) == 2 * (4 + 1)
    wanted = ort_run(network.model(), network.data)["y.real.dq"]
    assert np.abs(result["y.real.dq"] - wanted).max() <= 3 * SCALE


def test_equal_steps_share_their_weights():
    graph = import_model(plain("LSTM", 6).model())
    gates = [node for node in graph.nodes if node.op == "QGates"]
    assert len(gates) == 1 + 6
    assert len({node.weight for node in gates}) == 2
