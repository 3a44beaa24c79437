"""Convolutions, dense layers and pools for the host.

A convolution runs over a padded copy of its data in N, H, W, C order, centered and widened to
int16, with its weights as [O, KH, KW * I]: the innermost loop is a dot product over neighbouring
bytes of a row, which LLVM vectorizes. A depthwise convolution has no such product; there the
channels are the innermost loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph import ir
from vdla.compiler.graph.ir import Array, add_terms
from vdla.compiler.graph.numbers import pack_scales
from vdla.compiler.graph.reference import pool_words, window_counts
from vdla.compiler.te import Tensor
from vdla.compiler.topi.host import Recipe, expresses, inside, requantize
from vdla.isa.numbers import pack_scale


def _padded(data: Tensor, node: ir.Window, zero_point: int, dtype: str) -> Tensor:
    """[N, H, W * C]: centered data with its padding, channels innermost."""
    n, c, h, w = data.shape
    top, left, bottom, right = node.pads

    def value(b: Any, y: Any, x: Any, channel: Any) -> Any:
        real: Any = data[b, channel, y - top, x - left]
        if dtype == "int16":
            real = (real.astype("int32") - zero_point).astype(dtype)
        if not any(node.pads):
            return real
        here = te.all(inside(y - top, h), inside(x - left, w))
        return te.select(here, real, te.const(0, dtype))

    return te.compute((n, h + top + bottom, w + left + right, c), value, "padded")


def _sums(recipe: Recipe, node: Any, zero_point: int, wide: str) -> Tensor:
    """[N, OH, OW, O]: bias + Σ data * weight, in int32 or float32."""
    data = recipe.read(node.data)
    o, i, kh, kw = recipe.shape(node.weight)
    groups = node.groups
    padded = _padded(data, node, zero_point, "int16" if wide == "int32" else wide)
    n, _, oh, ow = recipe.shape(node.output)
    (sh, sw), (dh, dw) = node.strides, node.dilations
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    per = o // groups
    start = _bias(recipe, node, wide)
    if i == 1 and groups > 1:
        weight = _weight(recipe, node.weight, (2, 3, 0, 1))

        def tap(b: Any, y: Any, x: Any, c: Any) -> Any:
            source = te.floordiv(c, per) if per > 1 else c
            seen = padded[b, y * sh + ry * dh, x * sw + rx * dw, source]
            product = seen.astype(wide) * weight(c, 0, ry, rx).astype(wide)
            return te.sum(product, axis=[ry, rx], init=start(c))

        return te.compute((n, oh, ow, o), tap, "acc")
    rc = te.reduce_axis((0, i), "rc")
    weight = _weight(recipe, node.weight, (0, 2, 3, 1))

    def dot(b: Any, y: Any, x: Any, c: Any) -> Any:
        source = te.floordiv(c, per) * i + rc if groups > 1 else rc
        seen = padded[b, y * sh + ry * dh, x * sw + rx * dw, source]
        product = seen.astype(wide) * weight(c, rc, ry, rx).astype(wide)
        return te.sum(product, axis=[ry, rx, rc], init=start(c))

    return te.compute((n, oh, ow, o), dot, "acc")


def _weight(recipe: Recipe, name: str, order: tuple[int, ...]) -> Any:
    """The weight at (o, i, y, x); a constant one is rearranged now, its axes in ``order``."""
    array = recipe.graph.constants.get(name)
    if array is None:
        plain = recipe.read(name)
        return lambda *i: plain[i]
    table = recipe.constant("weight", np.ascontiguousarray(array.transpose(order)))
    return lambda *i: table[tuple(i[axis] for axis in order)]


def _bias(recipe: Recipe, node: Any, wide: str) -> Any:
    if node.bias is None:
        zero = te.const(0, wide)
        return lambda c: zero
    bias = recipe.read(node.bias)
    return lambda c: bias[c]


def _words(recipe: Recipe, scale: Sequence[float]) -> Any:
    """The packed scale of a channel: a constant if all are equal."""
    words = pack_scales(scale)
    if (words == words[0]).all():
        word = te.const(int(words[0]), "int32")
        return lambda c: word
    table = recipe.constant("scale", words)
    return lambda c: table[c]


@expresses(ir.QConv2d)
def _qconv(recipe: Recipe, node: ir.QConv2d) -> Tensor:
    acc = _sums(recipe, node, node.in_zp, "int32")
    word = _words(recipe, node.scale)

    def value(b: Any, c: Any, y: Any, x: Any) -> Any:
        return requantize(acc[b, y, x, c], word(c), node.out_zp, node.lo, node.hi)

    return te.compute(recipe.out_shape, value, "out")


@expresses(ir.QConv2dAdd)
def _qconv_add(recipe: Recipe, node: ir.QConv2dAdd) -> Tensor:
    acc = _sums(recipe, node, node.in_zp, "int32")
    word = _words(recipe, node.scale)
    residual = recipe.read(node.residual)
    term, term_residual, k = add_terms(*node.add_scales)
    sum_word = te.const(pack_scale(2.0**-k), "int32")

    def value(b: Any, c: Any, y: Any, x: Any) -> Any:
        own = requantize(acc[b, y, x, c], word(c), node.out_zp, node.lo, node.hi)
        left = (own.astype("int32") - node.out_zp) * term
        right = (residual[b, c, y, x].astype("int32") - node.res_zp) * term_residual
        return requantize(left + right, sum_word, node.add_zp, node.add_lo, node.add_hi)

    return te.compute(recipe.out_shape, value, "out")


@expresses(ir.Conv2d)
def _conv(recipe: Recipe, node: ir.Conv2d) -> Tensor:
    acc = _sums(recipe, node, 0, "float32")
    return te.compute(recipe.out_shape, lambda b, c, y, x: acc[b, y, x, c], "out")


# --- dense ----------------------------------------------------------------------------------------


def _dense_sums(recipe: Recipe, node: Any, zero_point: int, wide: str) -> Tensor:
    n, i = recipe.shape(node.data)[:2]
    data, weight = recipe.read(node.data, (n, i)), recipe.read(node.weight)
    start = _bias(recipe, node, wide)
    r = te.reduce_axis((0, i), "r")
    source = data
    if wide == "int32":
        source = te.compute(
            (n, i), lambda b, k: (data[b, k].astype("int32") - zero_point).astype("int16"), "rows"
        )

    def dot(b: Any, c: Any) -> Any:
        product = source[b, r].astype(wide) * weight[c, r].astype(wide)
        return te.sum(product, axis=r, init=start(c))

    return te.compute((n, weight.shape[0]), dot, "acc")


@expresses(ir.QDense)
def _qdense(recipe: Recipe, node: ir.QDense) -> Tensor:
    acc = _dense_sums(recipe, node, node.in_zp, "int32")
    word = _words(recipe, node.scale)

    def value(b: Any, c: Any) -> Any:
        return requantize(acc[b, c], word(c), node.out_zp, node.lo, node.hi)

    return te.compute(recipe.out_shape, value, "out")


@expresses(ir.Dense)
def _dense(recipe: Recipe, node: ir.Dense) -> Tensor:
    return _dense_sums(recipe, node, 0, "float32")


# --- pools ----------------------------------------------------------------------------------------


def _window(data: Tensor, node: Any, outside: Any) -> Any:
    """What a pool sees at an output place and a place in its window."""
    _, _, h, w = data.shape
    top, left, _, _ = node.pads
    (sh, sw), (dh, dw) = node.strides, node.dilations

    def seen(b: Any, c: Any, y: Any, x: Any, ry: Any, rx: Any) -> Any:
        row, column = y * sh + ry * dh - top, x * sw + rx * dw - left
        if not any(node.pads):
            return data[b, c, row, column]
        here = te.all(inside(row, h), inside(column, w))
        return te.select(here, data[b, c, row, column], outside)

    return seen


def _pool_axes(node: Any) -> list[Any]:
    return [te.reduce_axis((0, node.kernel[0]), "ry"), te.reduce_axis((0, node.kernel[1]), "rx")]


@expresses(ir.MaxPool, ir.QMaxPool)
def _max_pool(recipe: Recipe, node: Any) -> Tensor:
    data = recipe.read(node.data)
    lowest = -128 if data.dtype == "int8" else -np.inf
    seen, axes = _window(data, node, te.const(lowest, data.dtype)), _pool_axes(node)
    return te.compute(recipe.out_shape, lambda *i: te.max(seen(*i, *axes), axis=axes), "out")


@expresses(ir.QAvgPool)
def _qavg_pool(recipe: Recipe, node: ir.QAvgPool) -> Tensor:
    data = recipe.read(node.data)
    seen, axes = _window(data, node, te.const(node.in_zp, "int8")), _pool_axes(node)

    def total(*i: Any) -> Any:
        return te.sum(seen(*i, *axes).astype("int32") - node.in_zp, axis=axes)

    acc = te.compute(recipe.out_shape, total, "acc")
    word = _pool_word(recipe, pool_words(node, recipe.shape(node.data)))

    def value(b: Any, c: Any, y: Any, x: Any) -> Any:
        return requantize(acc[b, c, y, x], word(y, x), node.out_zp, node.lo, node.hi)

    return te.compute(recipe.out_shape, value, "out")


def _pool_word(recipe: Recipe, words: Array) -> Any:
    if (words == words.flat[0]).all():
        word = te.const(int(words.flat[0]), "int32")
        return lambda y, x: word
    table = recipe.constant("scale", words)
    return lambda y, x: table[y, x]


@expresses(ir.AvgPool)
def _avg_pool(recipe: Recipe, node: ir.AvgPool) -> Tensor:
    data = recipe.read(node.data)
    seen, axes = _window(data, node, te.const(0, "float32")), _pool_axes(node)
    total = te.compute(recipe.out_shape, lambda *i: te.sum(seen(*i, *axes), axis=axes), "total")
    counts = window_counts(node, recipe.shape(node.data)).astype(np.float32)
    table = recipe.constant("count", counts)
    return te.compute(recipe.out_shape, lambda b, c, y, x: total[b, c, y, x] / table[y, x], "out")
