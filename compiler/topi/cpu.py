"""Host operators as tensor expressions: element-wise, layout, and float.

Convolutions, dense layers and pools are in :mod:`vdla.compiler.topi.windows`. ``host_kernel`` is
the entry: a node in, a function and its arguments out. Integer operators equal
:mod:`vdla.compiler.graph.reference` bit for bit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import mul
from typing import Any

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph import ir
from vdla.compiler.graph.ir import Graph, Node, add_terms
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.topi import windows
from vdla.compiler.topi.host import EXPRESSIONS, HostKernel, Recipe, expresses, inside, requantize
from vdla.compiler.user import registered
from vdla.isa.numbers import pack_scale

__all__ = ["HostKernel", "host_function", "host_kernel", "windows"]


def host_kernel(node: Node, graph: Graph, symbol: str | None = None) -> HostKernel:
    """The host function of a node of a laid-out graph, with its arguments and own constants."""
    recipe = Recipe(node, graph)
    result = EXPRESSIONS[type(node)](recipe, node)
    return recipe.kernel(result, symbol or symbol_of(node))


def host_function(node: Node, graph: Graph) -> PrimFunc:
    """The loop IR of a node's host function."""
    return host_kernel(node, graph).func


def symbol_of(node: Node) -> str:
    """The node's name as a linker takes it."""
    return "host_" + re.sub(r"\W", "_", node.name, flags=re.ASCII)


# --- boundary -------------------------------------------------------------------------------------


def _per_axis(
    recipe: Recipe, values: Sequence[float] | Sequence[int], suffix: str, dtype: str
) -> Any:
    """What gives the scale or zero point at an index: a constant, or a lookup along the axis."""
    axis = recipe.node.axis
    if axis is None:
        scalar = te.const(values[0], dtype)
        return lambda i: scalar
    table = recipe.constant(suffix, np.asarray(values, dtype))
    return lambda i: table[i[axis]]


@expresses(ir.Custom)
def _custom(recipe: Recipe, node: ir.Custom) -> Tensor:
    inputs = [recipe.read(name) for name in node.operands]
    return registered(node.operator).expression(*inputs, **json.loads(node.settings))


@expresses(ir.Quantize)
def _quantize(recipe: Recipe, node: ir.Quantize) -> Tensor:
    data = recipe.read(node.data)
    scale = _per_axis(recipe, node.scale, "scale", "float32")
    zero = _per_axis(recipe, node.zero_point, "zero", "int32")
    limits = np.iinfo(recipe.out_dtype)
    lows = [float(limits.min - z) for z in node.zero_point]
    highs = [float(limits.max - z) for z in node.zero_point]
    low = _per_axis(recipe, lows, "low", "float32")
    high = _per_axis(recipe, highs, "high", "float32")

    def value(*i: Any) -> Any:
        rounded = te.rint(data[i] / scale(i))
        limited = te.minimum(te.maximum(rounded, low(i)), high(i))
        return (limited.astype("int32") + zero(i)).astype(recipe.out_dtype)

    return te.compute(recipe.out_shape, value, "quantized")


@expresses(ir.Dequantize)
def _dequantize(recipe: Recipe, node: ir.Dequantize) -> Tensor:
    data = recipe.read(node.data)
    wide = "int64" if data.dtype == "int32" else "int32"
    scale = _per_axis(recipe, node.scale, "scale", "float32")
    zero = _per_axis(recipe, node.zero_point, "zero", wide)

    def value(*i: Any) -> Any:
        return (data[i].astype(wide) - zero(i)).astype("float32") * scale(i)

    return te.compute(recipe.out_shape, value, "real")


@expresses(ir.FlipSign)
def _flip_sign(recipe: Recipe, node: ir.FlipSign) -> Tensor:
    data = recipe.read(node.data)
    step = -128 if data.dtype == "uint8" else 128

    def value(*i: Any) -> Any:
        return (data[i].astype("int32") + step).astype(recipe.out_dtype)

    return te.compute(recipe.out_shape, value, "flipped")


@expresses(ir.Pack)
def _pack(recipe: Recipe, node: ir.Pack) -> Tensor:
    n, c, *image = recipe.shape(node.data)
    data = recipe.read(node.data, (n, c, *(image or (1, 1))))

    def value(b: Any, outer: Any, y: Any, x: Any, lane: Any) -> Any:
        channel = outer * node.block + lane
        return te.select(channel < c, data[b, channel, y, x], te.const(0, "int8"))

    return te.compute(recipe.out_shape, value, "packed")


@expresses(ir.Unpack)
def _unpack(recipe: Recipe, node: ir.Unpack) -> Tensor:
    data = recipe.read(node.data)
    n, c, *image = recipe.shape(node.output)
    block = node.block

    def value(b: Any, channel: Any, y: Any, x: Any) -> Any:
        return data[b, te.floordiv(channel, block), y, x, te.floormod(channel, block)]

    return te.compute((n, c, *(image or (1, 1))), value, "unpacked")


@expresses(ir.Im2col)
def _im2col(recipe: Recipe, node: ir.Im2col) -> Tensor:
    data = recipe.read(node.data)
    _, _, h, w = data.shape
    (kh, kw), (sy, sx), (dy, dx) = node.kernel, node.strides, node.dilations
    top, left, _, _ = node.pads
    fill = te.const(node.fill, "int8")

    def value(b: Any, channel: Any, y: Any, x: Any) -> Any:
        ky, kx = te.floormod(te.floordiv(channel, kw), kh), te.floormod(channel, kw)
        row, col = y * sy + ky * dy - top, x * sx + kx * dx - left
        seen = data[b, te.floordiv(channel, kh * kw), row, col]
        return te.if_then_else(te.all(inside(row, h), inside(col, w)), seen, fill)

    return te.compute(recipe.out_shape, value, "taps")


@expresses(ir.Fused)
def _fused(recipe: Recipe, node: ir.Fused) -> Tensor:
    for part in node.parts:
        result = EXPRESSIONS[type(part)](replace(recipe, node=part), part)
        if isinstance(part, ir.Im2col) and part.data in recipe.made:
            recipe.kept.append(recipe.made[part.data])
        recipe.made[part.output] = result
    return result


# --- shapes ---------------------------------------------------------------------------------------


@expresses(ir.Reshape, ir.QReshape)
def _reshape(recipe: Recipe, node: ir.Reshape) -> Tensor:
    count = reduce(mul, recipe.out_shape, 1)
    data = recipe.read(node.data, (count,))
    return te.compute((count,), lambda i: data[i], "copied")


@expresses(ir.Transpose, ir.QTranspose)
def _transpose(recipe: Recipe, node: ir.Transpose) -> Tensor:
    data = recipe.read(node.data)
    place = [node.perm.index(axis) for axis in range(len(node.perm))]
    return te.compute(recipe.out_shape, lambda *i: data[tuple(i[p] for p in place)], "transposed")


def _joined(recipe: Recipe, axis: int, parts: list[Any], sizes: list[int]) -> Tensor:
    """The parts, functions of an index, one behind another along ``axis``."""

    def value(*i: Any) -> Any:
        result, start = None, sum(sizes)
        for part, size in zip(reversed(parts), reversed(sizes), strict=True):
            start -= size
            here = part(*i[:axis], i[axis] - start, *i[axis + 1 :])
            result = here if result is None else te.select(i[axis] < start + size, here, result)
        return result

    return te.compute(recipe.out_shape, value, "joined")


@expresses(ir.Concat)
def _concat(recipe: Recipe, node: ir.Concat) -> Tensor:
    tensors = [recipe.read(name) for name in node.parts]
    return _joined(recipe, node.axis, list(tensors), [t.shape[node.axis] for t in tensors])


@expresses(ir.QConcat)
def _qconcat(recipe: Recipe, node: ir.QConcat) -> Tensor:
    parts, sizes = [], []
    for name, scale, zero in zip(node.parts, node.scales, node.zps, strict=True):
        tensor = recipe.read(name)
        sizes.append(tensor.shape[node.axis])
        plain = scale == 1.0 and zero == node.out_zp and (node.lo, node.hi) == (-128, 127)
        parts.append(tensor if plain else _moved(tensor, scale, zero, node))
    return _joined(recipe, node.axis, parts, sizes)


def _moved(tensor: Tensor, scale: float, zero: int, node: Any) -> Any:
    """``tensor`` at the scale and zero point of ``node``'s result."""
    word = te.const(pack_scale(scale), "int32")

    def value(*i: Any) -> Any:
        centered = tensor[i].astype("int32") - zero
        return requantize(centered, word, node.out_zp, node.lo, node.hi)

    return value


# --- element-wise ---------------------------------------------------------------------------------


@expresses(ir.QClip)
def _qclip(recipe: Recipe, node: ir.QClip) -> Tensor:
    data = recipe.read(node.data)
    return te.compute(recipe.out_shape, _moved(data, node.scale, node.in_zp, node), "clipped")


@expresses(ir.QAdd)
def _qadd(recipe: Recipe, node: ir.QAdd) -> Tensor:
    a, b = recipe.read(node.a), recipe.read(node.b)
    term_a, term_b, k = add_terms(*node.scales)
    word = te.const(pack_scale(2.0**-k), "int32")

    def value(*i: Any) -> Any:
        left = (a[i].astype("int32") - node.a_zp) * term_a
        right = (b[i].astype("int32") - node.b_zp) * term_b
        return requantize(left + right, word, node.out_zp, node.lo, node.hi)

    return te.compute(recipe.out_shape, value, "added")


@expresses(ir.Add)
def _add(recipe: Recipe, node: ir.Add) -> Tensor:
    a, b = _broadcast(recipe, node)
    return te.compute(recipe.out_shape, lambda *i: a(i) + b(i), "added")


def _broadcast(recipe: Recipe, node: Any) -> list[Any]:
    """The two operands as functions of an index of the result."""

    def spread(tensor: Tensor, i: Any) -> Any:
        skipped = len(i) - len(tensor.shape)
        fixed = [
            te.const(0, "int32") if size == 1 else v
            for size, v in zip(tensor.shape, i[skipped:], strict=True)
        ]
        return tensor[tuple(fixed)]

    return [partial(spread, recipe.read(name)) for name in (node.a, node.b)]


UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "sigmoid": lambda x, n: te.sigmoid(x),
    "tanh": lambda x, n: te.tanh(x),
    "exp": lambda x, n: te.exp(x),
    "log": lambda x, n: te.log(x),
    "sqrt": lambda x, n: te.sqrt(x),
    "abs": lambda x, n: te.abs(x),
    "neg": lambda x, n: _real(0) - x,
    "floor": lambda x, n: te.floor(x),
    "erf": lambda x, n: te.erf(x),
    "leaky_relu": lambda x, n: _bent(x, _real(n.alpha)),
    "elu": lambda x, n: te.select(
        x > _real(0), x, _real(n.alpha) * (te.exp(te.minimum(x, _real(0))) - _real(1))
    ),
    "hard_sigmoid": lambda x, n: _unit(_real(n.alpha) * x + _real(n.beta)),
    "hard_swish": lambda x, n: x * _unit(x / _real(6) + _real(0.5)),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: te.power(a, b),
    "max": lambda a, b: te.maximum(a, b),
    "min": lambda a, b: te.minimum(a, b),
    "prelu": lambda a, b: _bent(a, b),
}


def _real(value: float) -> Any:
    return te.const(ir.f32(value), "float32")


def _bent(x: Any, slope: Any) -> Any:
    """``x`` where it is positive, ``slope * x`` elsewhere."""
    return te.maximum(x, _real(0)) + slope * te.minimum(x, _real(0))


def _unit(x: Any) -> Any:
    return te.minimum(te.maximum(x, _real(0)), _real(1))


@expresses(ir.Unary)
def _unary(recipe: Recipe, node: ir.Unary) -> Tensor:
    data, function = recipe.read(node.data), UNARY[node.function]
    return te.compute(recipe.out_shape, lambda *i: function(data[i], node), node.function)


@expresses(ir.Binary)
def _binary(recipe: Recipe, node: ir.Binary) -> Tensor:
    a, b = _broadcast(recipe, node)
    function = BINARY[node.function]
    return te.compute(recipe.out_shape, lambda *i: function(a(i), b(i)), node.function)


@expresses(ir.Relu)
def _relu(recipe: Recipe, node: ir.Relu) -> Tensor:
    data = recipe.read(node.data)
    zero = te.const(0.0, "float32")
    return te.compute(recipe.out_shape, lambda *i: te.maximum(data[i], zero), "positive")


@expresses(ir.Clip)
def _clip(recipe: Recipe, node: ir.Clip) -> Tensor:
    data = recipe.read(node.data)
    low, high = (te.const(ir.f32(v), "float32") for v in (node.low, node.high))
    return te.compute(
        recipe.out_shape, lambda *i: te.minimum(te.maximum(data[i], low), high), "clipped"
    )


@expresses(ir.BatchNorm)
def _batch_norm(recipe: Recipe, node: ir.BatchNorm) -> Tensor:
    data, factor, offset = (recipe.read(n) for n in (node.data, node.factor, node.offset))
    return te.compute(
        recipe.out_shape, lambda *i: data[i] * factor[i[1]] + offset[i[1]], "normalized"
    )


@expresses(ir.Softmax)
def _softmax(recipe: Recipe, node: ir.Softmax) -> Tensor:
    data = recipe.read(node.data)
    shape, axis = data.shape, node.axis
    rest = (*shape[:axis], *shape[axis + 1 :]) or (1,)
    size = shape[axis]

    def at(i: Any, k: Any) -> Any:
        return (*i[:axis], k, *i[axis:])[: len(shape)]

    r, k = te.reduce_axis((0, size), "r"), te.reduce_axis((0, size), "k")
    top = te.compute(rest, lambda *i: te.max(data[at(i, r)], axis=r), "top")

    def without(i: Any) -> Any:
        return (*i[:axis], *i[axis + 1 :]) or (0,)

    e = te.compute(shape, lambda *i: te.exp(data[i] - top[without(i)]), "e")
    total = te.compute(rest, lambda *i: te.sum(e[at(i, k)], axis=k), "total")
    return te.compute(shape, lambda *i: e[i] / total[without(i)], "softmax")
