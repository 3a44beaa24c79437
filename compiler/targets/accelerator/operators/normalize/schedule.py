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
    computed = [*e.products, *e.below, *(stage for stage, _ in (*e.moments, *e.terms))]
    for scope, some in ((WGT, e.tiles), (INP, e.pixels), (ACC, computed)):
        for stage in some:
            s[stage].set_scope(scope)
    place(s, e.steps, e.out, portion)
    for below in e.below:
        s[below].compute_at(s[e.out], portion)
        s[below].split(s[below].axis[-2], factor=lanes)  # a tile of weights for each block
        s[below].tensorize(s[below].axis[-1], ins.gemm)
    place(s, e.terms, e.out, portion)
    place(s, e.moments, e.out, thread)
    for products, pixels in zip(e.products, e.pixels, strict=True):
        _place_products(s, (e.out, thread), products, pixels, tile, ins)
    for tiles in e.tiles:
        s[tiles].compute_at(s[e.out], thread)
        s[tiles].tensorize(s[tiles].axis[-2], ins.load_wgt)
    if shape.pixels % lanes:  # its blocks begin anywhere: a LOAD for each
        for stage in (*e.tiles, *e.pixels):
            s[stage].unroll(s[stage].axis[1])
    if not tile.resident:
        for name in ("factor", "offset"):
            s[held[name]].compute_at(s[e.out], portion)
    loads = {ACC: ins.load_acc, INP: ins.load_inp, WGT: ins.load_wgt}
    for copy in held.values():
        s[copy].tensorize(s[copy].axis[-2 if copy.scope == WGT else -1], loads[copy.scope])
    s[e.out].tensorize(lane, ins.store32 if shape.is_wide else ins.store8)
    return s


def _place_products(
    s: Schedule,
    at: tuple[Tensor, Var],
    products: Tensor,
    pixels: Tensor,
    tile: NormalizeTile,
    ins: Intrinsics,
) -> None:
    """Computes products of pixels at a loop, by portions of channels, and loads their inputs."""
    out, loop = at
    s[products].compute_at(s[out], loop)
    *around, row, lane = s[products].axis
    blocks, channels = s[products].reduce_axis
    step, block = s[products].split(blocks, factor=tile.inputs)
    s[products].reorder(step, *around, row, block, lane, channels)
    s[products].tensorize(lane, ins.gemm_zero)
    s[pixels].compute_at(s[products], step)
    s[pixels].tensorize(s[pixels].axis[-1], ins.load_inp)


def _held(s: Schedule, e: NormalizeTensors) -> dict[str, Tensor]:
    """Copies of what is constant on chip, by the names of the placeholders."""
    steps = (*e.steps, *e.terms, *e.moments)
    readers = [e.out, *e.below, *e.products, *(stage for stage, _ in steps)]
    scopes = {"weights": WGT, "scale": ACC, "diagonal": ACC}
    held = dict[str, Tensor]()
    for name, tensor in e.constants.items():
        users = [stage for stage in readers if tensor in stage.compute_op.inputs]
        held[name] = s.cache_read(tensor, scopes.get(name, INP), users)
    return held
