"""The schedule of a normalization: moments for tiles of pixels, channels by portions."""

from __future__ import annotations

from vdla.compiler import te
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, INP, WGT, Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.normalize.expression import NormalizeTensors
from vdla.compiler.targets.accelerator.operators.normalize.space import (
    NormalizeSizes,
    NormalizeTile,
)
from vdla.compiler.targets.accelerator.operators.stages import place
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Var
from vdla.isa.config import Config


def schedule(
    e: NormalizeTensors, shape: NormalizeSizes, tile: NormalizeTile, config: Config
) -> Schedule:
    """Places and tensorizes every stage of a normalization."""
    ins, lanes = intrinsics(config), config.channel_block
    s = create_schedule(e.out, e.inputs, "normalize")
    n, w, c, lane = s[e.out].axis
    outer, inner = s[e.out].split(w, factor=tile.blocks)
    outer, thread = s[e.out].split(outer, factor=tile.vthreads)
    portion, channels = s[e.out].split(c, factor=tile.channels)
    s[e.out].reorder(n, outer, thread, portion, inner, channels, lane)
    if tile.vthreads > 1:
        s[e.out].bind(thread, te.thread_axis("vthread"))
    held = _held(s, e)
    s[e.tiles].set_scope(WGT)
    s[e.pixels].set_scope(INP)
    for stage in (e.products, e.below, *(stage for stage, _ in (*e.moments, *e.terms))):
        s[stage].set_scope(ACC)
    place(s, e.steps, e.out, portion)
    s[e.below].compute_at(s[e.out], portion)
    s[e.below].split(s[e.below].axis[-2], factor=lanes)  # a tile of weights for each block
    s[e.below].tensorize(s[e.below].axis[-1], ins.gemm)
    place(s, e.terms, e.out, portion)
    place(s, e.moments, e.out, thread)
    _place_pixels(s, e, tile, thread, ins)
    if shape.pixels % lanes:  # its blocks begin anywhere: a LOAD for each
        s[e.tiles].unroll(s[e.tiles].axis[1])
        s[e.pixels].unroll(s[e.pixels].axis[1])
    if not tile.resident:
        for name in ("factor", "offset"):
            s[held[name]].compute_at(s[e.out], portion)
    loads = {ACC: ins.load_acc, INP: ins.load_inp, WGT: ins.load_wgt}
    for copy in held.values():
        s[copy].tensorize(s[copy].axis[-2 if copy.scope == WGT else -1], loads[copy.scope])
    s[e.out].tensorize(lane, ins.store8)
    return s


def _place_pixels(
    s: Schedule, e: NormalizeTensors, tile: NormalizeTile, at: Var, ins: Intrinsics
) -> None:
    """Computes the products of pixels, by portions of channels, and loads both factors."""
    s[e.products].compute_at(s[e.out], at)
    *around, row, lane = s[e.products].axis
    blocks, channels = s[e.products].reduce_axis
    step, block = s[e.products].split(blocks, factor=tile.inputs)
    s[e.products].reorder(step, *around, row, block, lane, channels)
    s[e.products].tensorize(lane, ins.gemm_zero)
    s[e.tiles].compute_at(s[e.out], at)
    s[e.tiles].tensorize(s[e.tiles].axis[-2], ins.load_wgt)
    s[e.pixels].compute_at(s[e.products], step)
    s[e.pixels].tensorize(s[e.pixels].axis[-1], ins.load_inp)


def _held(s: Schedule, e: NormalizeTensors) -> dict[str, Tensor]:
    """Copies of what is constant on chip, by the names of the placeholders."""
    steps = (*e.steps, *e.terms, *e.moments)
    readers = [e.out, e.below, e.products, *(stage for stage, _ in steps)]
    scopes = {"weights": WGT, "scale": ACC, "diagonal": ACC}
    held = dict[str, Tensor]()
    for name, tensor in e.constants.items():
        users = [stage for stage in readers if tensor in stage.compute_op.inputs]
        held[name] = s.cache_read(tensor, scopes.get(name, INP), users)
    return held
