"""Attributes of nodes that no converter asks for: they are refused, so that none is overlooked.

What a converter asks for is read off its code: the strings in it, and in the functions of the front
end that it calls. An attribute that none of them names may stand in a file only with the value
that ONNX gives it anyway, or where it can't change a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType

import onnx

from vdla.compiler.frontend.converters import Converter
from vdla.compiler.frontend.draft import DEFAULT_DOMAINS
from vdla.compiler.frontend.node import OnnxNode

ROOM = "vdla.compiler.frontend"
ALL = "attribute"  # of a node's message: who names it takes all attributes
HARMLESS = {  # whatever their value: no result depends on them
    "*": ("consumed_inputs",),  # a hint where memory may be used again, opset 1
    "BatchNormalization": ("momentum", "is_test"),  # of training; without it is how files end
    "ConvTranspose": ("kernel_shape",),  # the weight's own
    "Dropout": ("ratio", "seed", "is_test"),  # of training
    "Gemm": ("broadcast",),  # opset 1 and 6: by shape, as all later ones
    "GRU": ("output_sequence",),  # results are left out by name, opset 1 and 3
    "LSTM": ("output_sequence",),
    "MaxPool": ("storage_order",),  # of the second result, which is another operator's to refuse
    "RNN": ("output_sequence",),
    "Split": ("num_outputs",),  # as many as there are
}


def overlooked(view: OnnxNode, converter: Converter) -> str | None:
    """The first attribute of a node that its converter never asks for and that may matter."""
    names = asked_for(converter)
    if ALL in names:
        return None
    op_type = view.proto.op_type
    known = names | {*HARMLESS["*"], *HARMLESS.get(op_type, ())}
    defaults = _defaults(op_type, view.draft.opset) if view.proto.domain in DEFAULT_DOMAINS else {}
    for name, value in view.attributes.items():
        if name not in known and not (name in defaults and defaults[name] == value):
            return str(name)
    return None


@cache
def _defaults(op_type: str, opset: int) -> dict[str, object]:
    """The values that ONNX gives attributes that a node leaves out."""
    if not onnx.defs.has(op_type, opset):
        return {}
    schema = onnx.defs.get_schema(op_type, opset)
    return {
        name: onnx.helper.get_attribute_value(each.default_value)
        for name, each in schema.attributes.items()
        if each.default_value.name
    }


@cache
def asked_for(converter: Converter) -> frozenset[str]:
    """The strings in a converter, and in the functions and tables of the front end that it uses."""
    assert isinstance(converter, FunctionType)
    seen: set[FunctionType] = set()
    return frozenset(_strings(converter, seen))


def _strings(function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    """The strings in a function's code, and in what it refers to."""
    if function in seen:
        return
    seen.add(function)
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        for value in code.co_consts:
            if isinstance(value, CodeType):
                codes.append(value)
            else:
                yield from _plain(value)
        yield from (name for name in code.co_names if name == ALL)
        for name in code.co_names:
            yield from _referred(function.__globals__.get(name), seen)


def _referred(value: object, seen: set[FunctionType]) -> Iterator[str]:
    """The strings in a function or a class of the front end, or in a table."""
    own = str(getattr(value, "__module__", "")).startswith(ROOM)
    if isinstance(value, FunctionType) and own:
        yield from _strings(value, seen)
    elif isinstance(value, type) and own and value is not OnnxNode:
        for member in vars(value).values():
            inner = next(
                (getattr(member, n) for n in ("fget", "func", "__func__") if hasattr(member, n)),
                member,
            )
            if isinstance(inner, FunctionType):
                yield from _strings(inner, seen)
    else:
        yield from _plain(value)


def _plain(value: object) -> Iterator[str]:
    """The strings in a constant."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list | set | frozenset):
        for each in value:
            yield from _plain(each)
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _plain(pair)
