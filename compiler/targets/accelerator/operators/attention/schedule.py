"""The schedule of attention: one, over all of its parts.

    for heads:
        load keys and values; the sums of these that zero points are multiplied with
        for blocks of queries, their parts beside those of other blocks:
            load queries; scores; softmax: shares, stored
            load shares as tiles; moved: products with unit vectors, stored to INP
            mixed: products of shares and values; out: stored

Parts end where another engine goes on (``codegen/pipeline.py``), so that GEMM, ALU and STORE work
on different blocks of queries at a time.
"""

from __future__ import annotations

from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.codegen.pipeline import BY_ENGINE, PIPELINE
from vdla.compiler.targets.accelerator.description import (
    ACC,
    INP,
    WGT,
    Intrinsics,
    intrinsics,
)
from vdla.compiler.targets.accelerator.operators.attention.expression import AttentionTensors
from vdla.compiler.targets.accelerator.operators.attention.sizes import AttentionTile
from vdla.compiler.targets.accelerator.operators.stages import place
from vdla.compiler.targets.accelerator.options.tables import TAB
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Var
from vdla.isa.config import Config

PLACES = {"table": TAB, "units": INP, "one": INP, "ones": WGT}  # of constants; the others: ACC


def schedule(e: AttentionTensors, tile: AttentionTile, config: Config) -> Schedule:
    """Places and tensorizes every stage."""
    ins, lanes = intrinsics(config), config.channel_block
    s = create_schedule(e.out, e.inputs, "attention")
    n, group, q, lane = s[e.out].axis
    step, q = s[e.out].split(q, factor=min(lanes, e.out.shape[2]))
    s[e.out].reorder(n, step, group, q, lane)
    if tile.vthreads > 1:
        s[e.out].pragma(step, PIPELINE, BY_ENGINE)
    for tensor in (e.head_keys, e.moved):
        s[tensor].set_scope(INP)
    for tensor in (e.query_tiles, e.share_tiles, e.value_tiles):
        s[tensor].set_scope(WGT)
    for stage, _ in (*e.mixed, *e.picked, *e.scored, *e.of_keys, *e.of_values):
        s[stage].set_scope(ACC)
    held = _hold(s, e)
    _place_step(s, e, step, ins)
    _place_head(s, e, n, ins)
    if tile.vthreads > 1:
        _copy(s, e, tile)
    loads = {ACC: ins.load_acc, INP: ins.load_inp, WGT: ins.load_wgt, TAB: ins.load_tab}
    for copy in held:
        s[copy].tensorize(s[copy].axis[-2 if copy.scope == WGT else -1], loads[copy.scope])
    s[e.out].tensorize(lane, ins.store8)
    return s


def _hold(s: Schedule, e: AttentionTensors) -> list[Tensor]:
    """Copies of the constants on chip."""
    steps = (*e.of_keys, *e.of_values, *e.scored, *e.picked, *e.mixed)
    readers = [e.out, e.moved, *(stage for stage, _ in steps)]
    return [
        s.cache_read(
            tensor,
            PLACES.get(name, ACC),
            [stage for stage in readers if tensor in stage.compute_op.inputs],
        )
        for name, tensor in e.constants.items()
    ]


def _place_step(s: Schedule, e: AttentionTensors, step: Var, ins: Intrinsics) -> None:
    """Computes what is made for each block of queries, the last stage first."""
    place(s, e.mixed, e.out, step)
    s[e.moved].compute_at(s[e.out], step)
    s[e.moved].tensorize(s[e.moved].axis[-1], ins.keep8)
    place(s, e.picked, e.out, step)
    s[e.share_tiles].compute_at(s[e.out], step)
    s[e.share_tiles].tensorize(s[e.share_tiles].axis[-2], ins.load_wgt)
    s[e.shares].compute_at(s[e.out], step)
    s[e.shares].tensorize(s[e.shares].axis[-1], ins.store8)
    place(s, e.scored, e.out, step)
    _load_tiles(s, e.query_tiles, e.out, step, ins)


def _place_head(s: Schedule, e: AttentionTensors, head: Var, ins: Intrinsics) -> None:
    """Computes what is made for each head, of its keys first, which scores need at once."""
    place(s, e.of_values, e.out, head)
    _load_tiles(s, e.value_tiles, e.out, head, ins)
    place(s, e.of_keys, e.out, head)
    s[e.head_keys].compute_at(s[e.out], head)
    s[e.head_keys].tensorize(s[e.head_keys].axis[-1], ins.load_inp)


def _load_tiles(s: Schedule, tiles: Tensor, reader: Tensor, at: Var, ins: Intrinsics) -> None:
    """Loads blocks of pixels; those of an image's channel blocks begin anywhere."""
    s[tiles].compute_at(s[reader], at)
    s[tiles].unroll(s[tiles].axis[1])
    s[tiles].tensorize(s[tiles].axis[-2], ins.load_wgt)


def _copy(s: Schedule, e: AttentionTensors, tile: AttentionTile) -> None:
    """Gives what a part leaves to the next one two copies, and to the one behind that three."""
    s[e.head_keys].double_buffer(tile.key_copies)
    s[e.value_tiles].double_buffer(tile.value_copies)
    for stage, _ in e.of_values:
        s[stage].double_buffer(tile.value_copies)
    for stage, _ in (*e.scored, *e.mixed):
        s[stage].double_buffer(3)
    for tensor in (e.shares, e.moved, *(stage for stage, _ in e.picked)):
        s[tensor].double_buffer(2)
