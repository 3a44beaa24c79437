"""Operators that give elements other places and leave their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from math import prod
from operator import mul

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Array


@converts("Identity")
def _identity(view: OnnxNode) -> None:
    Maker(view).result(view.operand(0))


@converts("Dropout")
def _dropout(view: OnnxNode) -> None:
    """At inference: nothing is dropped."""
    if view.optional(2) is not None and view.constant(2, "training_mode").any():
        raise view.error("training_mode = 0: vdla runs inference", 1)
    make = Maker(view)
    make.result(view.operand(0))
    make.result(make.constant(np.ones(view.shape(0)), "bool"), 1)


@converts("Constant")
def _constant(view: OnnxNode) -> None:
    raise view.error("a tensor value", sorted(view.attributes))


@converts("Flatten")
def _flatten(view: OnnxNode) -> None:
    shape = view.shape(0)
    axis = view.integer("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    if not 0 <= axis <= len(shape):
        raise view.error(f"an axis up to {len(shape)}", axis)
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
    count = view.constant(1, "axes").size if view.optional(1) else len(view.integers("axes", ()))
    rank = len(rest) + count
    axes = _axes(view, rank)
    _emit_reshape(view, tuple(1 if i in axes else rest.pop(0) for i in range(rank)))


def _axes(view: OnnxNode, rank: int) -> set[int]:
    if view.optional(1) is not None:
        return {int(a) % rank for a in view.constant(1, "axes").reshape(-1)}
    return {a % rank for a in view.integers("axes", ())}


def _emit_reshape(view: OnnxNode, shape: tuple[int, ...]) -> None:
    data = view.operand(0)
    if _moves_integers(view, lambda array: array.reshape(shape), _kept_axis(view, shape)):
        return
    dtype = view.draft.tensors[data].dtype
    kind = ops.QReshape if dtype == "int8" else ops.Reshape
    node = kind(name=view.name, output=str(view.proto.output[0]), data=data)
    view.draft.emit(node, dtype, shape)


@converts("Transpose")
def _transpose(view: OnnxNode) -> None:
    rank = len(view.shape(0))
    perm = view.integers("perm", tuple(reversed(range(rank))))
    if _moves_integers(view, lambda array: array.transpose(perm), perm.index):
        return
    node = ops.Transpose(name=view.name, output=view.output, data=view.operand(0), perm=perm)
    view.draft.emit(node, view.dtype(0))


def _moves_integers(
    view: OnnxNode, change: Callable[[Array], Array], moved: Callable[[int], int | None]
) -> bool:
    """Whether a node's data are a constant's integers, dequantized: then these are moved now.

    ``moved`` gives the place of an axis in the result, None where it has none.
    """
    draft = view.draft
    source = draft.dequantized(view.operand(0))
    axis = None if source is None or source.axis is None else moved(source.axis)
    if source is None or (source.axis is not None and axis is None):
        return False
    integers = draft.add_constant(f"{view.name}.integers", change(draft.constants[source.data]))
    node = replace(source, name=view.name, output=view.output, data=integers, axis=axis)
    draft.emit(node, view.dtype(0))
    return True


def _kept_axis(view: OnnxNode, shape: tuple[int, ...]) -> Callable[[int], int | None]:
    """A function that gives the place of an axis in another shape, if it is there whole."""
    before = view.shape(0)

    def place(axis: int) -> int | None:
        rows = prod(before[:axis])
        places = (
            n for n, size in enumerate(shape) if size == before[axis] and prod(shape[:n]) == rows
        )
        return next(places, None)

    return place


@converts("Concat")
def _concat(view: OnnxNode) -> None:
    dtype, shape = view.common_dtype(), view.shape(0)
    axis = view.axis(view.integer("axis", 0), len(shape))
    names = tuple(
        n for n in view.operands() if view.draft.tensors[n].shape[axis : axis + 1] != (0,)
    )
    make = Maker(view)
    if len(names) == 1:
        make.result(names[0])
        return
    node = ops.Concat(name=view.name, output=view.output, parts=names, axis=axis)
    view.draft.emit(node, dtype)


@converts("DepthToSpace")
def _depth_to_space(view: OnnxNode) -> None:
    n, c, h, w = _image(view)
    size = view.integer("blocksize", 0)
    if size < 1 or c % (size * size):
        raise view.error("channels in blocks of blocksize²", f"{c} and {size}")
    make, depth = Maker(view), c // (size * size)
    if view.text("mode", "DCR") == "DCR":
        parts, perm = (n, size, size, depth, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, perm = (n, depth, size, size, h, w), (0, 1, 4, 2, 5, 3)
    moved = make.transpose(make.reshape(view.operand(0), parts), perm)
    make.result(make.reshape(moved, (n, depth, h * size, w * size)))


@converts("SpaceToDepth")
def _space_to_depth(view: OnnxNode) -> None:
    n, c, h, w = _image(view)
    size = view.integer("blocksize", 0)
    if size < 1 or h % size or w % size:
        raise view.error("an image in blocks of blocksize", f"{[h, w]} and {size}")
    if view.text("mode", "DCR") != "DCR":
        raise view.unsupported("mode DCR", view.text("mode", ""))
    make = Maker(view)
    parts = make.reshape(view.operand(0), (n, c, h // size, size, w // size, size))
    moved = make.transpose(parts, (0, 3, 5, 1, 2, 4))
    make.result(make.reshape(moved, (n, c * size * size, h // size, w // size)))


def _image(view: OnnxNode) -> tuple[int, int, int, int]:
    shape = view.shape(0)
    if len(shape) != 4:
        raise view.error("data of shape [N, C, H, W]", list(shape))
    return shape[0], shape[1], shape[2], shape[3]
