"""The greater of two quantized tensors, element by element; of real ones it is ``Binary``'s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.ops.elementwise import QUANTIZED, Binary
from vdla.compiler.graph.ops.minimum import Choice, QMinimum


@dataclass(frozen=True, kw_only=True)
class QMaximum(QMinimum):
    """The greater of ``a - zeros[0]`` and ``b - zeros[1]``, each requantized."""

    CHOICE: ClassVar[tuple[Choice, Choice]] = (np.maximum, te.maximum)


def _quantized(node: Binary, island: Island) -> QMaximum:
    return QMaximum(**QUANTIZED["min"](node, island).values())


QUANTIZED["max"] = _quantized
