"""Recurrent layers: each step of a sequence is nodes of its own, equal ones compiled once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.ops.integer_recurrent import DIRECTIONS, integer_layer
from vdla.compiler.graph.ir import STRICT

MOST_STEPS = 2048  # of a sequence: each is some twenty nodes, and 30 ms of compilation
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
FUNCTIONS = {
    "sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu", "softsign": "softsign",
    "softplus": "softplus",
}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """One direction of a layer: its tensors, by name, and its functions.

    ``inputs`` is [T, B, G * H], the data times their weights with all biases that are added there;
    ``weight`` [H, G * H], ``bias`` [G * H] the state's; ``peepholes`` [3 * H].
    """

    make: Maker
    inputs: str
    weight: str
    bias: str | None
    peepholes: str | None
    functions: Sequence[str]
    hidden: int
    reset_after: bool = False  # GRU's linear_before_reset: the reset gate comes behind the weights
    _gates: dict[tuple[str, int, int], str] = field(default_factory=dict, init=False, repr=False)

    @property
    def gates(self) -> int:
        """Number of gates."""
        return self.make.shape(self.weight)[1] // self.hidden

    def row(self, step: int, index: int = 0, count: int | None = None) -> str:
        """[B, G * H]: what the data add at a step, to all gates or to some."""
        batch = self.make.shape(self.inputs)[1]
        rows = self.gate(self.rows, index, count or self.gates)
        return self.make.along(rows, 0, range(step * batch, (step + 1) * batch))

    @cached_property
    def rows(self) -> str:
        """[T * B, G * H]: what the data add at all steps."""
        steps, batch, width = self.make.shape(self.inputs)
        return self.make.reshape(self.inputs, (steps * batch, width))

    def gate(self, name: str, index: int, count: int = 1) -> str:
        """Some gates of [B, G * H]; each step takes the same ones of weights and biases."""
        key = name, index, count
        if key not in self._gates:
            first, last = index * self.hidden, (index + count) * self.hidden
            axis = len(self.make.shape(name)) - 1
            self._gates[key] = self.make.along(name, axis, range(first, last))
        return self._gates[key]

    def states(self, state: str, index: int = 0, count: int | None = None) -> str:
        """The state times its weights, of some gates, with the bias."""
        make, count = self.make, count or self.gates
        result = make.matmul(state, self.gate(self.weight, index, count))
        if self.bias is None:
            return result
        return make.binary("add", result, self.gate(self.bias, index, count))

    def rnn(self, step: int, state: str, cell: str) -> tuple[str, str]:
        """``f(x + h R)``."""
        total = self.make.binary("add", self.row(step), self.states(state))
        return self.make.unary(self.functions[0], total), cell

    def gru(self, step: int, state: str, cell: str) -> tuple[str, str]:
        """Update and reset gates, and the new state; ``reset_after`` says where the reset acts."""
        make = self.make
        both = make.binary("add", self.row(step, 0, 2), self.states(state, 0, 2))
        gates = make.unary(self.functions[0], both)
        update, reset = self.gate(gates, 0), self.gate(gates, 1)
        if self.reset_after:
            inner = make.binary("mul", reset, self.states(state, 2, 1))
        else:
            inner = self.states(make.binary("mul", reset, state), 2, 1)
        new = make.unary(self.functions[1], make.binary("add", self.row(step, 2, 1), inner))
        kept = make.binary("mul", update, make.binary("sub", state, new))
        return make.binary("add", new, kept), cell

    def lstm(self, step: int, state: str, cell: str) -> tuple[str, str]:
        """Gates in ONNX's order: input, output, forget, cell."""
        make, total = self.make, self.make.binary("add", self.row(step), self.states(state))
        squash, new, shown = self.functions
        take = make.unary(squash, self._peeped(total, 0, 0, cell))
        forget = make.unary(squash, self._peeped(total, 2, 2, cell))
        fresh = make.binary("mul", take, make.unary(new, self.gate(total, 3)))
        cell = make.binary("add", make.binary("mul", forget, cell), fresh)
        output = make.unary(squash, self._peeped(total, 1, 1, cell))
        return make.binary("mul", output, make.unary(shown, cell)), cell

    def _peeped(self, total: str, gate: int, peephole: int, cell: str) -> str:
        """A gate that sees the cell, where it does."""
        result = self.gate(total, gate)
        if self.peepholes is None:
            return result
        seen = self.make.binary("mul", cell, self.gate(self.peepholes, peephole))
        return self.make.binary("add", result, seen)


@converts(*GATES)
def _recurrent(view: OnnxNode) -> None:
    view.real_dtype()
    _check_steps(view, view.shape(0)[1 if view.integer("layout", 0) else 0])
    make, mark = Maker(view), view.draft.mark()
    sides = integer_layer(view, make)
    if sides and not view.draft.strict:
        _results(view, make, sides, swapped=False)
        return
    view.draft.reset(mark)
    unroll(view, view.proto.op_type, _layer)
    if sides:
        reason = f"{STRICT}: recurrent cells in integers round gates and states"
        view.draft.reasons.update({node.name: reason for node in view.draft.nodes[mark[0] :]})


LayerOf = Callable[[OnnxNode, Maker, str, int, Sequence[str]], Layer]


def unroll(view: OnnxNode, op: str, layer_of: LayerOf) -> None:
    """Adds a recurrent operator ``op`` step by step.

    ``layer_of`` gives a direction: the node's, for the data [T, B, I], by its number and its
    functions.
    """
    make = Maker(view)
    if view.attributes.keys() & {"clip", "activation_alpha", "activation_beta"}:
        raise view.unsupported("no clip and functions without settings", sorted(view.attributes))
    if view.integer("input_forget", 0):
        raise view.unsupported("input_forget = 0", 1)
    ways = DIRECTIONS.get(view.text("direction", "forward"))
    if ways is None:
        raise view.error(f"direction {', '.join(DIRECTIONS)}", view.text("direction", ""))
    swapped = bool(view.integer("layout", 0))
    data = make.transpose(view.operand(0), (1, 0, 2)) if swapped else view.operand(0)
    steps, batch, _ = make.shape(data)
    _check_steps(view, steps)
    _check_lengths(view, steps)
    sides = []
    for number, backwards in enumerate(ways):
        layer = layer_of(view, make, data, number, _functions(view, op, number))
        shape = batch, layer.hidden
        if (size := view.integer("hidden_size", layer.hidden)) != layer.hidden:
            raise view.error(f"hidden_size {layer.hidden}, as its weights have it", size)
        state = _initial(view, make, 5, number, shape, swapped)
        cell = _initial(view, make, 6, number, shape, swapped) if op == "LSTM" else ""
        run = {"RNN": layer.rnn, "GRU": layer.gru, "LSTM": layer.lstm}[op]
        result: dict[int, str] = {}
        for step in reversed(range(steps)) if backwards else range(steps):
            state, cell = run(step, state, cell)
            result[step] = state
        sides.append(([result[step] for step in range(steps)], state, cell))
    _results(view, make, sides, swapped)


def _check_steps(view: OnnxNode, steps: int) -> None:
    """Raises where a sequence has more steps than are worth nodes of their own."""
    if steps > MOST_STEPS:
        raise view.unsupported(f"at most {MOST_STEPS:,} steps, each compiled as nodes", steps)


def _check_lengths(view: OnnxNode, steps: int) -> None:
    if view.optional(4) is not None and (view.constant(4, "sequence_lens") != steps).any():
        raise view.unsupported(f"sequences of all {steps} steps", "shorter ones")


def _functions(view: OnnxNode, op: str, number: int) -> list[str]:
    count = len(DEFAULTS[op])
    given = [a.decode() for a in view.attributes.get("activations", [])]
    names = given[number * count : (number + 1) * count] or DEFAULTS[op]
    unknown = [name for name in names if name.lower() not in FUNCTIONS]
    if unknown:
        raise view.unsupported(f"activations of {', '.join(FUNCTIONS)}", unknown[0])
    return [FUNCTIONS[name.lower()] for name in names]


def _layer(view: OnnxNode, make: Maker, data: str, number: int, functions: Sequence[str]) -> Layer:
    """A direction's tensors."""
    op, hidden = view.proto.op_type, view.shape(2)[-1]
    steps, batch, size = make.shape(data)
    width = GATES[op] * hidden

    def part(index: int, shape: tuple[int, ...]) -> str:
        return make.reshape(make.along(view.operand(index), 0, [number]), shape)

    rows = make.reshape(data, (steps * batch, size))
    inputs = make.matmul(rows, make.transpose(part(1, (width, size)), (1, 0)))
    after = None
    if view.optional(3) is not None:
        both = part(3, (2 * width,))
        inputs = make.binary("add", inputs, make.along(both, 0, range(width)))
        after = make.along(both, 0, range(width, 2 * width))
    return Layer(
        make,
        make.reshape(inputs, (steps, batch, width)),
        make.transpose(part(2, (width, hidden)), (1, 0)),
        after,
        part(7, (3 * hidden,)) if op == "LSTM" and view.optional(7) is not None else None,
        functions,
        hidden,
        op == "GRU" and bool(view.integer("linear_before_reset", 0)),
    )


def _initial(
    view: OnnxNode, make: Maker, index: int, number: int, shape: tuple[int, int], swapped: bool
) -> str:
    """The state before the first step: given, or zeros."""
    name = view.optional(index)
    if name is None:
        return make.like([[0.0] * shape[1]] * shape[0], view.operand(0))
    return make.reshape(make.along(name, 1 if swapped else 0, [number]), shape)


def _results(
    view: OnnxNode,
    make: Maker,
    sides: Sequence[tuple[list[str], str, str]],
    swapped: bool,
) -> None:
    """Every step's state, and the last ones; batches first where the layout says so."""
    batch, hidden = make.shape(sides[0][1])

    if view.wanted(0):
        shape = len(sides[0][0]), 1, batch, hidden
        ways = [make.reshape(make.concat(states, 0), shape) for states, *_ in sides]
        whole = make.concat(ways, 1)
        make.result(make.transpose(whole, (2, 0, 1, 3)) if swapped else whole, 0)
    for place, index in ((1, 1), (2, 2)):
        if view.wanted(place):
            last = make.concat(
                [make.reshape(str(side[index]), (1, batch, hidden)) for side in sides], 0
            )
            make.result(make.transpose(last, (1, 0, 2)) if swapped else last, place)
