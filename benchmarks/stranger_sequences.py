"""Transformers and recurrent cells of ``strangers.py``, in other operators than the bundled ones.

Each writes the same mathematics as some exporter does: normalizations, softmax and GELU in one
operator or in pieces, masks that are added or chosen, heads by Split, Slice, Gather or Einsum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, shape_inference
from stranger_models import Net

Array = NDArray[Any]
MASKED = -1e4


class Sequences(Net):
    """A network of vectors under construction, in an opset."""

    def __init__(self, name: str, seed: int, shape: Sequence[int], opset: int) -> None:
        super().__init__(name, seed, shape)
        self.opset = opset

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The finished model."""
        kind = onnx.TensorProto.FLOAT
        start = helper.make_tensor_value_info("input", kind, self.shape)
        ends = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, [start], ends, self.weights)
        opset = helper.make_opsetid("", self.opset)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
        return shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)

    def several(self, op: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """An operator with several results."""
        name = f"{op.lower()}{len(self.nodes)}"
        names = [f"{name}.{n}" for n in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=name, **attributes))
        return names

    def integers(self, *values: int) -> str:
        """A constant of int64."""
        return self.constant(values, np.int64)

    def reshape(self, x: str, *shape: int) -> str:
        """A tensor of another shape."""
        return self.node("Reshape", x, self.integers(*shape))

    def transpose(self, x: str, *perm: int) -> str:
        """A tensor with its axes in another order."""
        return self.node("Transpose", x, perm=perm)

    def slice(self, x: str, first: int, end: int, axis: int) -> str:
        """A range along an axis."""
        return self.node("Slice", x, *(self.integers(n) for n in (first, end, axis)))

    def squeeze(self, x: str, axis: int) -> str:
        """A tensor without an axis of one element."""
        return self.node("Squeeze", x, self.integers(axis))

    def number(self, op: str, x: str, value: float) -> str:
        """A tensor and a number."""
        return self.node(op, x, self.constant(value))

    def reduce(self, op: str, x: str, axis: int = -1) -> str:
        """A reduction along an axis, which stays; its opset says where the axis stands."""
        if self.opset >= 18 or op == "ReduceSum":
            return self.node(op, x, self.integers(axis), keepdims=1)
        return self.node(op, x, axes=[axis], keepdims=1)

    def linear(self, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """A dense layer of each vector."""
        weight = self.rng.standard_normal((inputs, outputs)) * gain / math.sqrt(inputs)
        product = self.node("MatMul", x, self.constant(weight))
        return self.node("Add", product, self.constant(self._bias(outputs)))

    def terms(self, size: int) -> tuple[str, str]:
        """A normalization's factors and offsets."""
        gamma, beta = self.rng.uniform(0.6, 1.4, size), self.rng.normal(0, 0.1, size)
        return self.constant(gamma), self.constant(beta)

    def layer(
        self, op: str, x: str, inputs: int, hidden: int, ways: int = 1, **other: Any
    ) -> list[str]:
        """An LSTM or a GRU of [T, N, inputs]: all states, and the last ones."""
        gates = {"LSTM": 4, "GRU": 3}[op] * hidden
        drawn = [
            self.rng.standard_normal((ways, gates, size)) / math.sqrt(size)
            for size in (inputs, hidden)
        ]
        operands = (
            *map(self.constant, drawn),
            self.constant(self.rng.normal(0, 0.2, (ways, 2 * gates))),
        )
        direction = "bidirectional" if ways == 2 else "forward"
        return self.several(op, 2, x, *operands, hidden_size=hidden, direction=direction, **other)

    def reversed_rows(self, x: str) -> str:
        """Vectors from the last to the first."""
        bounds = (self.integers(n) for n in (-1, -(1 << 31), 0, -1))
        return self.node("Slice", x, *bounds)

    # Normalizations -----------------------------------------------------------------------------

    def layer_norm(self, x: str, size: int) -> str:
        """A normalization in one operator."""
        return self.node("LayerNormalization", x, *self.terms(size), axis=-1, epsilon=1e-5)

    def layer_norm_in_pieces(self, x: str, size: int) -> str:
        """A normalization as PyTorch exports it before opset 17."""
        gamma, beta = self.terms(size)
        above = self.node("Sub", x, self.reduce("ReduceMean", x))
        square = self.reduce("ReduceMean", self.number("Pow", above, 2.0))
        root = self.node("Sqrt", self.number("Add", square, 1e-5))
        scaled = self.node("Mul", self.node("Div", above, root), gamma)
        return self.node("Add", scaled, beta)

    def layer_norm_of_keras(self, x: str, size: int) -> str:
        """A normalization as tf2onnx writes it: x * a + (beta - mean * a)."""
        gamma, beta = self.terms(size)
        mean = self.reduce("ReduceMean", x)
        above = self.node("Sub", x, mean)
        square = self.reduce("ReduceMean", self.node("Mul", above, above))
        root = self.node("Reciprocal", self.node("Sqrt", self.number("Add", square, 1e-3)))
        factor = self.node("Mul", root, gamma)
        offset = self.node("Sub", beta, self.node("Mul", mean, factor))
        return self.node("Add", self.node("Mul", x, factor), offset)

    def rms_norm(self, x: str, size: int, *, reciprocal: bool = True) -> str:
        """A normalization by the root of the mean square, in pieces."""
        gamma, _ = self.terms(size)
        square = self.reduce("ReduceMean", self.number("Pow", x, 2.0))
        root = self.node("Sqrt", self.number("Add", square, 1e-6))
        if reciprocal:
            scaled = self.node("Mul", x, self.node("Reciprocal", root))
        else:
            scaled = self.node("Div", x, root)
        return self.node("Mul", gamma, scaled)

    # Functions ----------------------------------------------------------------------------------

    def gelu_by_tanh(self, x: str) -> str:
        """GELU's approximation."""
        cube = self.number("Mul", self.number("Pow", x, 3.0), 0.044715)
        inner = self.number("Mul", self.node("Add", x, cube), math.sqrt(2 / math.pi))
        more = self.number("Add", self.node("Tanh", inner), 1.0)
        return self.node("Mul", self.number("Mul", x, 0.5), more)

    def gelu_by_erf(self, x: str) -> str:
        """GELU, its factor first."""
        ratio = self.number("Mul", x, 1 / math.sqrt(2))
        more = self.number("Add", self.node("Erf", ratio), 1.0)
        return self.number("Mul", self.node("Mul", x, more), 0.5)

    def quick_gelu(self, x: str) -> str:
        """``x * sigmoid(1.702 x)``."""
        return self.node("Mul", x, self.node("Sigmoid", self.number("Mul", x, 1.702)))

    def softmax_in_pieces(self, x: str) -> str:
        """A softmax of five operators."""
        power = self.node("Exp", self.node("Sub", x, self.reduce("ReduceMax", x)))
        return self.node("Div", power, self.reduce("ReduceSum", power))

    # Attention ----------------------------------------------------------------------------------

    def attend(
        self,
        q: str,
        k: str,
        v: str,
        *,
        mask: Callable[[str], str] = lambda x: x,
        softmax: Callable[[str], str] | None = None,
    ) -> str:
        """Attention of heads [N, H, T, D], whose keys are turned: [N, H, D, T]."""
        scores = mask(self.node("MatMul", q, k))
        shares = softmax(scores) if softmax else self.node("Softmax", scores, axis=-1)
        return self.node("MatMul", shares, v)

    def split_heads(self, x: str, batch: int, length: int, heads: int, size: int) -> str:
        """Heads [N, H, T, D]."""
        return self.transpose(self.reshape(x, batch, length, heads, size), 0, 2, 1, 3)

    def join_heads(self, x: str, batch: int, length: int, features: int) -> str:
        """Vectors [N, T, C] of heads."""
        return self.reshape(self.transpose(x, 0, 2, 1, 3), batch, length, features)

    def added_mask(self, length: int) -> Callable[[str], str]:
        """A causal mask that is added."""
        mask = self.constant(np.triu(np.full((1, 1, length, length), MASKED), 1))
        return lambda x: self.node("Add", x, mask)

    def chosen_mask(self, length: int) -> Callable[[str], str]:
        """A causal mask by a choice."""
        kept = self.constant(np.tril(np.ones((1, 1, length, length), bool)), bool)
        return lambda x: self.node("Where", kept, x, self.constant(np.float32(MASKED)))

    def ends(self, x: str, features: int, classes: int = 10) -> onnx.ModelProto:
        """The mean of all vectors, and a dense layer."""
        return self.model(
            self.linear(self.squeeze(self.reduce("ReduceMean", x, 1), 1), features, classes)
        )


# Transformers ------------------------------------------------------------------------------------


def encoder() -> onnx.ModelProto:
    """Normalized last, 50 vectors, heads of 24, GELU by erf, scores divided after the product."""
    length, heads, size = 50, 2, 24
    features = heads * size
    b = Sequences("encoder", 21, (1, length, features), 17)
    x = b.layer_norm("input", features)
    for _ in range(2):
        q, k, v = (
            b.split_heads(b.linear(x, features, features), 1, length, heads, size) for _ in "qkv"
        )
        y = b.attend(
            q, b.transpose(k, 0, 1, 3, 2), v, mask=lambda s: b.number("Div", s, math.sqrt(size))
        )
        y = b.linear(b.join_heads(y, 1, length, features), features, features, 0.5)
        x = b.layer_norm(b.node("Add", x, y), features)
        y = b.linear(b.gelu_by_erf(b.linear(x, features, 96)), 96, features, 0.5)
        x = b.layer_norm(b.node("Add", x, y), features)
    return b.model(x)


def early() -> onnx.ModelProto:
    """Normalized first and in pieces (opset 13), two texts of 33 words, queries scaled before the
    product, GELU by tanh."""
    batch, length, heads, size = 2, 33, 4, 16
    features = heads * size
    b = Sequences("early", 22, (batch, length, features), 13)
    x = "input"
    for _ in range(2):
        y = b.layer_norm_in_pieces(x, features)
        q = b.number("Mul", b.linear(y, features, features), size**-0.5)
        k, v = (b.linear(y, features, features) for _ in "kv")
        q, v = (b.split_heads(each, batch, length, heads, size) for each in (q, v))
        k = b.transpose(b.reshape(k, batch, length, heads, size), 0, 2, 3, 1)
        y = b.join_heads(b.attend(q, k, v), batch, length, features)
        x = b.node("Add", x, b.linear(y, features, features, 0.5))
        y = b.gelu_by_tanh(b.linear(b.layer_norm_in_pieces(x, features), features, 128))
        x = b.node("Add", x, b.linear(y, 128, features, 0.5))
    return b.model(b.layer_norm_in_pieces(x, features))


def grouped() -> onnx.ModelProto:
    """A decoder as Llama's (opset 18): RMS normalization, two heads of queries for one of keys, a
    mask that is chosen, SwiGLU."""
    length, heads, groups, size = 40, 4, 2, 16
    features = heads * size
    b = Sequences("grouped", 23, (1, length, features), 18)
    x = "input"
    for number in range(2):
        y = b.rms_norm(x, features, reciprocal=bool(number))
        q = b.split_heads(b.linear(y, features, features), 1, length, heads, size)
        many = []
        for _ in "kv":
            part = b.split_heads(b.linear(y, features, groups * size), 1, length, groups, size)
            wide = b.node("Unsqueeze", part, b.integers(2))
            wide = b.node("Expand", wide, b.integers(1, groups, heads // groups, length, size))
            many.append(b.reshape(wide, 1, heads, length, size))
        k, v = many
        mask = b.chosen_mask(length)
        y = b.attend(
            q,
            b.transpose(k, 0, 1, 3, 2),
            v,
            mask=lambda s, m=mask: m(b.number("Mul", s, size**-0.5)),
        )
        x = b.node(
            "Add", x, b.linear(b.join_heads(y, 1, length, features), features, features, 0.5)
        )
        y = b.rms_norm(x, features)
        gate = b.silu(b.linear(y, features, 112))
        x = b.node(
            "Add", x, b.linear(b.node("Mul", gate, b.linear(y, features, 112)), 112, features)
        )
    return b.model(b.linear(b.rms_norm(x, features), features, 80))


def joint() -> onnx.ModelProto:
    """One dense layer for queries, keys and values, parted by Split; a softmax of five operators, a
    mask that is added, quick GELU."""
    length, heads, size = 29, 3, 16
    features = heads * size
    b = Sequences("joint", 24, (1, length, features), 17)
    x = "input"
    for _ in range(2):
        y = b.layer_norm(x, features)
        parts = b.several(
            "Split", 3, b.linear(y, features, 3 * features), b.integers(*[features] * 3), axis=-1
        )
        q, k, v = (b.split_heads(part, 1, length, heads, size) for part in parts)
        mask = b.added_mask(length)
        scaled = b.number("Mul", b.transpose(k, 0, 1, 3, 2), size**-0.5)
        y = b.attend(q, scaled, v, mask=mask, softmax=b.softmax_in_pieces)
        x = b.node(
            "Add", x, b.linear(b.join_heads(y, 1, length, features), features, features, 0.5)
        )
        y = b.quick_gelu(b.linear(b.layer_norm(x, features), features, 96))
        x = b.node("Add", x, b.linear(y, 96, features, 0.5))
    return b.ends(b.layer_norm(x, features), features)


def stacked() -> onnx.ModelProto:
    """One dense layer whose result is turned to [3, N, H, T, D] and taken apart (opset 19)."""
    batch, length, heads, size = 1, 65, 2, 32
    features = heads * size
    b = Sequences("stacked", 25, (batch, length, features), 19)
    x = "input"
    for number in range(2):
        y = b.reshape(
            b.linear(b.layer_norm(x, features), features, 3 * features), 1, length, 3, heads, size
        )
        y = b.transpose(y, 2, 0, 3, 1, 4)
        if number:
            q, k, v = (b.squeeze(b.slice(y, n, n + 1, 0), 0) for n in range(3))
        else:
            q, k, v = (b.node("Gather", y, b.constant(n, np.int64), axis=0) for n in range(3))
        q = b.number("Mul", q, size**-0.5)
        y = b.join_heads(b.attend(q, b.transpose(k, 0, 1, 3, 2), v), 1, length, features)
        x = b.node("Add", x, b.linear(y, features, features, 0.5))
        y = b.gelu_by_erf(b.linear(b.layer_norm(x, features), features, 128))
        x = b.node("Add", x, b.linear(y, 128, features, 0.5))
    return b.model(
        b.linear(b.squeeze(b.slice(b.layer_norm(x, features), 0, 1, 1), 1), features, 10)
    )


def sums() -> onnx.ModelProto:
    """Attention by Einsum, GELU as one operator (opset 20), a pair of sequences."""
    batch, length, heads, size = 2, 24, 2, 16
    features = heads * size
    b = Sequences("sums", 26, (batch, length, features), 20)
    x = "input"
    for approximate in ("none", "tanh"):
        y = b.layer_norm(x, features)
        q, k, v = (
            b.reshape(b.linear(y, features, features), batch, length, heads, size) for _ in "qkv"
        )
        scores = b.node("Einsum", q, k, equation="bihd,bjhd->bhij")
        shares = b.node("Softmax", b.number("Mul", scores, size**-0.5), axis=-1)
        y = b.node("Einsum", shares, v, equation="bhij,bjhd->bihd")
        y = b.reshape(y, batch, length, features)
        x = b.node("Add", x, b.linear(y, features, features, 0.5))
        y = b.node(
            "Gelu", b.linear(b.layer_norm(x, features), features, 64), approximate=approximate
        )
        x = b.node("Add", x, b.linear(y, 64, features, 0.5))
    return b.model(x)


def crossed() -> onnx.ModelProto:
    """Queries that are constants attend to a sequence (a decoder of detections), normalized last as
    tf2onnx writes it."""
    length, queries, heads, size = 60, 10, 2, 16
    features = heads * size
    b = Sequences("crossed", 27, (1, length, features), 15)
    memory = b.layer_norm_of_keras("input", features)
    x = b.constant(b.rng.standard_normal((1, queries, features)))
    for number in range(2):
        if number:
            q, k, v = (
                b.split_heads(b.linear(x, features, features), 1, queries, heads, size)
                for _ in "qkv"
            )
            y = b.attend(b.number("Mul", q, 0.25), b.transpose(k, 0, 1, 3, 2), v)
            y = b.linear(b.join_heads(y, 1, queries, features), features, features, 0.5)
            x = b.layer_norm_of_keras(b.node("Add", x, y), features)
        q = b.split_heads(b.linear(x, features, features), 1, queries, heads, size)
        k, v = (
            b.split_heads(b.linear(memory, features, features), 1, length, heads, size)
            for _ in "kv"
        )
        y = b.attend(b.number("Mul", q, 0.25), b.transpose(k, 0, 1, 3, 2), v)
        y = b.linear(b.join_heads(y, 1, queries, features), features, features, 0.5)
        x = b.layer_norm_of_keras(b.node("Add", x, y), features)
        y = b.linear(b.relu(b.linear(x, features, 64)), 64, features, 0.5)
        x = b.layer_norm_of_keras(b.node("Add", x, y), features)
    return b.model(b.linear(x, features, 12), b.node("Sigmoid", b.linear(x, features, 4)))


def scaled() -> onnx.ModelProto:
    """ConvNeXt: depthwise 7x7, a normalization of channels last, layer scale."""
    b = Sequences("scaled", 28, (1, 3, 32, 32), 17)
    weight = b.constant(b.rng.standard_normal((32, 3, 4, 4)) / 7)
    x = b.node(
        "Conv", "input", weight, b.constant(b._bias(32)), strides=[4, 4], kernel_shape=[4, 4]
    )
    b.channels[x] = 32
    for _ in range(2):
        y = b.transpose(b.depthwise(x, 7), 0, 2, 3, 1)
        y = b.gelu_by_erf(b.linear(b.layer_norm(y, 32), 32, 128))
        y = b.node("Mul", b.linear(y, 128, 32), b.constant(b.rng.uniform(0.3, 0.8, 32)))
        x = b.node("Add", x, b.transpose(y, 0, 3, 1, 2))
        b.channels[x] = 32
    x = b.squeeze(b.squeeze(b.node("GlobalAveragePool", x), 3), 2)
    return b.model(b.linear(b.layer_norm(x, 32), 32, 10))


def windows() -> onnx.ModelProto:
    """Swin: attention in windows of an image, shifted by Slice and Concat, with a bias."""
    side, window, heads, size = 8, 4, 2, 16
    features, area, count = heads * size, window * window, (side // window) ** 2
    b = Sequences("windows", 29, (1, 3, 4 * side, 4 * side), 17)
    weight = b.constant(b.rng.standard_normal((features, 3, 4, 4)) / 7)
    x = b.node(
        "Conv", "input", weight, b.constant(b._bias(features)), strides=[4, 4], kernel_shape=[4, 4]
    )
    x = b.transpose(b.reshape(x, 1, features, side * side), 0, 2, 1)

    def rolled(x: str, first: int) -> str:
        for axis in (1, 2):
            x = b.concat(b.slice(x, first, side, axis), b.slice(x, 0, first, axis), axis=axis)
        return x

    for shift in (0, window // 2):
        y = b.reshape(b.layer_norm(x, features), 1, side, side, features)
        y = rolled(y, shift) if shift else y
        n = side // window
        y = b.transpose(b.reshape(y, 1, n, window, n, window, features), 0, 1, 3, 2, 4, 5)
        y = b.reshape(y, count, area, features)
        y = b.reshape(b.linear(y, features, 3 * features), count, area, 3, heads, size)
        y = b.transpose(y, 2, 0, 3, 1, 4)
        q, k, v = (b.node("Gather", y, b.constant(i, np.int64), axis=0) for i in range(3))
        bias = b.constant(b.rng.normal(0, 0.5, (1, heads, area, area)))
        scores = b.node("MatMul", b.number("Mul", q, size**-0.5), b.transpose(k, 0, 1, 3, 2))
        shares = b.node("Softmax", b.node("Add", scores, bias), axis=-1)
        y = b.join_heads(b.node("MatMul", shares, v), count, area, features)
        y = b.linear(y, features, features, 0.5)
        y = b.transpose(b.reshape(y, 1, n, n, window, window, features), 0, 1, 3, 2, 4, 5)
        y = b.reshape(y, 1, side, side, features)
        y = rolled(y, side - shift) if shift else y
        x = b.node("Add", x, b.reshape(y, 1, side * side, features))
        y = b.gelu_by_erf(b.linear(b.layer_norm(x, features), features, 64))
        x = b.node("Add", x, b.linear(y, 64, features, 0.5))
    return b.ends(b.layer_norm(x, features), features)


def mixer() -> onnx.ModelProto:
    """MLP-Mixer: dense layers over vectors and over features."""
    length, features = 36, 48
    b = Sequences("mixer", 30, (1, length, features), 17)
    x = "input"
    for _ in range(2):
        y = b.transpose(b.layer_norm(x, features), 0, 2, 1)
        y = b.linear(b.gelu_by_erf(b.linear(y, length, 64)), 64, length, 0.5)
        x = b.node("Add", x, b.transpose(y, 0, 2, 1))
        y = b.linear(
            b.gelu_by_erf(b.linear(b.layer_norm(x, features), features, 96)), 96, features, 0.5
        )
        x = b.node("Add", x, y)
    return b.ends(b.layer_norm(x, features), features)


# Recurrent cells ---------------------------------------------------------------------------------


def long_memory() -> onnx.ModelProto:
    """An LSTM written out: data and state side by side, one dense layer, gates by Split."""
    steps, inputs, hidden = 6, 16, 32
    b = Sequences("long_memory", 31, (1, steps, inputs), 17)
    weight = b.constant(
        b.rng.standard_normal((inputs + hidden, 4 * hidden)) / math.sqrt(inputs + hidden)
    )
    bias = b.constant(b.rng.normal(0, 0.3, 4 * hidden))
    state = cell = b.constant(np.zeros((1, hidden)))
    rows = []
    for step in range(steps):
        data = b.squeeze(b.slice("input", step, step + 1, 1), 1)
        both = b.concat(data, state, axis=-1)
        gates = b.node("Add", b.node("MatMul", both, weight), bias)
        take, forget, new, shown = b.several("Split", 4, gates, b.integers(*[hidden] * 4), axis=1)
        kept = b.node("Mul", b.node("Sigmoid", forget), cell)
        cell = b.node("Add", kept, b.node("Mul", b.node("Sigmoid", take), b.node("Tanh", new)))
        state = b.node("Mul", b.node("Sigmoid", shown), b.node("Tanh", cell))
        rows.append(b.node("Unsqueeze", state, b.integers(1)))
    return b.model(b.linear(b.concat(*rows, axis=1), hidden, 10))


def reset_gates() -> onnx.ModelProto:
    """A GRU written out: two dense layers at a step, gates by Slice."""
    steps, inputs, hidden = 6, 16, 24
    b = Sequences("reset_gates", 32, (1, steps, inputs), 16)
    state = b.constant(np.zeros((1, hidden)))
    of_data = b.constant(b.rng.standard_normal((inputs, 3 * hidden)) / math.sqrt(inputs))
    of_state = b.constant(b.rng.standard_normal((hidden, 3 * hidden)) / math.sqrt(hidden))
    biases = [b.constant(b.rng.normal(0, 0.3, 3 * hidden)) for _ in range(2)]
    for step in range(steps):
        data = b.node("Gather", "input", b.constant(step, np.int64), axis=1)
        x = b.node("Add", b.node("MatMul", data, of_data), biases[0])
        h = b.node("Add", b.node("MatMul", state, of_state), biases[1])
        xs, hs = ([b.slice(y, n * hidden, (n + 1) * hidden, 1) for n in range(3)] for y in (x, h))
        reset, update = (b.node("Sigmoid", b.node("Add", xs[n], hs[n])) for n in range(2))
        new = b.node("Tanh", b.node("Add", xs[2], b.node("Mul", reset, hs[2])))
        rest = b.node("Mul", b.node("Sub", b.constant(1.0), update), new)
        state = b.node("Add", rest, b.node("Mul", update, state))
    return b.model(b.linear(state, hidden, 10))


def of_signal() -> onnx.ModelProto:
    """Two convolutions of a signal and two LSTMs behind them, as a seizure detector has."""
    b, hidden = Sequences("of_signal", 33, (1, 18, 96), 17), 20
    x = b.pool("MaxPool", b.relu(b.conv("input", 32, 5)), 2, 2, pad=0)
    x = b.transpose(b.relu(b.conv(x, 24, 3)), 2, 0, 1)
    x = b.squeeze(b.layer("LSTM", x, 24, hidden)[0], 1)
    last = b.squeeze(b.layer("LSTM", x, hidden, hidden)[1], 0)
    return b.model(b.node("Sigmoid", b.linear(last, hidden, 1)))


def both_ways() -> onnx.ModelProto:
    """A bidirectional LSTM and a bidirectional GRU over vectors, whose states lie side by side."""
    steps, hidden = 24, 32
    b = Sequences("both_ways", 34, (1, steps, 16), 17)
    x = b.linear(b.transpose("input", 1, 0, 2), 16, 32)
    for op, inputs in (("LSTM", 32), ("GRU", 2 * hidden)):
        y = b.layer(op, x, inputs, hidden, ways=2)[0]
        x = b.reshape(b.transpose(y, 0, 2, 1, 3), steps, 1, 2 * hidden)
    return b.model(b.linear(b.transpose(x, 1, 0, 2), 2 * hidden, 10))


def reversed_by_slice() -> onnx.ModelProto:
    """Two directions as two LSTMs, of which the second reads and gives sequences turned by Slice,
    with functions by name and states that are inputs."""
    steps, hidden = 20, 25
    b = Sequences("reversed_by_slice", 35, (steps, 24), 17)
    x = b.linear("input", 24, 24)
    ways = []
    for backwards in (False, True):
        data = b.reversed_rows(x) if backwards else x
        data = b.node("Unsqueeze", data, b.integers(1))
        y = b.layer("LSTM", data, 24, hidden, activations=["Sigmoid", "Tanh", "Tanh"])[0]
        y = b.node("Squeeze", y, b.integers(1, 2))
        ways.append(b.reversed_rows(y) if backwards else y)
    return b.model(b.node("Sigmoid", b.linear(b.concat(*ways), 2 * hidden, 2)))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f
    for f in (
        encoder, early, grouped, joint, stacked, sums, crossed, scaled, windows, mixer,
        long_memory, reset_gates, of_signal, both_ways, reversed_by_slice,
    )
}  # fmt: skip
