"""Real functions element by element, of one tensor and of two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import GraphError, Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.ops import functions
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

UNARY = {**functions.UNARY, **functions.UNARY_BITS, **functions.UNARY_TESTS}
BINARY = {**functions.BINARY, **functions.BINARY_BITS, **functions.BINARY_TESTS}


# Of functions of two tensors, what a quantized island around them becomes: their integer operators
# enter themselves here.
QUANTIZED: dict[str, Callable[[Binary, Island], Node]] = {}


@dataclass(frozen=True, kw_only=True)
class Unary(Node):
    """``function(data)``, element by element; ``alpha`` and ``beta`` as the function needs them.

    The result has the data's type; that of a test is bool.
    """

    ELEMENTWISE: ClassVar[bool] = True
    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)
    FUNCTIONS: ClassVar[tuple[str, ...]] = tuple(functions.UNARY)

    data: str
    function: str
    alpha: float = 0.0
    beta: float = 0.0

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    @property
    def settings(self) -> functions.Settings:
        """Settings of the function."""
        return functions.Settings(self.alpha, self.beta)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        with np.errstate(all="ignore"):
            result = UNARY[self.function][0](widened(args[0]), self.settings)
        return np.asarray(result).astype(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        data, function = recipe.read(self.data), UNARY[self.function][1]

        def value(*i: Expr) -> Expr:
            return function(wide(data[i]), self.settings).astype(recipe.out_dtype)

        return te.compute(recipe.out_shape, value, self.function)

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the operand."""
        return operands[0].block


@dataclass(frozen=True, kw_only=True)
class Binary(Quantizable):
    """``function(a, b)`` of operands of one type, with numpy's broadcasting.

    The result has the operands' type; that of a comparison is bool.
    """

    ELEMENTWISE: ClassVar[bool] = True
    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)
    FUNCTIONS: ClassVar[tuple[str, ...]] = tuple(functions.BINARY)

    a: str
    b: str
    function: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return broadcast_shape(self, shapes)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        with np.errstate(all="ignore"):
            result = BINARY[self.function][0](widened(args[0]), widened(args[1]))
        return np.asarray(result).astype(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        a, b = broadcast_operands(recipe, self.a, self.b)
        function = BINARY[self.function][1]

        def value(*i: Expr) -> Expr:
            return function(wide(a(i)), wide(b(i))).astype(recipe.out_dtype)

        return te.compute(recipe.out_shape, value, self.function)

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result, of which an operand may be spread."""
        return spread_block(operands)

    def quantized(self, island: Island) -> Node:
        """The integer form of its function."""
        if self.function not in QUANTIZED:
            raise GraphError("it has no integer form")
        return QUANTIZED[self.function](self, island)


@dataclass(frozen=True, kw_only=True)
class Where(Node):
    """``a`` where ``condition`` holds, else ``b``, with numpy's broadcasting."""

    ELEMENTWISE: ClassVar[bool] = True
    OPERANDS: ClassVar[tuple[str, ...]] = ("condition", "a", "b")
    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    condition: str
    a: str
    b: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return broadcast_shape(self, shapes)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.where(args[0], args[1], args[2])

    def express(self, recipe: Recipe) -> Tensor:
        condition, a, b = broadcast_operands(recipe, self.condition, self.a, self.b)
        return te.compute(
            recipe.out_shape, lambda *i: te.select(condition(i), a(i), b(i)), "chosen"
        )

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result, of which an operand may be spread."""
        return spread_block(operands)


@dataclass(frozen=True, kw_only=True)
class Cast(Node):
    """Converts numbers to the output's type: integers wrap, floats lose their fractions."""

    ELEMENTWISE: ClassVar[bool] = True
    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        with np.errstate(all="ignore"):
            return args[0].astype(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        return te.compute(recipe.out_shape, lambda *i: data[i].astype(recipe.out_dtype), "cast")


# What operators of elements share -----------------------------------------------------------------


def wide(x: Expr) -> Expr:
    """An element in the type that is computed in: of float16, float32."""
    return x.astype("float32") if x.dtype == "float16" else x


def widened(x: Array) -> Array:
    """An array in the type that is computed in: float32 in the place of float16."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


# What operators of two tensors share --------------------------------------------------------------


def broadcast_shape(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The common shape of operands that broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        actual = " and ".join(str(list(s)) for s in shapes)
        raise node.error("operands of one shape", actual) from None


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


def spread_block(operands: Sequence[TensorType]) -> int:
    """The smallest block of images of as many channels, where all others are spread over rows and
    columns, or over channels; 0 where they aren't."""
    least = min((each.block for each in operands if each.block), default=0)
    images = [each for each in operands if each.block]
    whole = all(each.block % least == 0 for each in images)
    block = common_block([replace(each, block=least) for each in images]) if whole else 0
    plain = [(1,) * (4 - len(each.shape)) + each.shape for each in operands if not each.block]
    return block if all(shape[1] == 1 or shape[2:] == (1, 1) for shape in plain) else 0


def broadcast_operands(recipe: Recipe, *names: str) -> list[Callable[[Sequence[Expr]], Expr]]:
    """The operands as functions of an index of the result.

    Where some lie in blocks of channels, so does the result, in the smallest of them; plain ones
    are read by channel.
    """
    block = min(filter(None, map(recipe.block, names)), default=0)

    def spread(name: str, tensor: Tensor, i: Sequence[Expr]) -> Expr:
        own = recipe.block(name)
        if block and own != block:
            n, o, y, x, l = i
            i = n, o * block + l, y, x
            if own:
                in_one = own // block
                i = n, te.floordiv(o, in_one), y, x, te.floormod(o, in_one) * block + l
        skipped = len(i) - len(tensor.shape)
        fixed = [
            te.const(0, "int32") if size == 1 else v
            for size, v in zip(tensor.shape, i[skipped:], strict=True)
        ]
        return tensor[tuple(fixed)]

    return [partial(spread, name, recipe.read(name)) for name in names]
