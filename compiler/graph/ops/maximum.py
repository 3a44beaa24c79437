"""The greater of two quantized tensors, element by element; of real ones it is ``Binary``'s."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.ops.elementwise import QUANTIZED, Binary
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.types import Array
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class QMaximum(QMinimum):
    """The greater of ``a - zeros[0]`` and ``b - zeros[1]``, each requantized."""

    @staticmethod
    def of_arrays(a: Array, b: Array) -> Array:
        """The chosen one of each two elements."""
        return np.asarray(np.maximum(a, b))

    @staticmethod
    def of_elements(a: Expr, b: Expr) -> Expr:
        """The chosen one of two elements."""
        return te.maximum(a, b)


def _quantized(node: Binary, island: Island) -> QMaximum:
    return QMaximum(**QUANTIZED["min"](node, island).values())


QUANTIZED["max"] = _quantized
