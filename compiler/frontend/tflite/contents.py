"""The contents of a TFLite file as plain values: subgraphs, their tensors, their operators.

Reading ends here: the classes of flatbuffers check nothing and raise anything at a damaged file, so
that everything is read once, checked, and whatever they raise becomes a ModelError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np

from vdla.compiler.graph.types import Array

Option: TypeAlias = "int | float | bool | bytes | tuple[int, ...] | None"
COMPLEX = "complex64"  # elements that are two floats in ONNX, along one more axis
LARGEST_RANK = 8  # of a tensor; TFLite's own kernels take six axes


@dataclass(frozen=True)
class Tensor:
    """A tensor of a subgraph.

    Attributes:
        index: its number among the subgraph's tensors.
        name: the file's name for it, which need not be the only one's.
        dtype: its elements' type, as numpy names it; "int4" is unpacked to "int8".
        shape: its sizes, as the file has them.
        signature: these sizes with -1 for those that the file leaves open.
        scale: float32 [1 or channels]: the size of a step; empty where it isn't quantized.
        zero_point: int64, of the same length.
        axis: the axis of the channels.
        data: the elements of a constant; None where operators make it, or the user gives it.
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    signature: tuple[int, ...] = ()
    scale: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    zero_point: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    axis: int = 0
    data: Array | None = None

    @property
    def quantized(self) -> bool:
        """Whether its integers stand for real numbers."""
        return self.scale.size > 0 and "int" in self.dtype

    @property
    def open(self) -> bool:
        """Whether some of its sizes are decided when the model runs."""
        return -1 in self.signature

    @property
    def elements(self) -> int:
        """Number of its elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Operator:
    """An operator of a subgraph.

    Attributes:
        index: its number among the subgraph's operators.
        name: the schema's name of it, as "CONV_2D", or a custom operator's own.
        custom: whether it is a custom one.
        inputs: numbers of tensors; -1 stands for an optional one that isn't given.
        outputs: numbers of tensors.
        options: its options by the schema's names, as "StrideW".
        custom_options: the bytes of a custom operator's options.
    """

    index: int
    name: str
    custom: bool
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Option]
    custom_options: bytes = b""


@dataclass(frozen=True)
class Subgraph:
    """A graph of a file; the first one is the model."""

    index: int
    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]

    @cached_property
    def makers(self) -> dict[int, Operator]:
        """The operator that makes each tensor."""
        return {made: each for each in self.operators for made in each.outputs}


@dataclass(frozen=True)
class Contents:
    """A file: its subgraphs, and ``where`` for errors."""

    where: str
    subgraphs: tuple[Subgraph, ...]

    def operators(self) -> Iterator[Operator]:
        """The operators of all subgraphs."""
        for subgraph in self.subgraphs:
            yield from subgraph.operators
