"""A node's function as it is written down: what it reads, and in which order.

A node's ``express`` gets a :class:`FunctionRecipe`, reads its operands from it and returns its
result. The recipe collects the inputs meanwhile; ``function`` is made of it when its schedule is
known. Tensors that only the function needs (rearranged weights, packed scales) become constants
named after the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.types import Array, Shape
from vdla.compiler.schedule import Schedule
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Expr, PrimFunc
from vdla.runtime.dtypes import dtype_of

Element = Callable[[Expr, Expr, Expr, Expr], Expr]


def plain(node: Node, recipe: Recipe) -> Tensor:
    """A node's own expression, whatever the target."""
    return node.express(recipe)


@dataclass(frozen=True)
class NodeFunction:
    """A function with the tensors that it gets, its result last, and constants of its own."""

    func: PrimFunc
    args: tuple[str, ...]
    constants: dict[str, Array]


@dataclass
class FunctionRecipe:
    """The inputs of one function, in order.

    ``expression`` writes a node's expression: the node's own, or one that a target prefers.
    """

    node: Node
    graph: Graph
    expression: Callable[[Node, Recipe], Tensor] = plain
    tensors: list[Tensor] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    computed: dict[str, Tensor] = field(default_factory=dict)  # by the fused parts before this one
    kept: list[Tensor] = field(default_factory=list)  # of those, what is read more than once

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The physical shape the function writes."""
        return self.graph.tensors[self.node.output].physical

    @property
    def out_dtype(self) -> str:
        """The element type of the operator's output."""
        return self.graph.tensors[self.node.output].dtype

    def block(self, name: str) -> int:
        """Number of channels of a tensor that lie side by side; 0 where none do."""
        return self.graph.tensors[name].block

    def image(self, name: str) -> Element:
        """The element of an image at n, c, y, x, however its channels lie."""
        data, block = self.read(name), self.block(name)
        if not block:
            return lambda n, c, y, x: data[n, c, y, x]
        return lambda n, c, y, x: data[n, te.floordiv(c, block), y, x, te.floormod(c, block)]

    def compute(self, value: Element, name: str = "out") -> Tensor:
        """The resulting image from its element at n, c, y, x, its channels as its tensor has
        them."""
        block = self.block(self.node.output)
        if not block:
            return te.compute(self.out_shape, value, name)
        return te.compute(self.out_shape, lambda n, o, y, x, l: value(n, o * block + l, y, x), name)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's logical shape."""
        return self.graph.tensors[name].shape

    def read(self, name: str, shape: tuple[int, ...] | None = None) -> Tensor:
        """A tensor of the graph as an input, under another dense ``shape`` if one is given."""
        kind = self.graph.tensors[name]
        if name in self.computed:
            return _viewed(self.computed[name], shape or kind.physical)
        return self._input(name, shape or kind.physical, kind.dtype)

    def dtype(self, name: str) -> str:
        """A tensor's element type."""
        return self.graph.tensors[name].dtype

    def bits(self, name: str) -> Tensor:
        """A tensor of the graph as an input of unsigned integers: the bits of its elements."""
        kind = self.graph.tensors[name]
        width = 8 * dtype_of(kind.dtype).itemsize
        return self._input(name, kind.physical, f"uint{width}")

    def constant(
        self, suffix: str, array: Array, value_range: tuple[int, int] | None = None
    ) -> Tensor:
        """An array only this function needs; of indices, with the least and greatest that may be
        there, so that any others within can be tried in a search."""
        name = f"{self.node.name}.{suffix}"
        while name in self.graph.tensors:  # as a layer's weights often are, that others may read
            name = f"{name}.own"
        self.constants[name] = array
        return self._input(name, array.shape, str(array.dtype), value_range)

    def _input(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        value_range: tuple[int, int] | None = None,
    ) -> Tensor:
        tensor = te.placeholder(shape, dtype, f"in{len(self.tensors)}", value_range)
        self.tensors.append(tensor)
        self.args.append(name)
        return tensor

    def value(self, name: str) -> Array | None:
        """A tensor's value where it is known at compile time."""
        return self.graph.constants.get(name)

    def part(self, node: Node, keep: str | None = None) -> Tensor:
        """The result of one of several nodes that are one function; stores the one to ``keep``."""
        recipe = replace(self, node=node)
        result = self.expression(node, recipe)
        if keep in self.computed:
            self.kept.append(self.computed[keep])
        self.computed[node.output] = result
        return result

    def schedule(
        self, result: Tensor, symbol: str, placed: Sequence[Tensor] = (), *, checked: bool = True
    ) -> Schedule:
        """The function, to be scheduled. Of fused parts, those that are read once leave no tensor,
        but those that are ``placed`` later."""
        s = Schedule(te.build(self.tensors, [result], symbol), checked=checked)
        stays = (result, *self.kept, *placed)
        if self.computed:
            for tensor in te.producers((result,)):
                if tensor not in stays and _moves(tensor):
                    s[tensor].compute_inline()
        return s

    def function(self, func: PrimFunc) -> NodeFunction:
        """A scheduled function with what it gets for this node."""
        return NodeFunction(func, (*self.args, self.node.output), self.constants)


def _moves(tensor: Tensor) -> bool:
    """Whether each element is computed by itself, so that it can be where it is read."""
    op = tensor.op
    return isinstance(op, ComputeOp) and op.reduce is None


def _viewed(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A tensor under a shape that differs by dimensions of size 1 at its end, has neighbouring
    dimensions as one, or has some apart that are one."""
    if tensor.shape == shape:
        return tensor
    rank = min(len(tensor.shape), len(shape))
    ones = (1,) * abs(len(tensor.shape) - len(shape))
    if tensor.shape[:rank] == shape[:rank] and ones == (*tensor.shape[rank:], *shape[rank:]):
        zeros = (0,) * (len(tensor.shape) - rank)
        return te.compute(shape, lambda *i: tensor[(*i[:rank], *zeros)], "viewed")
    if len(shape) > len(tensor.shape):
        parts = _merged(shape, tensor.shape)
        return te.compute(shape, lambda *i: tensor[_together(i, parts)], "viewed")
    groups = _merged(tensor.shape, shape)
    return te.compute(shape, lambda *i: tensor[_apart(i, groups)], "viewed")


def _merged(old: Shape, new: Shape) -> list[Shape]:
    """The neighbouring dimensions that each of a new shape's is of.

    Raises:
        ValueError: one isn't of whole dimensions.
    """
    groups, at = list[Shape](), 0
    for size in new:
        end = at + 1
        while prod(old[at:end]) < size and end < len(old):
            end += 1
        groups.append(old[at:end])
        at = end
    if groups and set(old[at:]) == {1}:
        groups[-1], at = (*groups[-1], *old[at:]), len(old)
    if at != len(old) or [prod(group) for group in groups] != list(new):
        raise ValueError(f"expected a view as {list(old)}, found {list(new)}")
    return groups


def _apart(index: Sequence[Expr], groups: Sequence[Shape]) -> tuple[Expr, ...]:
    """An index under dimensions that are several each, as that of all of them."""
    parts: list[Expr] = []
    for whole, group in zip(index, groups, strict=True):
        for n, size in enumerate(group):
            behind = prod(group[n + 1 :])
            part = te.floordiv(whole, behind) if behind > 1 else whole
            parts.append(te.floormod(part, size) if n else part)
    return tuple(parts)


def _together(index: Sequence[Expr], groups: Sequence[Shape]) -> tuple[Expr, ...]:
    """An index as one under dimensions that each are several of its own."""
    result, each = [], iter(index)
    for group in groups:
        whole: Expr = te.const(0, "int32")
        for size in group:
            whole = whole * size + next(each)
        result.append(whole)
    return tuple(result)


def inside(index: Expr, size: int) -> Expr:
    """Whether an index lies within a dimension."""
    return te.all(index >= 0, index < size)


def clipped(x: Expr, zero_point: int, low: int, high: int) -> Expr:
    """``clip(x + zero_point, low, high)`` as int8, of an int32 that no zero point overflows."""
    return te.minimum(te.maximum(x + zero_point, low), high).astype("int8")


def shifted(x: Expr, k: int) -> Expr:
    """``x / 2**k`` of an int32 below 2**30, rounded half to even; k is at most 30."""
    if k == 0:
        return x
    odd = (x >> k) & 1
    return (x + ((1 << (k - 1)) - 1) + odd) >> k


def requantized(acc: Expr, word: Expr, zero_point: int, low: int, high: int) -> Expr:
    """``clip(rq(acc, word) + zero_point, low, high)`` as int8."""
    return te.requantize(acc, word, zero_point, low, high).astype("int8")
