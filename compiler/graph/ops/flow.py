"""Nodes of a graph in which control is laid out: no regions, but copies, labels and jumps.

    Copy      tensors of one type, whole or by elements along the first axis
    Clear     zeros
    Begin     a tensor of which nothing is needed from before
    Label     a place that jumps lead to
    Goto      a jump, perhaps on a condition
    NextTurn  the end of a turn of a loop: counts it, and jumps for the next one
    Enter     a call of what is behind a label, which reads and writes tensors of its own
    Leave     the end of what is called, or of the whole

A tensor may be written by several of them. Passes don't see such graphs: ``compiler/linear.py``
makes one of a network whose nodes have their code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler.graph.ir import Node


@dataclass(frozen=True, kw_only=True)
class Flow(Node, operator=False):
    """A node that computes nothing."""

    OPERANDS: ClassVar[tuple[str, ...]] = ()

    output: str = ""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,) if self.output else ()


@dataclass(frozen=True, kw_only=True)
class Copy(Flow, operator=False):
    """A copy of ``data``; with a ``turn``, of its element there, or to the element there of
    ``whole``, which the node writes, too."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "turn", "whole")

    data: str
    turn: str | None = None
    whole: str | None = None

    @property
    def way(self) -> str:
        """The way in which a run plan copies it."""
        if self.turn is None:
            return "whole"
        return "take" if self.whole is None else "put"


@dataclass(frozen=True, kw_only=True)
class Clear(Flow, operator=False):
    """Zeros."""


@dataclass(frozen=True, kw_only=True)
class Begin(Flow, operator=False):
    """Any value: the tensor is written piece by piece from here on."""


@dataclass(frozen=True, kw_only=True)
class Label(Flow, operator=False):
    """A place; its name is what jumps name."""


@dataclass(frozen=True, kw_only=True)
class Goto(Flow, operator=False):
    """A jump to the label ``to``, where the condition, if there is one, is as ``when`` says."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("condition",)

    to: str
    condition: str | None = None
    when: bool = True


@dataclass(frozen=True, kw_only=True)
class NextTurn(Flow, operator=False):
    """One more of at most ``turns`` turns, which the tensor that it writes counts, and a jump to
    the label ``to``; where that was the last one, the node behind it, or with ``strict`` an
    error."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("turn",)

    turn: str
    to: str
    turns: int
    strict: bool


@dataclass(frozen=True, kw_only=True)
class Enter(Flow, operator=False):
    """A call of what is behind the label ``to``, which reads ``operands`` and writes ``results``;
    ``frame`` are the tensors of whoever calls, if that may be called again meanwhile."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("operands",)

    to: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    frame: frozenset[str] = frozenset()

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.results


@dataclass(frozen=True, kw_only=True)
class Leave(Flow, operator=False):
    """The end; ``operands`` are what is read of it later."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("operands",)

    operands: tuple[str, ...] = ()
