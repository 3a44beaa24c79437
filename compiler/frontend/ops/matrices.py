"""Products of matrices: dense layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops


@converts("Gemm")
def _gemm(view: OnnxNode) -> None:
    for name, default in (("alpha", 1.0), ("beta", 1.0)):
        if view.real(name, default) != default:
            raise view.unsupported(f"{name} = {default:g}", f"{view.real(name, default):g}")
    if view.integer("transA", 0):
        raise view.unsupported("transA = 0", 1)
    weight = view.operand(1)
    if not view.integer("transB", 0):
        weight = _rearranged(view, weight, "weight", lambda w: w.T)
    outputs = view.draft.tensors[weight].shape[0]
    bias = view.optional(2)
    if bias is not None and view.draft.tensors[bias].shape != (outputs,):
        bias = _rearranged(view, bias, "bias", lambda b: _row(b, outputs))
    _emit_dense(view, weight, bias)


@converts("MatMul")
def _matmul(view: OnnxNode) -> None:
    _emit_dense(view, _rearranged(view, view.operand(1), "weight", lambda w: w.T), None)


def _row(array: Any, size: int) -> Any:
    """One value per output: a scalar repeated, a row without its leading ones."""
    return np.broadcast_to(array.reshape(-1), (size,) if array.size == 1 else array.size)


def _emit_dense(view: OnnxNode, weight: str, bias: str | None) -> None:
    if len(view.shape(0)) != 2 or len(view.draft.tensors[weight].shape) != 2:
        raise view.unsupported(
            "data of shape [N, I] and a weight of two dimensions", list(view.shape(0))
        )
    data = view.operand(0)
    node = ops.Dense(name=view.name, output=view.output, data=data, weight=weight, bias=bias)
    view.draft.emit(node, "float32")


def _rearranged(view: OnnxNode, name: str, what: str, change: Callable[[Any], Any]) -> str:
    """A constant operand (or the constant behind its Dequantize) in another arrangement."""
    draft = view.draft
    new = draft.fresh(f"{name}.{view.name}")
    if name in draft.constants:
        return draft.add_constant(new, change(draft.constants[name]))
    source = draft.dequantized(name)
    if source is None:
        raise view.unsupported(f"a constant {what}", f"{name}, known only at run time")
    data = draft.constants[source.data]
    axis = source.axis
    if axis is not None and data.ndim == 2:
        axis = 1 - axis
    integers = draft.add_constant(f"{new}.integers", change(data))
    node = ops.Dequantize(
        name=draft.fresh(f"{source.name}.{view.name}"),
        output=new,
        data=integers,
        scale=source.scale,
        zero_point=source.zero_point,
        axis=axis,
    )
    return draft.emit(node, "float32")
