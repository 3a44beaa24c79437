"""Steps that an operator's int8 result goes through before it is stored: an epilogue.

    epilogue := step*                 in the order of ``STEPS``, each at most once
    step     := AddStep               the sum with another tensor
              | TableStep             a function, looked up

Each is a node of its own where nothing is fused; :meth:`Step.of` says of which.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from vdla.compiler.graph.ir import Node, Reader, Recipe
from vdla.compiler.graph.numbers import in_steps
from vdla.compiler.graph.ops.add import QAdd, fixed_point_sum, fixed_point_sum_of_elements
from vdla.compiler.graph.ops.table import LEAST, QTable, check_table
from vdla.compiler.graph.types import RECORDS, Array, Requant, Shape
from vdla.compiler.tir.ir import Expr

Element = Callable[..., Expr]  # of an index of a result, as it lies in memory
Rounded = tuple[Array, Array, Array | int]  # as ``Node.before_rounding`` returns it


@dataclass(frozen=True, kw_only=True)
class Step(Reader):
    """A change of each element of an int8 result."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        RECORDS[cls.__name__] = cls

    @classmethod
    @abstractmethod
    def of(cls, node: Node, data: str) -> Self | None:
        """The step that a node is for what makes its operand ``data``; None where it is none."""

    @abstractmethod
    def check(self, node: Node, result: Shape, shapes: Sequence[Shape]) -> None:
        """Raises GraphError where a ``node`` that writes ``result`` can't have the step; ``shapes``
        are those of what the step reads."""

    @abstractmethod
    def evaluate(self, value: Array, args: Sequence[Array]) -> Array:
        """The int8 value behind the step; ``args`` are what the step reads."""

    @abstractmethod
    def before_rounding(self, value: Array, unclear: Array, args: Sequence[Array]) -> Rounded:
        """Values that the step rounds; ``unclear`` are elements of ``value`` that may be rounded
        either way."""

    @abstractmethod
    def express(self, recipe: Recipe, value: Element) -> Element:
        """The int8 element behind the step, of the one before it."""


@dataclass(frozen=True, kw_only=True)
class AddStep(Step):
    """The :class:`QAdd` of a value ``v`` and an ``addend``, int8 of one shape, or one value for
    each channel, [1, C, 1, 1].

    ``sum = (v - zeros[0]) * A + (addend - zeros[1]) * B`` and
    ``clip(rq(sum, 2**-k) + requant.zero, low, high)``, with ``A, B, k = add_terms(*scale)``.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("addend",)

    addend: str
    zeros: tuple[int, ...]
    requant: Requant

    @classmethod
    def of(cls, node: Node, data: str) -> Self | None:
        """The addition of another tensor."""
        if not isinstance(node, QAdd):
            return None
        first = node.a == data
        zeros, scale = node.zeros, node.requant.scale
        if not first:
            zeros, scale = zeros[::-1], scale[::-1]
        requant = Requant(scale, *node.requant.limits)
        return cls(addend=node.b if first else node.a, zeros=zeros, requant=requant)

    def check(self, node: Node, result: Shape, shapes: Sequence[Shape]) -> None:
        """The addend has the result's shape, or one value for each channel."""
        if shapes[0] not in (result, (1, result[1], 1, 1)):
            raise node.error(f"an addend of shape {list(result)}", list(shapes[0]))

    def evaluate(self, value: Array, args: Sequence[Array]) -> Array:
        """The sum in fixed point."""
        return fixed_point_sum((value, args[0]), self.zeros, self.requant)

    def before_rounding(self, value: Array, unclear: Array, args: Sequence[Array]) -> Rounded:
        """The sum of both terms; of any size where the value itself is undecided."""
        own, other = in_steps((value, args[0]), self.zeros, self.requant.scale)
        return own + other, np.where(unclear, np.inf, np.abs(own) + np.abs(other)), 5

    def express(self, recipe: Recipe, value: Element) -> Element:
        """The sum in fixed point."""
        addend = recipe.read(self.addend)
        total = fixed_point_sum_of_elements(self.zeros, self.requant)
        whole = addend.shape == recipe.out_shape
        return lambda *i: total(value(*i), addend[i if whole else (0, i[1], 0, 0, *i[4:])])


@dataclass(frozen=True, kw_only=True)
class TableStep(Step):
    """The :class:`QTable` of a value ``v``: ``table[v + 128]``."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("table",)
    PARAMETERS: ClassVar[tuple[str, ...]] = ("table",)

    table: str

    @classmethod
    def of(cls, node: Node, data: str) -> Self | None:
        """The table's function."""
        return cls(table=node.table) if isinstance(node, QTable) else None

    def check(self, node: Node, result: Shape, shapes: Sequence[Shape]) -> None:
        """The table has a result for each int8."""
        check_table(node, shapes[0])

    def evaluate(self, value: Array, args: Sequence[Array]) -> Array:
        """The values' results."""
        return np.asarray(args[0][value.astype(np.int32) - LEAST])

    def before_rounding(self, value: Array, unclear: Array, args: Sequence[Array]) -> Rounded:
        """Any size where the value looked up may round either way, and none elsewhere."""
        return np.full(unclear.shape, 0.25), np.where(unclear, np.inf, 0.0), 1

    def express(self, recipe: Recipe, value: Element) -> Element:
        """The value's result."""
        table = recipe.read(self.table)
        return lambda *i: table[value(*i).astype("int32") - LEAST]


STEPS: tuple[type[Step], ...] = (AddStep, TableStep)


def extended(epilogue: tuple[Step, ...], node: Node, data: str) -> tuple[Step, ...] | None:
    """An epilogue with one more step, which ``node`` is for what makes its operand ``data``; None
    where the step can't come last."""
    done = max((STEPS.index(type(step)) for step in epilogue), default=-1)
    later = (kind.of(node, data) for kind in STEPS[done + 1 :])
    step = next((step for step in later if step is not None), None)
    return None if step is None else (*epilogue, step)
