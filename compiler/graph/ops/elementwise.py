"""Real functions element by element, of one tensor and of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Array, GraphError, Known, Node, Recipe, Shape, TensorType
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import f32
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

F32 = np.float32


def _real(value: float) -> Expr:
    return te.const(f32(value), "float32")


def _bent(x: Expr, slope: Expr) -> Expr:
    """``x`` where it is positive, ``slope * x`` elsewhere."""
    return te.maximum(x, _real(0)) + slope * te.minimum(x, _real(0))


def _unit(x: Expr) -> Expr:
    return te.minimum(te.maximum(x, _real(0)), _real(1))


# Each function by its name: in numpy, and as an expression. ``n`` is the node.
UNARY: dict[str, tuple[Callable[[Array, Unary], Array], Callable[[Expr, Unary], Expr]]] = {
    "sigmoid": (lambda x, n: F32(1) / (F32(1) + np.exp(-x)), lambda x, n: te.sigmoid(x)),
    "tanh": (lambda x, n: np.tanh(x), lambda x, n: te.tanh(x)),
    "exp": (lambda x, n: np.exp(x), lambda x, n: te.exp(x)),
    "log": (lambda x, n: np.log(x), lambda x, n: te.log(x)),
    "sqrt": (lambda x, n: np.sqrt(x), lambda x, n: te.sqrt(x)),
    "abs": (lambda x, n: np.abs(x), lambda x, n: te.abs(x)),
    "neg": (lambda x, n: -x, lambda x, n: _real(0) - x),
    "floor": (lambda x, n: np.floor(x), lambda x, n: te.floor(x)),
    "erf": (lambda x, n: np.vectorize(math.erf, otypes=[F32])(x), lambda x, n: te.erf(x)),
    "leaky_relu": (
        lambda x, n: np.maximum(x, F32(0)) + F32(n.alpha) * np.minimum(x, F32(0)),
        lambda x, n: _bent(x, _real(n.alpha)),
    ),
    "elu": (
        lambda x, n: np.where(x > 0, x, F32(n.alpha) * (np.exp(np.minimum(x, 0)) - F32(1))),
        lambda x, n: te.select(
            x > _real(0), x, _real(n.alpha) * (te.exp(te.minimum(x, _real(0))) - _real(1))
        ),
    ),
    "hard_sigmoid": (
        lambda x, n: np.clip(F32(n.alpha) * x + F32(n.beta), F32(0), F32(1)),
        lambda x, n: _unit(_real(n.alpha) * x + _real(n.beta)),
    ),
    "hard_swish": (
        lambda x, n: x * np.clip(x / F32(6) + F32(0.5), F32(0), F32(1)),
        lambda x, n: x * _unit(x / _real(6) + _real(0.5)),
    ),
}
BINARY: dict[str, tuple[Callable[[Array, Array], Array], Callable[[Expr, Expr], Expr]]] = {
    "sub": (np.subtract, lambda a, b: a - b),
    "mul": (np.multiply, lambda a, b: a * b),
    "div": (np.divide, lambda a, b: a / b),
    "pow": (np.power, te.power),
    "max": (np.maximum, te.maximum),
    "min": (np.minimum, te.minimum),
    "prelu": (lambda a, b: np.maximum(a, F32(0)) + b * np.minimum(a, F32(0)), _bent),
}


# Of functions of two tensors, what a quantized island around them becomes: their integer operators
# enter themselves here.
QUANTIZED: dict[str, Callable[[Binary, Island], Node]] = {}


@dataclass(frozen=True, kw_only=True)
class Unary(Node):
    """``function(data)``, element by element; ``alpha`` and ``beta`` as the function needs them."""

    FUNCTIONS: ClassVar[tuple[str, ...]] = tuple(UNARY)

    data: str
    function: str
    alpha: float = 0.0
    beta: float = 0.0

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(UNARY[self.function][0](args[0], self), F32)

    def express(self, recipe: Recipe) -> Tensor:
        data, function = recipe.read(self.data), UNARY[self.function][1]
        return te.compute(recipe.out_shape, lambda *i: function(data[i], self), self.function)

    def channel_block(self, operands: Sequence[TensorType], known: Known, lanes: int) -> int:
        """As its operand lies."""
        return operands[0].block


@dataclass(frozen=True, kw_only=True)
class Binary(Quantizable):
    """``function(a, b)``, with numpy's broadcasting."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    FUNCTIONS: ClassVar[tuple[str, ...]] = tuple(BINARY)

    a: str
    b: str
    function: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return broadcast_shape(self, shapes)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(BINARY[self.function][0](args[0], args[1]), F32)

    def express(self, recipe: Recipe) -> Tensor:
        a, b = broadcast_operands(recipe, self.a, self.b)
        function = BINARY[self.function][1]
        return te.compute(recipe.out_shape, lambda *i: function(a(i), b(i)), self.function)

    def channel_block(self, operands: Sequence[TensorType], known: Known, lanes: int) -> int:
        """As both of its operands lie."""
        return common_block(operands)

    def quantized(self, island: Island) -> Node:
        """The integer form of its function."""
        if self.function not in QUANTIZED:
            raise GraphError("it has no integer form")
        return QUANTIZED[self.function](self, island)


# What operators of two tensors share --------------------------------------------------------------


def broadcast_shape(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The common shape of operands that broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        found = " and ".join(str(list(s)) for s in shapes)
        raise node.error("operands of one shape", found) from None


def equal_shape(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The one shape of two operands."""
    if shapes[0] != shapes[1]:
        raise node.error(f"a second operand of shape {list(shapes[0])}", list(shapes[1]))
    return shapes[0]


def common_block(operands: Sequence[TensorType]) -> int:
    """The block of images that broadcast along rows and columns alone; 0 where they don't."""
    blocks = {each.block for each in operands}
    channels = {each.shape[:2] for each in operands}
    return blocks.pop() if len(blocks) == 1 and len(channels) == 1 else 0


def broadcast_operands(recipe: Recipe, a: str, b: str) -> list[Callable[[Sequence[Expr]], Expr]]:
    """Two operands as functions of an index of the result."""

    def spread(tensor: Tensor, i: Sequence[Expr]) -> Expr:
        skipped = len(i) - len(tensor.shape)
        fixed = [
            te.const(0, "int32") if size == 1 else v
            for size, v in zip(tensor.shape, i[skipped:], strict=True)
        ]
        return tensor[tuple(fixed)]

    return [partial(spread, recipe.read(name)) for name in (a, b)]
