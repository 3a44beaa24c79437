"""Float networks over sequences, with made-up weights: an encoder of transformers, and a recurrent
language model. They are for measuring, and have the sizes of known ones.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.graph.types import Array
from vdla.compiler.models.builder import IR_VERSION, OPSET

WORDS = 1024  # of the encoder's vocabulary


class Graph:
    """An ONNX graph, put together operator by operator."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.rng = name, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """An operator with one result; its name."""
        (name,) = self.outputs(op, 1, *inputs, **attributes)
        return name

    def outputs(self, op: str, count: int, *inputs: str, **attributes: object) -> list[str]:
        """An operator with several results; their names."""
        name = f"{op.lower()}{len(self.nodes)}"
        names = [name, *(f"{name}.{n}" for n in range(1, count))]
        self.nodes.append(helper.make_node(op, inputs, names, name=name, **attributes))
        return names

    def constant(self, array: Array) -> str:
        """An initializer."""
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """Normal numbers: as large as keeps a product's spread, or of a given spread."""
        spread = shape[-2] ** -0.5 if scale is None else scale
        return self.constant((self.rng.standard_normal(shape) * spread).astype(np.float32))

    def model(
        self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """The whole."""
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, self.weights)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


def encoder(
    layers: int = 2, width: int = 128, heads: int = 2, length: int = 128
) -> onnx.ModelProto:
    """A transformer's encoder (Devlin et al., NAACL'19): word numbers [1, length] in, [1, length,
    width] out."""
    g = Graph("encoder", seed=20190602)
    x = g.add("Gather", g.weight(WORDS, width, scale=1.0), "input")
    x = _norm(g, g.add("Add", x, g.weight(length, width, scale=1.0)), width)
    for _ in range(layers):
        x = _norm(g, g.add("Add", x, _attention(g, x, width, heads, length)), width)
        x = _norm(g, g.add("Add", x, _feed_forward(g, x, width)), width)
    given = helper.make_tensor_value_info("input", TensorProto.INT64, [1, length])
    return g.model(
        [given], [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, length, width])]
    )


def _norm(g: Graph, x: str, width: int) -> str:
    gamma, beta = g.weight(width, scale=1.0), g.weight(width, scale=0.1)
    return g.add("LayerNormalization", x, gamma, beta, axis=-1)


def _linear(g: Graph, x: str, inputs: int, outputs: int) -> str:
    product = g.add("MatMul", x, g.weight(inputs, outputs))
    return g.add("Add", product, g.weight(outputs, scale=0.1))


def _attention(g: Graph, x: str, width: int, heads: int, length: int) -> str:
    apart = g.constant(np.array([1, length, heads, width // heads]))
    together = g.constant(np.array([1, length, width]))
    q, k, v = (g.add("Reshape", _linear(g, x, width, width), apart) for _ in range(3))
    q, v = (g.add("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 2, 3, 1]))
    root = g.constant(np.array((width // heads) ** 0.5, np.float32))
    mixed = g.add("MatMul", g.add("Softmax", g.add("Div", scores, root), axis=-1), v)
    rows = g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), together)
    return _linear(g, rows, width, width)


def _feed_forward(g: Graph, x: str, width: int) -> str:
    """With GELU as exporters write it."""
    half, one, root = (g.constant(np.array(n, np.float32)) for n in (0.5, 1.0, 2**0.5))
    y = _linear(g, x, width, 4 * width)
    gate = g.add("Add", g.add("Erf", g.add("Div", y, root)), one)
    return _linear(g, g.add("Mul", g.add("Mul", y, gate), half), 4 * width, width)


def language_model(layers: int = 2, width: int = 650, words: int = 10000) -> onnx.ModelProto:
    """A step of a recurrent language model (Zaremba et al., 2014, the medium one): a word's number
    [1, 1] and the layers' states [1, 1, width] in, the next word's scores and the states out."""
    g = Graph("language_model", seed=20140908)
    x = g.add("Gather", g.weight(words, width, scale=1.0), "input")
    one_state = [1, 1, width]
    inputs = [helper.make_tensor_value_info("input", TensorProto.INT64, [1, 1])]
    outputs = []
    for n in range(layers):
        given = [f"state{n}", f"cell{n}"]
        inputs += [helper.make_tensor_value_info(s, TensorProto.FLOAT, one_state) for s in given]
        kernel, inner = (g.weight(1, 4 * width, width, scale=width**-0.5) for _ in range(2))
        bias = g.weight(1, 8 * width, scale=0.1)
        y, h, c = g.outputs("LSTM", 3, x, kernel, inner, bias, "", *given, hidden_size=width)
        outputs += [helper.make_tensor_value_info(s, TensorProto.FLOAT, one_state) for s in (h, c)]
        x = g.add("Squeeze", y, g.constant(np.array([1])))
    scores = g.add("MatMul", x, g.weight(width, words))
    scores = g.add("Add", scores, g.weight(words, scale=0.1))
    result = helper.make_tensor_value_info(scores, TensorProto.FLOAT, [1, 1, words])
    return g.model(inputs, [result, *outputs])
