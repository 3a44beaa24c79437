"""Recurrent networks in float, their cells written out step by step, with made-up weights.

Weights are normal with a spread of 1 / √inputs, so that states keep their range over all steps.
A step is what PyTorch exports of a cell that is called in a loop: linear layers of the data and of
the state, their sum split into gates, products of gates and states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import helper

from vdla.compiler.graph.types import Array
from vdla.compiler.models.transformers import SequenceBuilder

SEED = 19971115


@dataclass(frozen=True)
class Sizes:
    """Sizes of a recurrent network: steps of a sequence, features of its vectors and of the state
    of each layer.
    """

    steps: int
    inputs: int
    hidden: int
    layers: int = 1


@dataclass(frozen=True)
class LanguageSizes:
    """Sizes of a language model: steps, layers, features of a state and words."""

    steps: int
    layers: int
    hidden: int
    words: int


LANGUAGE_MODEL = LanguageSizes(steps=35, layers=2, hidden=650, words=10_000)
State = tuple[str, ...]
Step = Callable[[str, str, State], State]


class RecurrentBuilder(SequenceBuilder):
    """Adds cells of vectors [N, C], which share their weights over all steps."""

    def shared_linear(self, name: str, layer: str, data: str, features: int) -> str:
        """A ``Gemm`` whose weights are those of a layer; made at its first use."""
        inputs, weight = self.values[data].shape[-1], f"{layer}.weight"
        if weight not in self.values:
            self._draw(layer, inputs, features)
        value = self.values[data] @ self.values[weight] + self.values[f"{layer}.bias"]
        return self.emit("Gemm", name, [data, weight, f"{layer}.bias"], value)

    def _draw(self, layer: str, inputs: int, features: int) -> None:
        weight = self.rng.standard_normal((inputs, features)) / np.sqrt(inputs)
        bias = 0.1 * self.rng.standard_normal(features)
        for part, array in (("weight", weight), ("bias", bias)):
            self.constant(f"{layer}.{part}", array.astype(np.float32))

    def split(self, name: str, data: str, count: int) -> list[str]:
        """A ``Split`` of features into as many equal parts."""
        values = np.split(self.values[data], count, axis=-1)
        size = values[0].shape[-1]
        sizes = self.constant(f"{name}.sizes", np.full(count, size, np.int64))
        names = [f"{name}.{number}" for number in range(count)]
        self.nodes.append(helper.make_node("Split", [data, sizes], names, name, axis=-1))
        self.values.update(zip(names, values, strict=True))
        return names

    def sigmoid(self, name: str, data: str) -> str:
        """A ``Sigmoid``."""
        return self.emit("Sigmoid", name, [data], 1 / (1 + np.exp(-self.values[data])))

    def mul(self, name: str, a: str, b: str) -> str:
        """A ``Mul`` of two tensors."""
        return self.emit("Mul", name, [a, b], self.values[a] * self.values[b])

    def rest(self, name: str, data: str) -> str:
        """One less some data: a ``Sub``."""
        one = self.constant(f"{name}.one", np.array(1, np.float32))
        return self.emit("Sub", name, [one, data], 1 - self.values[data])

    def lstm_step(self, name: str, data: str, state: State) -> State:
        """The state and the cell after one more vector; gates in ONNX's order: input, output,
        forget, cell."""
        layer, (hidden, cell) = name.split("/")[0], state
        width = 4 * self.values[hidden].shape[-1]
        of_data = self.shared_linear(f"{name}.x", f"{layer}.W", data, width)
        of_state = self.shared_linear(f"{name}.h", f"{layer}.R", hidden, width)
        take, show, keep, new = self.split(
            f"{name}.gates", self.add(f"{name}.sum", of_data, of_state), 4
        )
        new = self.emit("Tanh", f"{name}.new", [new], np.tanh(self.values[new]))
        take, show, keep = (self.sigmoid(f"{gate}.gate", gate) for gate in (take, show, keep))
        kept, taken = self.mul(f"{name}.kept", keep, cell), self.mul(f"{name}.taken", take, new)
        cell = self.add(f"{name}.cell", kept, taken)
        shown = self.emit("Tanh", f"{name}.shown", [cell], np.tanh(self.values[cell]))
        return self.mul(f"{name}.state", show, shown), cell

    def gru_step(self, name: str, data: str, state: State) -> State:
        """The state after one more vector; the reset gate comes behind the state's weights, as
        PyTorch has it. Gates in ONNX's order: update, reset, new."""
        layer, (hidden,) = name.split("/")[0], state
        width = 3 * self.values[hidden].shape[-1]
        of_data = self.shared_linear(f"{name}.x", f"{layer}.W", data, width)
        of_state = self.shared_linear(f"{name}.h", f"{layer}.R", hidden, width)
        parts = [self.split(f"{each}.gates", each, 3) for each in (of_data, of_state)]
        sums = [self.add(f"{a}.sum", a, b) for a, b in zip(*parts, strict=True)][:2]
        update, reset = (self.sigmoid(f"{each}.gate", each) for each in sums)
        inner = self.mul(f"{name}.inner", reset, parts[1][2])
        total = self.add(f"{name}.total", parts[0][2], inner)
        new = self.emit("Tanh", f"{name}.new", [total], np.tanh(self.values[total]))
        taken = self.mul(f"{name}.taken", self.rest(f"{name}.rest", update), new)
        kept = self.mul(f"{name}.kept", update, hidden)
        return (self.add(f"{name}.state", taken, kept),)

    def layer(self, name: str, steps: Sequence[str], step: Step, state: State) -> list[str]:
        """The states after each vector of a sequence."""
        states = []
        for number, data in enumerate(steps):
            state = step(f"{name}/{number}", data, state)
            states.append(state[0])
        return states

    def vectors(self, data: str) -> list[str]:
        """The vectors of a sequence [N, T, C], each [N, C]: a ``Gather`` for each."""
        result = []
        for number in range(self.values[data].shape[1]):
            at = self.constant(f"{data}.at{number}", np.array(number, np.int64))
            value = self.values[data][:, number]
            result.append(self.emit("Gather", f"{data}.{number}", [data, at], value, axis=1))
        return result

    def sequence(self, name: str, vectors: Sequence[str]) -> str:
        """Vectors [N, C] as a sequence [N, T, C]."""
        axes = self.constant(f"{name}.axes", np.array([1], np.int64))
        rows = [
            self.emit("Unsqueeze", f"{each}.row", [each, axes], self.values[each][:, None])
            for each in vectors
        ]
        return self.emit("Concat", name, rows, self.values_of(rows), axis=1)

    def values_of(self, rows: Sequence[str]) -> Array:
        """Tensors one behind another along axis 1."""
        return np.concatenate([self.values[row] for row in rows], axis=1)


def cells(kind: str, sizes: Sizes, samples: int = 1) -> RecurrentBuilder:
    """Layers of LSTM or GRU cells over a sequence [1, T, C], ``kind`` "lstm" or "gru": the states
    of the last layer after every step."""
    rng = np.random.default_rng(SEED)
    data = rng.standard_normal((samples, sizes.steps, sizes.inputs)).astype(np.float32)
    b = RecurrentBuilder(kind, SEED, data)
    step, states = (b.lstm_step, 2) if kind == "lstm" else (b.gru_step, 1)
    vectors = b.vectors("input")
    for number in range(sizes.layers):
        nothing = np.zeros((1, sizes.hidden), np.float32)
        first = tuple(b.constant(f"layer{number}.state{n}", nothing) for n in range(states))
        vectors = b.layer(f"layer{number}", vectors, step, first)
    b.sequence("states", vectors)
    return b


# Recurrent operators ----------------------------------------------------------------------------


class OperatorBuilder(RecurrentBuilder):
    """Adds ONNX's LSTM and GRU to sequences [T, N, C]."""

    def recurrent(self, op: str, name: str, data: str, hidden: int, **attributes: int) -> str:
        """The states [T, N, H] after every step of a layer ``op``."""
        steps, batch, inputs = self.values[data].shape
        width = {"LSTM": 4, "GRU": 3}[op] * hidden
        shapes = {"W": (1, width, inputs), "R": (1, width, hidden), "B": (1, 2 * width)}
        arrays = {
            part: self.rng.standard_normal(shape) * (0.1 if part == "B" else shape[-1] ** -0.5)
            for part, shape in shapes.items()
        }
        weights = [
            self.constant(f"{name}.{part}", array.astype(np.float32))
            for part, array in arrays.items()
        ]
        whole, read = f"{name}.all", [data, *weights]
        self.nodes.append(
            helper.make_node(op, read, [whole], whole, hidden_size=hidden, **attributes)
        )
        axes = self.constant(f"{name}.axes", np.array([1], np.int64))
        value = np.zeros((steps, batch, hidden), np.float32)
        return self.emit("Squeeze", name, [whole, axes], value)


def language_model(sizes: LanguageSizes = LANGUAGE_MODEL) -> OperatorBuilder:
    """A language model (Zaremba et al., 2014): words [1, T] looked up, layers of LSTM, and logits
    [1, T, words]; weights are made up."""
    rng = np.random.default_rng(SEED)
    b = OperatorBuilder("lstm-lm", SEED, rng.integers(0, sizes.words, (1, sizes.steps)))
    table = 0.7 * rng.standard_normal((sizes.words, sizes.hidden)).astype(np.float32)
    words = b.constant("words", table)
    x = b.emit("Gather", "looked_up", [words, "input"], table[b.values["input"]])
    x = b.transpose("steps", x, (1, 0, 2))
    for number in range(sizes.layers):
        x = b.recurrent("LSTM", f"layer{number}", x, sizes.hidden)
    b.linear("logits", b.transpose("rows", x, (1, 0, 2)), sizes.words)
    return b


def texts(sizes: LanguageSizes = LANGUAGE_MODEL, count: int = 4) -> Array:
    """Words [count, T] to calibrate a language model on."""
    return np.random.default_rng(SEED + 1).integers(0, sizes.words, (count, sizes.steps))
