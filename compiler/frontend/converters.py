"""The table of converters: what each operator means in the typed graph, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vdla.compiler.frontend.draft import DEFAULT_DOMAINS
from vdla.compiler.frontend.node import OnnxNode

Converter = Callable[[OnnxNode], None]
TRAINING = "ai.onnx.preview.training"  # ONNX's domain of optimizers
F = TypeVar("F", bound=Converter)
CONVERTERS: dict[str, Converter] = {}  # of ONNX's own operators
FOREIGN: dict[tuple[str, str], Converter] = {}  # of other domains', by domain and name


def converts(*op_types: str, domain: str = "") -> Callable[[F], F]:
    """Registers a converter."""

    def register(function: F) -> F:
        for op_type in op_types:
            if domain:
                FOREIGN[domain, op_type] = function
            else:
                CONVERTERS[op_type] = function
        return function

    return register


def converter_of(view: OnnxNode) -> Converter | None:
    """A node's converter; None where its operator has none."""
    domain, op_type = view.proto.domain, view.proto.op_type
    if domain in DEFAULT_DOMAINS:
        return CONVERTERS.get(op_type)
    return FOREIGN.get((domain, op_type))
