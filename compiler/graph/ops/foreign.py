"""Operators that aren't vdla's own: onnxruntime's, and those that users bring."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor, create_prim_func
from vdla.compiler.tir import interp
from vdla.compiler.user import registered
from vdla.runtime.external import Session

SHOWN = 6  # operators of an island that people see


@dataclass(frozen=True, kw_only=True)
class Foreign(Node, operator=False):
    """Operators that take ``operands`` and say themselves what of."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("operands",)

    operands: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return self.shape


@dataclass(frozen=True, kw_only=True)
class External(Foreign):
    """Operators that vdla lacks, as an ONNX model for onnxruntime.

    ``model`` takes ``operands`` by position and has one result, of ``shape`` and ``dtype``; where a
    file's operator has several, each is a node of its own. ``kinds`` are the operators' ONNX names,
    ``reason`` is why they are here, for people.
    """

    model: bytes
    kinds: tuple[str, ...]
    reason: str

    @property
    def op(self) -> str:
        """The operators in a row: ``Resize+Pad``; of many, the first ones."""
        more = len(self.kinds) - SHOWN
        return "+".join(self.kinds[:SHOWN]) + (f"+{more} more" if more > 0 else "")

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return Session(self.model, self.name).run(args)


@dataclass(frozen=True, kw_only=True)
class Open(External):
    """Operators whose results are outputs of the network, of the sizes that onnxruntime gives them.

    The graph has no place for them: its output is a tensor of one element that stands for all
    ``results``, by their names in the file. ``order`` are the names of all outputs of the network.
    """

    results: tuple[str, ...]
    order: tuple[str, ...]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.zeros(kind.shape, kind.dtype)


@dataclass(frozen=True, kw_only=True)
class Custom(Foreign):
    """A user's operator (see ``vdla.compiler.user``), by its name ``domain::OpType``.

    ``settings`` are the attributes that its node in the file has, as JSON.
    """

    operator: str
    settings: str = "{}"

    @property
    def op(self) -> str:
        """The user's name for it."""
        return self.operator

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        """The user's expression, interpreted."""
        types = [(a.shape, str(a.dtype)) for a in args]
        inputs, output = registered(self.operator).tensors(types, json.loads(self.settings))
        return interp.evaluate(create_prim_func(inputs, output), *args)[0]

    def express(self, recipe: Recipe) -> Tensor:
        inputs = [recipe.read(name) for name in self.operands]
        return registered(self.operator).expression(*inputs, **json.loads(self.settings))
