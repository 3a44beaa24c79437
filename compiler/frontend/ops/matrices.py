"""Products of matrices: dense layers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops


@converts("Gemm")
def _gemm(view: OnnxNode) -> None:
    """A dense layer where the weights are constants and nothing is scaled; else its parts."""
    plain = view.real("alpha", 1.0) == 1.0 and view.real("beta", 1.0) == 1.0
    constant = view.draft.known(view.operand(1)) is not None
    if not (plain and constant and not view.integer("transA", 0) and view.dtype(0) == "float32"):
        _scaled(view)
        return
    weight = view.operand(1)
    if not view.integer("transB", 0):
        weight = _rearranged(view, weight, "weight", lambda w: w.T)
    outputs = view.draft.tensors[weight].shape[0]
    bias = view.optional(2)
    if bias is not None and view.draft.tensors[bias].shape != (outputs,):
        if len(view.draft.tensors[bias].shape) > 1 and view.shape(2)[0] > 1:
            _scaled(view)
            return
        bias = _rearranged(view, bias, "bias", lambda b: _row(b, outputs))
    _emit_dense(view, weight, bias)


def _scaled(view: OnnxNode) -> None:
    """``alpha * A' B' + beta * C``."""
    dtype, make = view.common_dtype(), Maker(view)
    sides = []
    for index, key in enumerate(("transA", "transB")):
        if len(view.shape(index)) != 2:
            raise view.error("matrices", list(view.shape(index)))
        name = view.operand(index)
        sides.append(make.transpose(name, (1, 0)) if view.integer(key, 0) else name)
    total = make.matmul(*sides)
    scales = [view.real(key, 1.0) for key in ("alpha", "beta")]
    if not dtype.startswith("float") and scales != [1.0, 1.0]:
        raise view.unsupported("alpha = beta = 1 of integers", scales)
    if scales[0] != 1.0:
        total = make.binary("mul", total, scales[0])
    if (bias := view.optional(2)) is not None:
        bias = make.binary("mul", bias, scales[1]) if scales[1] != 1.0 else bias
        total = make.binary("add", total, bias)
    make.result(total)


@converts("MatMul")
def _matmul(view: OnnxNode) -> None:
    """By constant weights a dense layer, the axes before the last joined; else of two stacks."""
    dtype, a, b = view.common_dtype(), view.shape(0), view.shape(1)
    constant = view.draft.known(view.operand(1)) is not None
    if not (constant and len(b) == 2 and len(a) > 1 and dtype == "float32"):
        _stacks(view)
        return
    weight = _rearranged(view, view.operand(1), "weight", lambda w: w.T)
    if len(a) == 2:
        _emit_dense(view, weight, None)
        return
    make = Maker(view)
    rows = make.reshape(view.operand(0), (prod(a[:-1]), a[-1]))
    dense = make.add(ops.Dense(**make.names(), data=rows, weight=weight), dtype)
    make.result(make.reshape(dense, (*a[:-1], b[-1])))


def _stacks(view: OnnxNode) -> None:
    """A vector is a matrix of one row on the left, of one column on the right."""
    make, a, b = Maker(view), view.shape(0), view.shape(1)
    left = make.reshape(view.operand(0), (1, *a)) if len(a) == 1 else view.operand(0)
    right = make.reshape(view.operand(1), (*b, 1)) if len(b) == 1 else view.operand(1)
    result = make.matmul(left, right)
    shape = make.shape(result)
    if len(a) == 1:
        shape = (*shape[:-2], shape[-1])
    make.result(make.reshape(result, shape[:-1] if len(b) == 1 else shape))


@converts("Einsum")
def _einsum(view: OnnxNode) -> None:
    view.common_dtype()
    equation = _explicit(view, [len(view.shape(i)) for i in range(len(view.proto.input))])
    make = Maker(view)
    make.result(make.einsum(equation, *view.operands()))


def _explicit(view: OnnxNode, ranks: list[int]) -> str:
    """The equation with a right side, and with letters for each ellipsis."""
    text = view.text("equation", "").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    free = [c for c in ascii_letters if c not in text]
    spare = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    dots = [n for term, n in zip(terms, spare, strict=True) if "..." in term]
    most = "".join(free[: max(dots, default=0)])
    if len(set(dots)) > 1:
        raise view.unsupported("ellipses of one number of axes", text)
    if not arrow:
        once = sorted(c for c in set(left) - set(".,") if left.count(c) == 1)
        right = ("..." if dots else "") + "".join(once)
    return f"{left.replace('...', most)}->{right.replace('...', most)}"


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
