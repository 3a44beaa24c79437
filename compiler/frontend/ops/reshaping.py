"""Operators that give elements other places and leave their values."""

from __future__ import annotations

from functools import reduce
from operator import mul

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops


@converts("Identity", "Dropout")
def _identity(view: OnnxNode) -> None:
    source, target = view.operand(0), str(view.proto.output[0])
    if target not in view.draft.outputs:
        view.draft.alias[target] = source
        return
    _emit_reshape(view, view.shape(0))


@converts("Constant")
def _constant(view: OnnxNode) -> None:
    raise view.error("a tensor value", sorted(view.attributes))


@converts("Flatten")
def _flatten(view: OnnxNode) -> None:
    shape = view.shape(0)
    axis = view.integer("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    _emit_reshape(view, (reduce(mul, shape[:axis], 1), reduce(mul, shape[axis:], 1)))


@converts("Reshape")
def _reshape(view: OnnxNode) -> None:
    shape = view.shape(0)
    target = [int(v) for v in view.constant(1, "shape")]
    if not view.integer("allowzero", 0):
        if any(v == 0 and i >= len(shape) for i, v in enumerate(target)):
            raise view.error(f"zeros only within the data's {len(shape)} dimensions", target)
        target = [shape[i] if v == 0 else v for i, v in enumerate(target)]
    count = reduce(mul, shape, 1)
    if -1 in target:
        known = reduce(mul, (v for v in target if v != -1), 1)
        target[target.index(-1)] = count // known if known else 0
    if reduce(mul, target, 1) != count or min(target, default=1) < 1:
        raise view.error(f"a shape of {count} elements", view.constant(1, "shape").tolist())
    _emit_reshape(view, tuple(target))


@converts("Squeeze")
def _squeeze(view: OnnxNode) -> None:
    shape = view.shape(0)
    axes = _axes(view, len(shape)) or {i for i, v in enumerate(shape) if v == 1}
    if any(shape[a] != 1 for a in axes):
        raise view.error("axes of size 1", [shape[a] for a in sorted(axes)])
    _emit_reshape(view, tuple(v for i, v in enumerate(shape) if i not in axes))


@converts("Unsqueeze")
def _unsqueeze(view: OnnxNode) -> None:
    rest = list(view.shape(0))
    count = len(view.constant(1, "axes")) if view.optional(1) else len(view.integers("axes", ()))
    rank = len(rest) + count
    axes = _axes(view, rank)
    _emit_reshape(view, tuple(1 if i in axes else rest.pop(0) for i in range(rank)))


def _axes(view: OnnxNode, rank: int) -> set[int]:
    if view.optional(1) is not None:
        return {int(a) % rank for a in view.constant(1, "axes")}
    return {a % rank for a in view.integers("axes", ())}


def _emit_reshape(view: OnnxNode, shape: tuple[int, ...]) -> None:
    data = view.operand(0)
    dtype = view.draft.tensors[data].dtype
    kind = ops.Reshape if dtype == "float32" else ops.QReshape
    if dtype == "uint8":
        raise view.unsupported("float32 or int8 data", dtype)
    node = kind(name=view.name, output=str(view.proto.output[0]), data=data)
    view.draft.emit(node, dtype, shape)


@converts("Transpose")
def _transpose(view: OnnxNode) -> None:
    rank = len(view.shape(0))
    perm = view.integers("perm", tuple(reversed(range(rank))))
    node = ops.Transpose(name=view.name, output=view.output, data=view.operand(0), perm=perm)
    view.draft.emit(node, "float32")


@converts("Concat")
def _concat(view: OnnxNode) -> None:
    axis = view.integer("axis", 0) % len(view.shape(0))
    node = ops.Concat(name=view.name, output=view.output, parts=view.operands(), axis=axis)
    view.draft.emit(node, "float32")
