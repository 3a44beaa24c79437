"""Nodes of an ONNX file that a user's operator stands for."""

from __future__ import annotations

import json

import onnx

from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.te import TEError
from vdla.compiler.tir.ir import IRError
from vdla.compiler.user import UserOperator


def add_custom(view: OnnxNode, operator: UserOperator) -> None:
    """Adds a node as the user's operator.

    Raises:
        ModelError: its expression doesn't take these operands or attributes.
    """
    draft = view.draft
    operands = tuple(view.operand(i) for i in range(len(view.proto.input)))
    types = [(draft.tensors[n].shape, draft.tensors[n].dtype) for n in operands]
    try:
        settings = {a.name: _plain(a) for a in view.proto.attribute}
        _, output = operator.tensors(types, settings)
    except (TEError, IRError, TypeError, ValueError) as error:
        shown = ", ".join(f"{d}{list(s)}" for s, d in types)
        raise view.error(f"operands that {operator} takes", f"{shown}: {error}") from None
    node = ops.Custom(
        name=view.name,
        output=view.output,
        operands=operands,
        shape=output.shape,
        dtype=output.dtype,
        operator=operator.name,
        settings=json.dumps(settings),
    )
    draft.emit(node, output.dtype)


def _plain(attribute: object) -> object:
    """An attribute's value: a number, text, or a list of numbers.

    Raises:
        TypeError: it is a tensor or a graph.
    """
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, int | float | list):
        raise TypeError(f"expected numbers, lists or text, found {type(value).__name__}")
    return value
