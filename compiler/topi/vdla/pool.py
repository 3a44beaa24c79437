"""Max and average pooling: bytes widened on the way in, reduced by the ALU, requantized out."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.target import ACC, intrinsics
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.config import Config


@dataclass(frozen=True)
class PoolShape:
    """A pool over channel blocks; ``kind`` is "max" or "sum" (of values less ``in_zero``)."""

    kind: str
    batch: int
    blocks: int
    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    in_zero: int
    zero: int
    low: int
    high: int

    @property
    def out_height(self) -> int:
        """Rows of the output."""
        reach = (self.kernel[0] - 1) * self.dilations[0] + 1
        return (self.height + self.pads[0] + self.pads[2] - reach) // self.strides[0] + 1

    @property
    def out_width(self) -> int:
        """Columns of the output."""
        reach = (self.kernel[1] - 1) * self.dilations[1] + 1
        return (self.width + self.pads[1] + self.pads[3] - reach) // self.strides[1] + 1

    @property
    def pad_value(self) -> int:
        """What never wins, or adds nothing."""
        return -128 if self.kind == "max" else self.in_zero


@dataclass(frozen=True)
class PoolTile:
    """Channel blocks and output pixels of one tile; ``axis`` (c, y, x) is shared by threads."""

    blocks: int
    rows: int
    cols: int
    vthreads: int = 1
    axis: str = "c"


@dataclass(frozen=True)
class Pool:
    """The tensors of a pool's expression."""

    data: Tensor
    scale: Tensor
    padded: Tensor
    wide: Tensor
    acc: Tensor
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        return [self.data, self.scale]


def pool(shape: PoolShape, config: Config) -> Pool:
    """The expression of a pool."""
    lanes, sub = config.block_out, config.channel_block // config.block_out
    top, left, bottom, right = shape.pads
    h, w = shape.height, shape.width
    data = te.placeholder((shape.batch, shape.blocks, h, w, sub, lanes), "int8", "data")
    scale = te.placeholder((1, lanes), "int32", "scale")
    padded_shape = (shape.batch, shape.blocks, h + top + bottom, w + left + right, sub, lanes)

    def pad(n: Expr, c: Expr, y: Expr, x: Expr, s: Expr, l: Expr) -> Expr:
        if not any(shape.pads):
            return data[n, c, y, x, s, l]
        inside = te.all(y >= top, y < h + top, x >= left, x < w + left)
        outside = te.const(shape.pad_value, "int8")
        return te.if_then_else(inside, data[n, c, y - top, x - left, s, l], outside)

    padded = te.compute(padded_shape, pad, "padded")
    offset = 0 if shape.kind == "max" else shape.in_zero
    wide = te.compute(padded_shape, lambda *i: padded[i].astype("int32") - te.const(offset), "wide")
    ky = te.reduce_axis((0, shape.kernel[0]), "ky")
    kx = te.reduce_axis((0, shape.kernel[1]), "kx")
    (sy, sx), (dy, dx) = shape.strides, shape.dilations
    combine = te.max if shape.kind == "max" else te.sum
    dims = (shape.batch, shape.blocks, shape.out_height, shape.out_width, sub, lanes)
    acc = te.compute(
        dims,
        lambda n, c, y, x, s, l: combine(
            wide[n, c, y * sy + ky * dy, x * sx + kx * dx, s, l], axis=[ky, kx]
        ),
        "acc",
    )
    out = te.compute(
        dims,
        lambda n, c, y, x, s, l: te.requantize(
            acc[n, c, y, x, s, l], scale[0, l], shape.zero, shape.low, shape.high
        ).astype("int8"),
        "out",
    )
    return Pool(data, scale, padded, wide, acc, out)


def schedule_pool(expression: Pool, shape: PoolShape, tile: PoolTile, config: Config) -> Schedule:
    """Tiles the output and tensorizes every stage."""
    ins, e = intrinsics(config), expression
    s = te.create_schedule(e.out, e.inputs, "pool")
    scale = s.cache_read(e.scale, ACC, [e.out])
    s[scale].tensorize(s[scale].axis[-1], ins.load_acc)
    s[e.wide].set_scope(ACC)
    s[e.acc].set_scope(ACC)
    s[e.padded].compute_inline()
    n, c, y, x, sub, lanes = s[e.out].axis
    co, ci = s[e.out].split(c, factor=tile.blocks)
    yo, yi = s[e.out].split(y, factor=tile.rows)
    xo, xi = s[e.out].split(x, factor=tile.cols)
    outer = {"c": co, "y": yo, "x": xo}
    s[e.out].reorder(n, co, yo, xo, ci, sub, yi, xi, lanes)
    outer[tile.axis], thread = s[e.out].split(outer[tile.axis], factor=tile.vthreads)
    s[e.out].reorder(n, *outer.values(), thread, ci, sub, yi, xi, lanes)
    if tile.vthreads > 1:
        s[e.out].bind(thread, te.thread_axis("vthread"))
    s[e.acc].compute_at(s[e.out], thread)
    s[e.wide].compute_at(s[e.out], thread)
    n, c, y, x, sub, l = s[e.acc].axis
    ky, kx = s[e.acc].reduce_axis
    s[e.acc].reorder(n, c, sub, y, x, ky, kx, l)
    s[e.acc].tensorize(l, ins.alu_max_reduce if shape.kind == "max" else ins.alu_add_reduce)
    padded = any(shape.pads)
    s[e.wide].tensorize(s[e.wide].axis[-1], ins.load_acc8_pad if padded else ins.load_acc8)
    s[e.out].tensorize(lanes, ins.store8)
    return s
