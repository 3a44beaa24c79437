"""The table of converters: what each ONNX operator means in the typed graph, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vdla.compiler.frontend.node import OnnxNode

Converter = Callable[[OnnxNode], None]
F = TypeVar("F", bound=Converter)
CONVERTERS: dict[str, Converter] = {}


def converts(*op_types: str) -> Callable[[F], F]:
    """Registers a converter."""

    def register(function: F) -> F:
        for op_type in op_types:
            CONVERTERS[op_type] = function
        return function

    return register
