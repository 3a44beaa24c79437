"""Convolutions whose weights are 0 and 1: they bring elements to other channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler.graph.ops.conv2d import QConv2d, QConv2dAdd


@dataclass(frozen=True, kw_only=True)
class QSelect(QConv2d):
    """A :class:`QConv2d` with at most one weight of 1 for each output channel, the others 0."""

    MOVES: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class QSelectAdd(QConv2dAdd):
    """A :class:`QSelect` and what is in the other channels already, as the residual."""

    MOVES: ClassVar[bool] = True
