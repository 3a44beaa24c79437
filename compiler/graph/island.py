"""Interface that tells a float operator how its operands and its result are quantized."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol, TypedDict

from vdla.compiler.graph.editor import Editor
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.types import Array, Quant, Requant, Shape


class Names(TypedDict):
    """The fields of a node that say who it is."""

    name: str
    output: str


class Island(Protocol):
    """One float operator whose data operands are dequantized and whose result is quantized."""

    editor: Editor
    names: Names
    out: Quant

    def requant(self, *scale: float) -> Requant:
        """The requantization to the result, with its zero point and bounds.

        Raises:
            GraphError: the accelerator can't represent a scale.
        """

    def ratio(self, quant: Quant) -> float:
        """An operand's scale in units of the result's, in float32.

        Raises:
            GraphError: the accelerator can't represent it.
        """

    def spread(self, name: str, shape: Shape | None = None) -> str:
        """An integer operand at the full shape of the result, or at ``shape`` if it fits that.

        A constant is written out; an image gets its rows and columns repeated.

        Raises:
            GraphError: other axes would have to be repeated.
        """

    def source(self, name: str) -> tuple[str, Quant]:
        """The int8 tensor behind a float operand and its parameters.

        Raises:
            GraphError: it is not quantized to int8 with one scale.
        """

    def weight(self, name: str) -> tuple[str, Array]:
        """The int8 weight constant behind ``name`` (zero point 0) and one scale per output.

        Raises:
            GraphError: it is no constant, or not int8 per output channel.
        """

    def bias(self, name: str | None, scale: Array, weight: str, zero_point: int) -> str:
        """The int32 bias in units of ``scale``; zeros where there is none. With it, no sum of the
        weights times any data, less their zero point, is beyond 32 bits.

        Raises:
            GraphError: it is known only at run time, or sums don't fit.
        """


@dataclass(frozen=True, kw_only=True)
class Quantizable(Node, operator=False):
    """A float operator that becomes one on integers where its operands and its result are."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest number that its result can be, by what it computes."""
        return -inf, inf

    def has_integers(self, shape: Shape) -> bool:
        """Whether there is an integer operator for data of a shape at all."""
        return True

    def quantized(self, island: Island) -> Node:
        """The integer operator of an island around this one.

        Raises:
            GraphError: the island doesn't fit it; says why, for the placement report.
        """
        raise NotImplementedError
