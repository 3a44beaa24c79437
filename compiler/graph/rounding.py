"""Results that float32 arithmetic may round to either of two neighbouring integers.

The reference (onnxruntime) computes pools, additions and changes of scale in float32: it
dequantizes, adds up, divides by the result's scale and rounds. Sums of integer products are exact
and become floats after. Each of these steps may be off by
half a unit in the last place, so a result that lies as close to the middle between two integers as
these errors add up to is undecided: both neighbours are right. Averages of 2x2 at one scale lie
exactly there a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.types import Array

UNIT = 2.0**-24  # the relative error of one float32 operation


def undecided(node: Node, operands: Sequence[Array]) -> Array | None:
    """Which elements of a node's result float32 may round either way; None for other nodes."""
    result = node.before_rounding(operands)
    if result is None:
        return None
    return in_the_middle(*result)


def in_the_middle(value: Array, size: Array, operations: Array | int) -> Array:
    """Whether exact values, the sums of terms of these sizes, are as close to the middle between
    two integers as so many float32 operations may be off."""
    middle = np.floor(value) + 0.5
    return np.asarray(np.abs(value - middle) <= size * operations * UNIT)
