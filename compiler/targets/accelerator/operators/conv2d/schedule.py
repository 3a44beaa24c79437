"""The expression of a convolution and its schedule.

Tensors lie in channel blocks. With block_in = block_out = block they are
``data[n, g, ci, y, x, i]`` (N, groups, input blocks, H, W, block) and
``out[n, g, o, y, x, l]``; where the blocks differ, the larger one is split into sub-blocks
(axis ``s``) behind the image axes, so that the bytes in DRAM are the same. Dense layers are
convolutions of a 1 × 1 image. Data of 16 bits have an axis of bytes behind N: the low ones' sums
are shifted right by 8 and added to the high ones'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from vdla.compiler import te
from vdla.compiler.graph.ops.wide import AFTER_BITS, BYTE_BITS, MOST_FACTOR
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import (
    ACC,
    INP,
    Intrinsics,
    intrinsics,
)
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import (
    ConvSizes,
    ConvTile,
    Residual,
    kept_copies,
)
from vdla.compiler.targets.accelerator.operators.stages import Steps, place
from vdla.compiler.targets.accelerator.options.tables import TAB
from vdla.compiler.targets.accelerator.options.weights4 import hold_weights, weights
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Var
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.options.tables import TABLE_RESULTS


@dataclass(frozen=True)
class ConvTensors:
    """The tensors of a convolution's expression.

    ``channels`` are what ACC holds for each channel: biases, the first scale, or numbers that make
    16 bits of sums. ``rows`` are what it holds for all: scales of later requantizations, shifts of
    bytes. ``steps`` stand between sums and result with their instructions, the last one first;
    ``fixed`` is a residual of each channel, widened. ``tiles`` are the weights as int8.
    """

    data: Tensor
    weight: Tensor
    tiles: Tensor
    channels: list[Tensor]
    rows: list[Tensor]
    padded: Tensor
    acc: Tensor
    steps: Steps
    out: Tensor
    residual: Tensor | None = None
    table: Tensor | None = None
    fixed: Tensor | None = None

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        residual, table = ([] if t is None else [t] for t in (self.residual, self.table))
        return [self.data, self.weight, *self.channels, *residual, *self.rows, *table]

    @property
    def bias(self) -> Tensor:
        """The biases, one vector after another, of both bytes where there are two."""
        return self.channels[0]


@lru_cache(maxsize=256)
def expression(shape: ConvSizes, config: Config) -> ConvTensors:
    """The expression of a convolution."""
    bi, bo = config.block_in, config.block_out
    block = config.channel_block
    si, so = block // bi, block // bo
    n, g = shape.batch, shape.groups
    kh, kw = shape.kernel
    out_shape = (n, g, shape.outputs, shape.out_height, shape.out_width, so, bo)
    blocks = g * shape.outputs * so
    planes = (2,) if shape.bytes else ()
    image = (shape.inputs, shape.height, shape.width, si, bi)
    data = te.placeholder((n, *planes, g, *image), "int8", "data")
    size = g, shape.outputs, so, shape.inputs, si, kh, kw, bo, bi
    weight, tiles = weights(size, "weight", weights4=shape.weights4)
    bias = te.placeholder((*planes, blocks, bo), "int32", "bias")

    padded = _spread(data, shape) if shape.spread else _pad(data, shape)
    ci, cs = te.reduce_axis((0, shape.inputs), "ci"), te.reduce_axis((0, si), "cs")
    ky, kx = te.reduce_axis((0, kh), "ky"), te.reduce_axis((0, kw), "kx")
    i = te.reduce_axis((0, bi), "i")
    (sy, sx), (dy, dx) = shape.steps, shape.dilations

    def reduce(*at: Expr) -> Expr:
        *images, g, o, y, x, s, l = at
        if shape.spread:
            pixel = padded[(*images, kx, g, ci, y * sy, x, cs, i)]
        else:
            pixel = padded[(*images, g, ci, y * sy + ky * dy, x * sx + kx * dx, cs, i)]
        tap = tiles[g, o, s, ci, cs, ky, kx, l, i]
        product = pixel.astype("int32") * tap.astype("int32")
        start = bias[(*images[1:], _channels(shape, so, g, o, s), l)]
        return te.sum(product, axis=[ci, cs, ky, kx, i], init=start)

    acc = te.compute((n, *planes, *out_shape[1:]), reduce, "acc")
    finish = _Finish(shape, acc, intrinsics(config))
    if shape.bytes:
        finish.join_bytes()
    if shape.wide:
        finish.widen()
    else:
        finish.begin()
    if shape.residual is not None:
        finish.add(shape.residual)
    if shape.table:
        finish.look_up()

    def result(n: Expr, g: Expr, o: Expr, y: Expr, x: Expr, s: Expr, l: Expr) -> Expr:
        at = (n, g, o, y, x, s, l)
        return finish.last[at] if shape.wide else finish.narrowed(at).astype("int8")

    out = te.compute(out_shape, result, "out")
    fixed = finish.wide if shape.fixed else None
    between = finish.steps[::-1], out, finish.residual, finish.table, fixed
    channels = [bias, *finish.channels]
    return ConvTensors(data, weight, tiles, channels, finish.rows, padded, acc, *between)


def _channels(shape: ConvSizes, parts: int, g: Expr, o: Expr, s: Expr) -> Expr:
    """Index of the vector of an output's channels among those of all channels."""
    return (g * shape.outputs + o) * parts + s


class _Finish:
    """Steps that a convolution's sums go through, one by one; STORE requantizes what comes last, or
    writes it as it is.

    ``limits`` are the zero point and the bounds of the next requantization, by the last of
    ``scales``.
    """

    def __init__(self, shape: ConvSizes, acc: Tensor, ins: Intrinsics) -> None:
        self.shape, self.ins, self.last = shape, ins, acc
        self.limits = shape.zero, shape.low, shape.high
        self.blocks = shape.groups * shape.outputs * acc.shape[-2]
        self.lanes = acc.shape[-1]
        self.channels: list[Tensor] = []
        self.rows: list[Tensor] = []
        self.scales: list[Tensor] = []
        self.steps = Steps()
        self.residual: Tensor | None = None
        self.wide: Tensor | None = None
        self.table: Tensor | None = None

    def begin(self) -> None:
        """Gives the first requantization its scales, one for each channel."""
        self.scales.append(self._per_channel("scale"))

    def join_bytes(self) -> None:
        """Adds both bytes' sums, the low ones' shifted right by 8."""
        acc, planes = self.last, self.last.shape[1]
        shifts = te.placeholder((planes, self.lanes), "int32", "shifts", value_range=(0, BYTE_BITS))
        self.rows.append(shifts)
        shifted = te.compute(acc.shape, lambda *at: acc[at] >> shifts[at[1], at[-1]], "shifted")
        self._step(shifted, self.ins.alu_shr)
        b = te.reduce_axis((0, planes), "b")
        total = te.compute(
            (acc.shape[0], *acc.shape[2:]),
            lambda n, *at: te.sum(shifted[(n, b, *at)], axis=b),
            "total",
        )
        self._step(total, self.ins.alu_add_reduce)

    def widen(self) -> None:
        """Makes 16 bits of sums: clips them, shifts them, multiplies and rounds."""
        least, most = self._per_channel("least"), self._per_channel("most")
        before = self._per_channel("before", (0, 31))
        factor = self._per_channel("factor", (0, MOST_FACTOR))
        half, after = te.const(1 << (AFTER_BITS - 1)), te.const(AFTER_BITS)
        ins = self.ins
        self._each("below", lambda x, row: te.minimum(x, row(most)), ins.alu_min)
        self._each("above", lambda x, row: te.maximum(x, row(least)), ins.alu_max)
        self._each("reduced", lambda x, row: x >> row(before), ins.alu_shr)
        self._each("scaled", lambda x, row: x * row(factor), ins.alu_mul)
        self._each("more", lambda x, row: x + half, ins.alu_add_imm)
        self._each("rounded", lambda x, row: x >> after, ins.alu_shr_imm)

    def _each(
        self,
        name: str,
        value: Callable[[Expr, Callable[[Tensor], Expr]], Expr],
        intrin: TensorIntrin,
    ) -> None:
        """A step on every element, which may read its channel's entry of a tensor."""
        last = self.last

        def element(*at: Expr) -> Expr:
            _, g, o, _, _, s, l = at
            channel = _channels(self.shape, last.shape[-2], g, o, s)
            return value(last[at], lambda tensor: tensor[channel, l])

        self._step(te.compute(last.shape, element, name), intrin)

    def _step(self, tensor: Tensor, intrin: TensorIntrin) -> None:
        self.steps.append((tensor, intrin))
        self.last = tensor

    def _per_channel(self, name: str, bounds: tuple[int, int] | None = None) -> Tensor:
        tensor = te.placeholder((self.blocks, self.lanes), "int32", name, value_range=bounds)
        self.channels.append(tensor)
        return tensor

    def narrowed(self, at: tuple[Expr, ...]) -> Expr:
        """The requantized element at a place."""
        _, g, o, _, _, s, l = at
        first = len(self.scales) == 1
        row = _channels(self.shape, self.last.shape[-2], g, o, s) if first else te.const(0)
        return te.requantize(self.last[at], self.scales[-1][row, l], *self.limits)

    def add(self, residual: Residual) -> None:
        """Adds a residual to centred values, so that the convolution's zero point cancels out."""
        zero, low, high = self.limits
        self.limits = 0, low - zero, high - zero
        own = self._requantize("requantized", "out_scale")
        n, g, o, y, x, s, l = own.shape
        size = (1, g, o, 1, 1, s, l) if self.shape.fixed else (n, g, o, y, x, s, l)
        self.residual = data = te.placeholder(size, "int8", "residual")
        self.wide = wide = te.compute(
            size, lambda *at: data[at].astype("int32") - te.const(residual.zero), "wide"
        )
        terms = te.const(residual.weight), te.const(residual.imm)

        def total(n: Expr, g: Expr, o: Expr, y: Expr, x: Expr, s: Expr, l: Expr) -> Expr:
            place = (0, g, o, 0, 0, s, l) if self.shape.fixed else (n, g, o, y, x, s, l)
            return own[n, g, o, y, x, s, l] * terms[0] + wide[place] * terms[1]

        added = te.compute(own.shape, total, "added")
        if not self.shape.fixed:
            self.steps.append((wide, self.ins.load_acc8))
        self.steps.append((added, self.ins.alu_wadd))
        self.last, self.limits = added, (residual.out_zero, residual.low, residual.high)

    def look_up(self) -> None:
        """Looks the int8 value up."""
        value = self._requantize("value", "one")
        self.table = table = te.placeholder((TABLE_RESULTS,), "int16", "table")
        self.last = te.compute(
            value.shape,
            lambda *at: table[value[at] & (TABLE_RESULTS - 1)].astype("int32"),
            "looked_up",
        )
        self.steps.append((self.last, self.ins.alu_table))
        self.limits = 0, -128, 127

    def _requantize(self, name: str, next_scale: str) -> Tensor:
        """A step that requantizes; the next requantization has a scale of its own."""
        result = te.compute(self.last.shape, lambda *at: self.narrowed(at), name)
        self.steps.append((result, self.ins.alu_rq))
        self.rows.append(te.placeholder((1, result.shape[-1]), "int32", next_scale))
        self.scales.append(self.rows[-1])
        return result


def schedule(conv: ConvTensors, shape: ConvSizes, tile: ConvTile, config: Config) -> Schedule:
    """Tiles the convolution, places its data and tensorizes every stage."""
    ins = intrinsics(config)
    s = create_schedule(conv.out, conv.inputs, "conv2d")
    s[conv.acc].set_scope(ACC)
    inp = s.cache_read(conv.padded, INP, [conv.acc])
    s[conv.padded].compute_inline()
    wgt, load_wgt = hold_weights(s, conv.tiles, conv.acc)
    bias = s.cache_read(conv.bias, ACC, [conv.acc])
    channels = [bias, *(_held(s, conv, tensor, ACC) for tensor in conv.channels[1:])]
    rows = [_held(s, conv, row, ACC) for row in conv.rows]
    if conv.table is not None:
        table = _held(s, conv, conv.table, TAB)
        s[table].tensorize(s[table].axis[-1], ins.load_tab)

    tiles = _tile_output(s, conv.out, tile)
    if tile.vthreads > 1:
        s[conv.out].bind(tiles.innermost, te.thread_axis("vthread", threads=tile.vthreads))
    of_channels = [*channels]
    if conv.fixed is not None:
        s[conv.fixed].set_scope(ACC)
        of_channels.append(conv.fixed)
    for stage, _ in conv.steps:
        *images, g, o, y, x, sub, l = s[stage].axis
        s[stage].reorder(*images, g, o, sub, y, x, l)
    place(s, conv.steps, conv.out, tiles.innermost)
    s[conv.acc].compute_at(s[conv.out], tiles.innermost)
    if not tile.resident:
        for each in of_channels:
            s[each].compute_at(s[conv.out], tiles.innermost)
    if conv.fixed is not None:
        s[conv.fixed].tensorize(s[conv.fixed].axis[-1], ins.load_acc8)
    _schedule_reduction(s, conv, tile, tiles, inp, wgt, config)
    _double_buffer(s, shape, tile, inp, wgt)
    s[inp].tensorize(s[inp].leaf_iter_vars[-1], ins.load_inp_pad if shape.padded else ins.load_inp)
    s[wgt].tensorize(s[wgt].leaf_iter_vars[-2], ins[load_wgt])
    for each in (*channels, *rows):
        s[each].tensorize(s[each].axis[-1], ins.load_acc)
    s[conv.out].tensorize(tiles.lanes, ins.store32 if shape.wide else ins.store8)
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


def _held(s: Schedule, conv: ConvTensors, constant: Tensor, scope: str) -> Tensor:
    """A copy on chip of what the stages behind the sums read."""
    stages = (conv.out, *(stage for stage, _ in conv.steps))
    users = [stage for stage in stages if constant in stage.compute_op.inputs]
    return s.cache_read(constant, scope, users)


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
    n, *planes, g, o, y, x, sub, l = acc.axis
    ci, cs, ky, kx, i = acc.reduce_axis
    co, ci = acc.split(ci, factor=tile.inputs)
    oo, oi = acc.split(o, factor=tile.weights)
    acc.reorder(n, g, co, oo, *planes, oi, sub, y, x, ci, cs, ky, kx, l, i)
    if tile.stationary == "inp":
        s[inp].compute_at(s[conv.out], tiles.outer["x"])
        portion, _ = s[inp].split(s[inp].axis[-5], factor=tile.inputs)
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


def _spread(data: Tensor, shape: ConvSizes) -> Tensor:
    """The image once for each tap of a window of one row, moved by it, with an axis of taps behind
    those of images."""
    *images, g, c, _, _, sub, lanes = data.shape
    taps, apart, fy = shape.kernel[1], shape.dilations[1], shape.sampling[0]

    def value(*at: Expr) -> Expr:
        *first, tap, g, c, y, x, s, i = at
        return data[(*first, g, c, y * fy, x + tap * apart, s, i)]

    size = (*images, taps, g, c, shape.out_height, shape.out_width, sub, lanes)
    return te.compute(size, value, "spread")


def _pad(data: Tensor, shape: ConvSizes) -> Tensor:
    """The image that windows step over: padded, and without what strides skip."""
    top, left, bottom, right = shape.pads
    *images, c, h, w, sub, lanes = data.shape
    fy, fx = shape.sampling
    rows = shape.out_height if fy > 1 else h + top + bottom
    cols = shape.out_width if fx > 1 else w + left + right

    def value(*at: Expr) -> Expr:
        *first, y, x, s, i = at
        y, x = y * fy - top, x * fx - left
        element = data[(*first, y, x, s, i)]
        if not shape.padded:
            return element
        inside = te.all(y >= 0, y < h, x >= 0, x < w)
        return te.if_then_else(inside, element, te.const(shape.in_zero, "int8"))

    return te.compute((*images, c, rows, cols, sub, lanes), value, "padded")
