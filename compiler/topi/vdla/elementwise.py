"""Residual addition on its own: two int8 tensors, one weighted sum, one requantization."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.target import ACC, intrinsics
from vdla.compiler.te import Tensor
from vdla.isa.config import Config


@dataclass(frozen=True)
class AddShape:
    """``out = clip(rq((a - a_zero)·weight + (b - b_zero)·imm, scale) + zero, low, high)``."""

    vectors: int
    weight: int
    imm: int
    a_zero: int
    b_zero: int
    zero: int
    low: int
    high: int


@dataclass(frozen=True)
class AddTile:
    """Vectors of one tile, shared out among virtual threads tile by tile."""

    vectors: int
    vthreads: int = 1


@dataclass(frozen=True)
class Add:
    """The tensors of an addition's expression."""

    a: Tensor
    b: Tensor
    scale: Tensor
    wide_a: Tensor
    wide_b: Tensor
    added: Tensor
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        return [self.a, self.b, self.scale]


def add(shape: AddShape, config: Config) -> Add:
    """The expression of an addition over vectors of block_out lanes."""
    dims = (shape.vectors, config.block_out)
    a, b = te.placeholder(dims, "int8", "a"), te.placeholder(dims, "int8", "b")
    scale = te.placeholder((1, config.block_out), "int32", "scale")
    wide_a = te.compute(dims, lambda *i: a[i].astype("int32") - te.const(shape.a_zero), "wide_a")
    wide_b = te.compute(dims, lambda *i: b[i].astype("int32") - te.const(shape.b_zero), "wide_b")
    added = te.compute(
        dims,
        lambda *i: wide_a[i] * te.const(shape.weight) + wide_b[i] * te.const(shape.imm),
        "added",
    )
    out = te.compute(
        dims,
        lambda v, l: te.requantize(
            added[v, l], scale[0, l], shape.zero, shape.low, shape.high
        ).astype("int8"),
        "out",
    )
    return Add(a, b, scale, wide_a, wide_b, added, out)


def schedule_add(expression: Add, tile: AddTile, config: Config) -> Schedule:
    """Tiles the vectors and tensorizes every stage."""
    ins, e = intrinsics(config), expression
    s = te.create_schedule(e.out, e.inputs, "add")
    scale = s.cache_read(e.scale, ACC, [e.out])
    s[scale].tensorize(s[scale].axis[-1], ins.load_acc)
    vectors, lanes = s[e.out].axis
    outer, _ = s[e.out].split(vectors, factor=tile.vectors)
    outer, thread = s[e.out].split(outer, factor=tile.vthreads)
    if tile.vthreads > 1:
        s[e.out].bind(thread, te.thread_axis("vthread"))
    finish = {e.added: ins.alu_wadd, e.wide_b: ins.load_acc8, e.wide_a: ins.load_acc8}
    for stage in finish:
        s[stage].set_scope(ACC)
    for stage, intrin in finish.items():
        s[stage].compute_at(s[e.out], thread)
        s[stage].tensorize(s[stage].axis[-1], intrin)
    s[e.out].tensorize(lanes, ins.store8)
    return s
