"""Orders of an image's axes: TFLite's, channels last, and ONNX's, channels first.

Tensors of four axes may be held in either order, so that a transposition stands only where an
operator needs the other one. :func:`images` says beforehand which tensors are better held with
channels first: those that convolutions, pools and the like read or write, and what lies between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

import numpy as np

from vdla.compiler.frontend.tflite.contents import Operator, Subgraph
from vdla.compiler.graph.types import Array

RANK = 4
# Operators of images, whose data operand is the one with this number.
SPATIAL = {
    "AVERAGE_POOL_2D": 0,
    "CONV_2D": 0,
    "DEPTHWISE_CONV_2D": 0,
    "DEPTH_TO_SPACE": 0,
    "L2_POOL_2D": 0,
    "MAX_POOL_2D": 0,
    "RESIZE_BILINEAR": 0,
    "RESIZE_NEAREST_NEIGHBOR": 0,
    "SPACE_TO_DEPTH": 0,
    "TRANSPOSE_CONV": 2,
    "Convolution2DTransposeBias": 0,
}
# Operators that do the same in either order.
EITHER = frozenset(
    (
        *(
            "ABS",
            "ADD",
            "ADD_N",
            "CAST",
            "CEIL",
            "CONCATENATION",
            "COS",
            "DEQUANTIZE",
            "DIV",
            "ELU",
        ),
        *("EQUAL", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GELU", "GREATER", "GREATER_EQUAL"),
        *("HARD_SWISH", "L2_NORMALIZATION", "LEAKY_RELU", "LESS", "LESS_EQUAL", "LOG"),
        *("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC", "LOG_SOFTMAX", "MAXIMUM"),
        *("MEAN", "MINIMUM", "MIRROR_PAD", "MUL", "NEG", "NOT_EQUAL", "PAD", "PADV2", "POW"),
        *("PRELU", "QUANTIZE", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "RELU", "RELU6"),
        *("RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SLICE", "SOFTMAX"),
        *("SPLIT", "SPLIT_V", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "STRIDED_SLICE", "SUB"),
        *("SUM", "TANH", "ZEROS_LIKE"),
    )
)


class Layout(Enum):
    """The order in which a tensor's axes are held."""

    FILE = "as in the file"
    FIRST = "channels first"
    FLAT = "channels first, and then in one axis behind the batch's"

    def axis(self, axis: int, rank: int) -> int:
        """The place at which an axis of the file's is held.

        Args:
            axis: its number in the file; negative ones count from the end.
            rank: the number of the tensor's axes.
        """
        axis = axis % rank if rank else 0
        return HELD[axis] if self is Layout.FIRST and rank == RANK else axis

    def ordered(self, values: Sequence[int]) -> list[int]:
        """One value for each of the file's axes, in the order in which they are held."""
        if self is Layout.FIRST and len(values) == RANK:
            return [values[axis] for axis in TO_FIRST]
        return list(values)

    def array(self, array: Array) -> Array:
        """An array of the file's order in this one."""
        if self is Layout.FIRST and array.ndim == RANK:
            return np.ascontiguousarray(array.transpose(TO_FIRST))
        return array


TO_FIRST = (0, 3, 1, 2)  # [N, H, W, C] → [N, C, H, W]
TO_FILE = (0, 2, 3, 1)
HELD = (0, 2, 3, 1)  # where each of the file's axes is held with channels first


def images(subgraph: Subgraph) -> frozenset[int]:
    """Numbers of the tensors that are better held with channels first."""
    result: set[int] = set()
    for operator in subgraph.operators:
        if _is_spatial(operator) or not result.isdisjoint(operator.inputs):
            result.update(_spread(subgraph, operator, operator.outputs))
    for operator in reversed(subgraph.operators):
        if _is_spatial(operator):
            result.update(operator.inputs[SPATIAL[operator.name] :][:1])
        elif not result.isdisjoint(operator.outputs):
            result.update(_spread(subgraph, operator, operator.inputs))
    return frozenset(result)


def _is_spatial(operator: Operator) -> bool:
    return operator.name in SPATIAL


def _spread(subgraph: Subgraph, operator: Operator, indices: Sequence[int]) -> Iterator[int]:
    """The numbers of those of an operator's tensors that are images like its others."""
    if operator.name in EITHER or _is_spatial(operator):
        for tensor in (subgraph.tensors[index] for index in indices if index >= 0):
            if len(tensor.shape) == RANK and tensor.data is None:
                yield tensor.index
