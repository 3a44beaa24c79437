"""LSTM and GRU in integers, where their data and results are quantized.

Data and states are int8 and weights int8, rounded to the nearest of each row where a file has
floats: onnxruntime's quantizer leaves them so; sums, gates and cells are int32 in fixed point
(``graph/ops/recurrent.py``). The data's products of all steps are one product before the first
step. Against the float operator of the same data and weights, a gate's error is at most 1/2000 for
its function and its sums' factors; the state is rounded to a step of its own scale after each step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import onnx

from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.numbers import quantize, rows_of_int8
from vdla.compiler.graph.ops.fixed_point import HIGH, LOW, ONE, STEP
from vdla.compiler.graph.ops.recurrent import (
    QGates,
    QGruReset,
    QGruState,
    QLstmCell,
    QLstmState,
    QNarrow,
    factors_of,
)
from vdla.compiler.graph.types import Array, Quant, Requant

MOVES = (
    "Concat", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Slice", "Gather", "Split",
)  # fmt: skip
RECURRENT = ("LSTM", "GRU")
BYTES = ("int8", "uint8")
BYTE_STEPS = 255  # from the least value to the greatest
LARGEST_SUM = 1 << 16  # in reals; functions are as good as constant from 16 on
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
BETWEEN_LAYERS = Quant(1 / 128, 0)  # of a state that only another layer reads
FUNCTIONS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}
PLAIN = {
    "direction", "hidden_size", "linear_before_reset", "layout", "input_forget", "activations",
}  # fmt: skip

Side = tuple[list[str], str, str]  # the states of all steps, the last one, the last cell; in reals


class Part(NamedTuple):
    """Weights [G, H, I] of some gates with a scale for each row, and biases [G, H] in reals."""

    weight: Array
    scale: Array
    bias: Array

    def gates(self, first: int, last: int) -> Part:
        """Some of the gates."""
        return Part(*(each[first:last] for each in self))


@dataclass
class Steps:
    """The steps of a layer in integers.

    ``of_data`` and ``of_state`` are the two matrices of weights, ``rows`` the data [T * B, I] as
    int8, ``quants`` are the data's scale and that of the state.
    """

    make: Maker
    rows: str
    quants: tuple[Quant, Quant]
    of_data: Part
    of_state: Part
    batch: int
    reset_after: bool = False
    _held: dict[tuple[int, int, bool], QGates] = field(default_factory=dict)

    def all_steps(self, first: int, last: int) -> str:
        """Sums that the data add to some gates, at all steps."""
        part = self.of_data.gates(first, last)
        return self._product(self.rows, self._gates(part, self.quants[0]), None)

    def step(self, rows: str, number: int) -> str:
        """The rows of one step."""
        count = self.make.shape(rows)[0]
        size = count * self.batch // self.make.shape(self.rows)[0]
        return self.make.along(rows, 0, range(number * size, (number + 1) * size))

    def states(self, state: str, first: int, last: int, addend: str | None) -> str:
        """A state times its weights of some gates, and what the data add."""
        key = first, last, addend is not None
        if key not in self._held:
            self._held[key] = self._gates(self.of_state.gates(first, last), self.quants[1])
        return self._product(state, self._held[key], addend)

    def _gates(self, part: Part, quant: Quant) -> QGates:
        """The constants of a product of int8 data, in a node without names."""
        unit = part.scale.astype(np.float64) * quant.scale
        bias = np.rint(part.bias / unit).astype(np.int64)
        weight = part.weight.astype(np.int64)
        most = max(quant.zero_point + 128, 127 - quant.zero_point)
        before, after, factor = factors_of(unit, np.abs(weight).sum(2) * most + np.abs(bias))
        bias += ((1 << before) >> 1) - quant.zero_point * weight.sum(2)
        return QGates(
            name="",
            output="",
            data="",
            weight=self.make.constant(part.weight, "int8"),
            bias=self.make.constant(bias, "int32"),
            factor=self.make.constant(factor, "int32"),
            before=before,
            after=after,
        )

    def _product(self, data: str, gates: QGates, addend: str | None) -> str:
        fields = {**gates.values(), **self.make.names(), "data": data, "addend": addend}
        return self.make.add(QGates(**fields), "int32")

    def lstm(self, gates: str, state: str, cell: str) -> tuple[str, str]:
        """The state and the cell after a step, to which the data add ``gates``."""
        make, quant = self.make, self.quants[1]
        total = self.states(state, 0, 4, gates)
        cell = make.add(QLstmCell(**make.names(), gates=total, cell=cell), "int32")
        scale = _ratio(ONE**-2, quant)
        shown = QLstmState(
            **make.names(), gates=total, cell=cell, requant=Requant((scale,), quant.zero_point)
        )
        return make.add(shown, "int8"), cell

    def gru(self, gates: str, fresh: str, state: str, wide: str) -> tuple[str, str]:
        """The state after a step as int8 and in parts of ``ONE``; the data add ``gates`` to update
        and reset, ``fresh`` to the new state."""
        make, quant, inner = self.make, self.quants[1], None
        total = self.states(state, 0, 2, gates)
        if self.reset_after:
            inner = self.states(state, 2, 3, None)
        else:
            scale = _ratio(ONE**-2, quant)
            reset = QGruReset(
                **make.names(), gates=total, state=wide, requant=Requant((scale,), quant.zero_point)
            )
            fresh = self.states(make.add(reset, "int8"), 2, 3, fresh)
        node = QGruState(**make.names(), gates=total, fresh=fresh, state=wide, inner=inner)
        wide = make.add(node, "int32")
        scale = _ratio(1 / ONE, quant)
        narrow = QNarrow(**make.names(), data=wide, requant=Requant((scale,), quant.zero_point))
        return make.add(narrow, "int8"), wide


def _ratio(unit: float, quant: Quant) -> float:
    """A unit in steps of a scale, in float32."""
    return float(np.float32(unit) / np.float32(quant.scale))


def integer_layer(view: OnnxNode, make: Maker) -> list[Side]:
    """Adds a recurrent operator's steps in integers, and gives its directions' results.

    Nothing is added, and none given, where the operator isn't one that reads and gives quantized
    tensors, or has settings that only reals do.
    """
    ways = DIRECTIONS.get(view.text("direction", "forward"), ())
    quants = _quants(view) if _is_plain(view) else None
    if quants is None:
        return []
    layers = [_weights(view, number) for number in range(len(ways))]
    parts = [each for each in layers if each is not None and _fits(each, quants)]
    if len(parts) != len(ways):
        return []
    steps, batch, size = view.shape(0)
    after = bool(view.integer("linear_before_reset", 0))
    rows = _as_bytes(make, make.reshape(view.operand(0), (steps * batch, size)), quants[0])
    sides = []
    for number, backwards in enumerate(ways):
        layer = Steps(make, rows, quants, *_biased(parts[number], after), batch, after)
        sides.append(_run(view, layer, number, range(steps)[:: -1 if backwards else 1]))
    return sides


def _biased(parts: tuple[Part, Part], after: bool) -> tuple[Part, Part]:
    """The weights of the data and of the state, with all biases at the data's but one that a reset
    gate acts on, ``after`` the weights."""
    of_data, of_state = parts
    kept = np.zeros((len(of_data.bias), 1), bool)
    kept[2:] = after
    moved = np.where(kept, 0, of_state.bias)
    return (
        of_data._replace(bias=of_data.bias + moved),
        of_state._replace(bias=of_state.bias - moved),
    )


def _is_plain(view: OnnxNode) -> bool:
    """Whether an operator has all steps, and ONNX's own functions."""
    settings = view.attributes.keys() <= PLAIN and view.proto.op_type in RECURRENT
    if not settings or view.integer("layout", 0) or view.integer("input_forget", 0):
        return False
    given = [name.decode().lower() for name in view.attributes.get("activations", [])]
    ways = len(DIRECTIONS[view.text("direction", "forward")])
    if given and given != list(FUNCTIONS[view.proto.op_type]) * ways:
        return False
    lengths = view.optional(4)
    known = None if lengths is None else view.draft.known(lengths)
    whole = lengths is None or (known is not None and (known == view.shape(0)[0]).all())
    return bool(whole and view.optional(7) is None)


def _run(view: OnnxNode, layer: Steps, way: int, order: Sequence[int]) -> Side:
    """All steps of a direction in an order, and their results in reals."""
    make, quant = layer.make, layer.quants[1]
    shape = layer.batch, layer.of_state.weight.shape[1]
    lstm = view.proto.op_type == "LSTM"
    first = _initial(view, make, 5, way, shape)
    wide = _fixed(
        make, _initial(view, make, 6, way, shape) if lstm else first, STEP if lstm else ONE
    )
    state = _as_bytes(make, first, quant)
    gates = layer.all_steps(0, 4 if lstm else 2)
    fresh = "" if lstm else layer.all_steps(2, 3)
    states: dict[int, str] = {}
    for number in order:
        added = layer.step(gates, number)
        if lstm:
            state, wide = layer.lstm(added, state, wide)
        else:
            state, wide = layer.gru(added, layer.step(fresh, number), state, wide)
        states[number] = state
    real = {name: _real(make, name, quant) for name in states.values()}
    cell = _real(make, wide, Quant(1 / STEP, 0)) if lstm and view.wanted(2) else ""
    return [real[states[n]] for n in range(len(order))], real[state], cell


def _real(make: Maker, data: str, quant: Quant) -> str:
    """The real numbers that integers stand for."""
    scale, zero = (quant.scale,), (quant.zero_point,)
    node = ops.Dequantize(**make.names(), data=data, scale=scale, zero_point=zero)
    return make.add(node, "float32")


def _initial(view: OnnxNode, make: Maker, index: int, way: int, shape: tuple[int, int]) -> str:
    """A direction's state or cell before its first step in reals: given, or zeros."""
    name = view.optional(index)
    if name is None:
        return make.constant(np.zeros(shape), "float32")
    known = make.value(name)
    if known is None:
        return make.reshape(make.along(name, 0, [way]), shape)
    return make.constant(known[way].reshape(shape), "float32")


def _as_bytes(make: Maker, data: str, quant: Quant) -> str:
    """Real numbers as int8."""
    known = make.value(data)
    if known is not None:
        numbers = np.array(quant.scale), np.array(quant.zero_point)
        return make.constant(quantize(known, *numbers, "int8"), "int8")
    scale, zero = (quant.scale,), (quant.zero_point,)
    node = ops.Quantize(**make.names(), data=data, scale=scale, zero_point=zero)
    return make.add(node, "int8")


def _fixed(make: Maker, data: str, one: int) -> str:
    """Real numbers as int32 in parts of ``one``."""
    known = make.value(data)
    if known is not None:
        return make.constant(np.clip(np.rint(known * one), LOW, HIGH), "int32")
    total = make.unary("round", make.binary("mul", data, float(one)))
    limited = make.binary("min", make.binary("max", total, float(LOW)), float(HIGH))
    return make.cast(limited, "int32")


# What a file says of the numbers ----------------------------------------------------------------


def _weights(view: OnnxNode, way: int) -> tuple[Part, Part] | None:
    """A direction's matrices of weights with their biases; None where they aren't known, or where
    they are floats and stay so."""
    hidden = view.shape(2)[-1]
    bias = np.zeros(2 * view.shape(1)[1])
    if view.optional(3) is not None:
        known = view.draft.known(view.operand(3))
        if known is None:
            return None
        bias = known[way].astype(np.float64)
    parts = []
    for index, biases in zip((1, 2), np.split(bias, 2), strict=True):
        rows = _rows(view, index)
        if rows is None:
            return None
        weight, scale = (each[way].reshape(-1, hidden, *each.shape[2:]) for each in rows)
        parts.append(Part(weight, scale, biases.reshape(-1, hidden)))
    return parts[0], parts[1]


def _rows(view: OnnxNode, index: int) -> tuple[Array, Array] | None:
    """Weights [ways, rows, columns] as int8, and the scale of each row."""
    source = view.draft.dequantized(view.operand(index))
    if source is None:
        known = view.draft.constants.get(view.operand(index))
        if known is None or view.draft.floats or not np.isfinite(known).all():
            return None
        return rows_of_int8(known)
    whole = view.draft.constants[source.data]
    fits = whole.dtype == np.int8 and whole.shape == view.shape(index)
    if not fits or any(source.zero_point) or source.axis not in (None, 1):
        return None
    return whole, np.broadcast_to(np.array(source.scale), whole.shape[:2])


def _fits(parts: tuple[Part, Part], quants: tuple[Quant, Quant]) -> bool:
    """Whether no sum is larger than fixed point holds."""
    sums = (
        np.abs(part.weight.astype(np.int64)).sum(2) * part.scale * quant.scale * BYTE_STEPS
        + np.abs(part.bias)
        for part, quant in zip(parts, quants, strict=True)
    )
    return all(float(each.max()) < LARGEST_SUM for each in sums)


def _quants(view: OnnxNode) -> tuple[Quant, Quant] | None:
    """The scales of the data and of the state; None where one of them isn't quantized."""
    before = _quant_before(view)
    after = next((q for q in map(_Consumers(view).quant, view.proto.output[:2]) if q), None)
    return (before, after) if before and after else None


def _quant_before(view: OnnxNode) -> Quant | None:
    """Quantization of the data, all of them, found behind moves of elements; None where they have
    no single one.
    """
    makers = {node.output: node for node in view.draft.nodes}
    rest, result = [view.operand(0)], set[Quant]()
    while rest:
        node = makers.get(rest.pop())
        if isinstance(node, ops.Reshape | ops.Transpose | ops.Take):
            rest.append(node.data)
        elif isinstance(node, ops.Concat):
            rest += node.parts
        elif isinstance(node, ops.Dequantize) and node.axis is None:
            kind = view.draft.tensors[node.data].dtype
            if kind not in BYTES:
                return None
            offset = 128 if kind == "uint8" else 0
            result.add(Quant(node.scale[0], node.zero_point[0] - offset))
        else:
            return None
    return result.pop() if len(result) == 1 else None


class _Consumers:
    """The nodes of a file that read a tensor."""

    def __init__(self, view: OnnxNode) -> None:
        self.draft = view.draft
        self.nodes: dict[str, list[onnx.NodeProto]] = {}
        for node in view.draft.proto.graph.node:
            for name in node.input:
                self.nodes.setdefault(name, []).append(node)

    def quant(self, name: str) -> Quant | None:
        """Quantization of a tensor, found behind moves of elements; None where there is none."""
        return next((q for node in self._behind(name) if (q := self._quant_of(node))), None)

    def _behind(self, name: str) -> Iterator[onnx.NodeProto]:
        rest = deque([name] if name else [])
        while rest:
            for node in self.nodes.get(rest.popleft(), ()):
                yield node
                if node.op_type in MOVES:
                    rest.extend(node.output)

    def _quant_of(self, node: onnx.NodeProto) -> Quant | None:
        if node.op_type in RECURRENT:
            return BETWEEN_LAYERS
        if node.op_type != "QuantizeLinear":
            return None
        scale = self.draft.known(node.input[1])
        zero = self.draft.known(node.input[2]) if len(node.input) > 2 else np.zeros(1, np.uint8)
        if scale is None or zero is None or scale.size != 1 or str(zero.dtype) not in BYTES:
            return None
        if not scale > 0:
            return None
        offset = 128 if zero.dtype == np.uint8 else 0
        return Quant(float(scale.reshape(())), int(zero.reshape(())) - offset)
