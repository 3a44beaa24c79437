"""The expression of a convolution and its schedule.

Tensors lie in channel blocks. With block_in = block_out = block they are
``data[n, g, ci, y, x, i]`` (N, groups, input blocks, H, W, block) and
``out[n, g, o, y, x, l]``; where the blocks differ, the larger one is split into sub-blocks
(axis ``s``) behind the image axes, so that the bytes in DRAM are the same. Dense layers are
convolutions of a 1 × 1 image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, INP, WGT, Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import (
    ConvSizes,
    ConvTile,
    kept_copies,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Var
from vdla.isa.config import Config


@dataclass(frozen=True)
class ConvTensors:
    """The tensors of a convolution's expression."""

    data: Tensor
    weight: Tensor
    bias: Tensor
    scale: Tensor
    out: Tensor
    padded: Tensor
    acc: Tensor
    residual: Tensor | None = None
    out_scale: Tensor | None = None
    wide: Tensor | None = None
    requantized: Tensor | None = None
    added: Tensor | None = None

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        optional = (self.residual, self.out_scale)
        return [self.data, self.weight, self.bias, self.scale, *(t for t in optional if t)]


def expression(shape: ConvSizes, config: Config) -> ConvTensors:
    """The expression of a convolution."""
    bi, bo = config.block_in, config.block_out
    block = config.channel_block
    si, so = block // bi, block // bo
    n, g = shape.batch, shape.groups
    kh, kw = shape.kernel
    out_shape = (n, g, shape.outputs, shape.out_height, shape.out_width, so, bo)
    blocks = g * shape.outputs * so
    data = te.placeholder((n, g, shape.inputs, shape.height, shape.width, si, bi), "int8", "data")
    weight = te.placeholder(
        (g, shape.outputs, so, shape.inputs, si, kh, kw, bo, bi), "int8", "weight"
    )
    bias = te.placeholder((blocks, bo), "int32", "bias")
    scale = te.placeholder((blocks, bo), "int32", "scale")

    def channel(g: Expr, o: Expr, s: Expr) -> Expr:
        return (g * shape.outputs + o) * so + s

    padded = _pad(data, shape)
    ci, cs = te.reduce_axis((0, shape.inputs), "ci"), te.reduce_axis((0, si), "cs")
    ky, kx = te.reduce_axis((0, kh), "ky"), te.reduce_axis((0, kw), "kx")
    i = te.reduce_axis((0, bi), "i")
    (sy, sx), (dy, dx) = shape.steps, shape.dilations

    def reduce(n: Expr, g: Expr, o: Expr, y: Expr, x: Expr, s: Expr, l: Expr) -> Expr:
        pixel = padded[n, g, ci, y * sy + ky * dy, x * sx + kx * dx, cs, i]
        tap = weight[g, o, s, ci, cs, ky, kx, l, i]
        product = pixel.astype("int32") * tap.astype("int32")
        return te.sum(product, axis=[ci, cs, ky, kx, i], init=bias[channel(g, o, s), l])

    acc = te.compute(out_shape, reduce, "acc")
    if shape.residual is None:
        out = te.compute(
            out_shape,
            lambda n, g, o, y, x, s, l: te.requantize(
                acc[n, g, o, y, x, s, l],
                scale[channel(g, o, s), l],
                shape.zero,
                shape.low,
                shape.high,
            ).astype("int8"),
            "out",
        )
        return ConvTensors(data, weight, bias, scale, out, padded, acc)

    r = shape.residual
    residual = te.placeholder(out_shape, "int8", "residual")
    out_scale = te.placeholder((1, bo), "int32", "out_scale")
    # The sum works on centred values, so the convolution's zero point cancels out.
    requantized = te.compute(
        out_shape,
        lambda n, g, o, y, x, s, l: te.requantize(
            acc[n, g, o, y, x, s, l],
            scale[channel(g, o, s), l],
            0,
            shape.low - shape.zero,
            shape.high - shape.zero,
        ),
        "requantized",
    )
    wide = te.compute(
        out_shape, lambda *at: residual[at].astype("int32") - te.const(r.zero), "wide"
    )
    added = te.compute(
        out_shape,
        lambda *at: requantized[at] * te.const(r.weight) + wide[at] * te.const(r.imm),
        "added",
    )
    out = te.compute(
        out_shape,
        lambda n, g, o, y, x, s, l: te.requantize(
            added[n, g, o, y, x, s, l], out_scale[0, l], r.out_zero, r.low, r.high
        ).astype("int8"),
        "out",
    )
    return ConvTensors(
        data, weight, bias, scale, out, padded, acc, residual, out_scale, wide, requantized, added
    )


def schedule(conv: ConvTensors, shape: ConvSizes, tile: ConvTile, config: Config) -> Schedule:
    """Tiles the convolution, places its data and tensorizes every stage."""
    ins = intrinsics(config)
    s = create_schedule(conv.out, conv.inputs, "conv2d")
    s[conv.acc].set_scope(ACC)
    inp = s.cache_read(conv.padded, INP, [conv.acc])
    s[conv.padded].compute_inline()
    wgt = s.cache_read(conv.weight, WGT, [conv.acc])
    bias = s.cache_read(conv.bias, ACC, [conv.acc])
    last = conv.out if conv.requantized is None else conv.requantized
    scale = s.cache_read(conv.scale, ACC, [last])

    tiles = _tile_output(s, conv.out, tile)
    if tile.vthreads > 1:
        s[conv.out].bind(tiles.innermost, te.thread_axis("vthread", threads=tile.vthreads))
    _finish(s, conv, tiles.innermost, ins)
    s[conv.acc].compute_at(s[conv.out], tiles.innermost)
    if not tile.resident:
        s[bias].compute_at(s[conv.out], tiles.innermost)
        s[scale].compute_at(s[conv.out], tiles.innermost)
    _schedule_reduction(s, conv, tile, tiles, inp, wgt, config)
    _double_buffer(s, shape, tile, inp, wgt)
    s[inp].tensorize(s[inp].leaf_iter_vars[-1], ins.load_inp_pad if shape.padded else ins.load_inp)
    s[wgt].tensorize(s[wgt].leaf_iter_vars[-2], ins.load_wgt)
    s[bias].tensorize(s[bias].axis[-1], ins.load_acc)
    s[scale].tensorize(s[scale].axis[-1], ins.load_acc)
    s[conv.out].tensorize(tiles.lanes, ins.store8)
    return s


@dataclass(frozen=True)
class _Tiles:
    """Loops over tiles by axis, the innermost one, the lanes."""

    outer: Mapping[str, Var]
    innermost: Var
    lanes: Var


def _tile_output(s: Schedule, out: Tensor, tile: ConvTile) -> _Tiles:
    """Tiles the output. A part is stored when it is ready."""
    n, g, o, y, x, sub, l = s[out].axis
    oo, oi = s[out].split(o, factor=tile.outputs)
    yo, yi = s[out].split(y, factor=tile.rows)
    xo, xi = s[out].split(x, factor=tile.cols)
    loops = {"n": n, "g": g, "o": oo, "y": yo, "x": xo}
    outer = {axis: loops[axis] for axis in tile.order}
    s[out].reorder(*outer.values(), oi, sub, yi, xi, l)
    part, _ = s[out].split(oi, factor=tile.weights)
    s[out].unroll(part)
    return _Tiles(outer, outer[tile.order[-1]], l)


def _finish(s: Schedule, conv: ConvTensors, where: Var, ins: Intrinsics) -> None:
    """Places the stages between a convolution and its residual sum."""
    if conv.added is None:
        return
    assert conv.wide is not None
    assert conv.requantized is not None
    assert conv.out_scale is not None
    out_scale = s.cache_read(conv.out_scale, ACC, [conv.out])
    s[out_scale].tensorize(s[out_scale].axis[-1], ins.load_acc)
    finish = {
        conv.added: ins.alu_wadd,
        conv.wide: ins.load_acc8,
        conv.requantized: ins.alu_rq,
    }
    for stage in finish:
        s[stage].set_scope(ACC)
    for stage, intrin in finish.items():
        s[stage].compute_at(s[conv.out], where)
        n, g, o, y, x, sub, l = s[stage].axis
        s[stage].reorder(n, g, o, sub, y, x, l)
        s[stage].tensorize(l, intrin)


def _schedule_reduction(
    s: Schedule,
    conv: ConvTensors,
    tile: ConvTile,
    tiles: _Tiles,
    inp: Tensor,
    wgt: Tensor,
    config: Config,
) -> None:
    """Splits the reduction into steps that fit on chip and attaches the loads to them.

    What is kept is loaded in the portions in which the steps need it.
    """
    acc = s[conv.acc]
    n, g, o, y, x, sub, l = acc.axis
    ci, cs, ky, kx, i = acc.reduce_axis
    co, ci = acc.split(ci, factor=tile.inputs)
    oo, oi = acc.split(o, factor=tile.weights)
    acc.reorder(n, g, co, oo, oi, sub, y, x, ci, cs, ky, kx, l, i)
    if tile.stationary == "inp":
        s[inp].compute_at(s[conv.out], tiles.outer["x"])
        portion, _ = s[inp].split(s[inp].axis[2], factor=tile.inputs)
        s[inp].unroll(portion)
    else:
        s[inp].compute_at(acc, co)
    if tile.stationary == "wgt":
        s[wgt].compute_at(s[conv.out], tiles.outer["o"])
        portion, _ = s[wgt].split(s[wgt].axis[1], factor=tile.weights)
        s[wgt].unroll(portion)
        acc.unroll(co)
        acc.unroll(oo)
    else:
        s[wgt].compute_at(acc, oo)
    acc.tensorize(l, intrinsics(config).gemm)


def _double_buffer(s: Schedule, shape: ConvSizes, tile: ConvTile, inp: Tensor, wgt: Tensor) -> None:
    """Sets how many copies the buffers of the image and of the weights get."""
    kept = kept_copies(shape, tile)
    s[inp].double_buffer(kept if tile.stationary == "inp" else tile.stages)
    s[wgt].double_buffer(kept if tile.stationary == "wgt" else tile.stages)


def _pad(data: Tensor, shape: ConvSizes) -> Tensor:
    """The image that windows step over: padded, and without what strides skip."""
    top, left, bottom, right = shape.pads
    n, g, c, h, w, sub, lanes = data.shape
    fy, fx = shape.sampling
    rows = shape.out_height if fy > 1 else h + top + bottom
    cols = shape.out_width if fx > 1 else w + left + right

    def value(n: Expr, g: Expr, c: Expr, y: Expr, x: Expr, s: Expr, i: Expr) -> Expr:
        y, x = y * fy - top, x * fx - left
        if not shape.padded:
            return data[n, g, c, y, x, s, i]
        inside = te.all(y >= 0, y < h, x >= 0, x < w)
        return te.if_then_else(inside, data[n, g, c, y, x, s, i], te.const(shape.in_zero, "int8"))

    return te.compute((n, g, c, rows, cols, sub, lanes), value, "padded")
