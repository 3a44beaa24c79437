"""The schedule of a depthwise convolution and its neighbours: one, over all of them.

    for tiles of the result:
        load data, with the halo that the window needs               where a convolution expands it
        for steps of channel blocks, virtual threads interleaved:
            expand: sums in ACC; image: requantized into INP         else image: loaded into INP
            filter: sums in ACC; middle: requantized into INP        else out: stored
            project: adds to the tile's sums in ACC
        out: stored

What lies between two convolutions stays on chip.
"""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.codegen.pipeline import PIPELINE
from vdla.compiler.targets.accelerator.description import ACC, INP, WGT, Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.separable.expression import (
    Addition,
    SeparableTensors,
    Sums,
)
from vdla.compiler.targets.accelerator.operators.separable.sizes import (
    PORTIONS,
    SeparableSizes,
    SeparableTile,
    portion_copies,
)
from vdla.compiler.targets.accelerator.options.window import gemm_window
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Var
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class _Place:
    """A loop of a stage, at which others are computed."""

    stage: Tensor
    loop: Var


@dataclass(frozen=True)
class _Places:
    """The loops over tiles of the result, over steps of channel blocks, and over portions of the
    channel blocks that a projection adds to in a step."""

    tiles: _Place
    steps: _Place
    portions: _Place | None = None


def schedule(
    e: SeparableTensors, shape: SeparableSizes, tile: SeparableTile, config: Config
) -> Schedule:
    """Tiles the result, places what lies between, and tensorizes every stage."""
    ins = intrinsics(config)
    s = create_schedule(e.out, e.inputs, "separable")
    for sums in e.sums:
        s[sums.acc].set_scope(ACC)
    for between in (e.staged, e.image, e.middle):
        if between is not None:
            s[between].set_scope(INP)
    constants = _constants(s, e)
    places = _tile_result(s, e, tile)
    _attach(s, e, (shape, tile), places, ins)
    if tile.vthreads > 1:
        _double_buffer(s, e, (shape, tile), config)
    _tensorize(s, e, shape, ins)
    for each in constants:
        s[each].tensorize(s[each].axis[-1], ins.load_acc)
    return s


def _constants(s: Schedule, e: SeparableTensors) -> list[Tensor]:
    """Biases and scales, which stay in ACC."""
    readers = {e.expand: e.image, e.filter: e.middle or e.out, e.project: e.out}
    if e.addition is not None:
        readers[e.project] = e.addition.requantized
    result = []
    for sums, reader in readers.items():
        if sums is not None:
            result.append(s.cache_read(sums.bias, ACC, [sums.acc]))
            result.append(s.cache_read(sums.scale, ACC, [reader]))
    if e.addition is not None:
        result.append(s.cache_read(e.addition.scale, ACC, [e.out]))
    return result


def _tile_result(s: Schedule, e: SeparableTensors, tile: SeparableTile) -> _Places:
    """Splits the loops over the result and the reduction that a projection is."""
    n, o, y, x, l = s[e.out].axis
    yo, yi = s[e.out].split(y, factor=tile.rows)
    xo, xi = s[e.out].split(x, factor=tile.cols)
    if e.project is None:
        co, ci = s[e.out].split(o, factor=tile.blocks)
        order = (n, yo, xo, co) if e.expand else (n, co, yo, xo)
        s[e.out].reorder(*order, ci, yi, xi, l)
        if e.expand is None:
            if tile.vthreads > 1:
                s[e.out].bind(xo, te.thread_axis("vthread", threads=tile.vthreads))
            return _Places(_Place(e.out, xo), _Place(e.out, xo))
        steps = _Place(e.out, _pipelined(s, e.out, co, tile))
        return _Places(_Place(e.out, xo), steps)
    portion = ceil_div(e.out.shape[1], PORTIONS)
    oo, oi = s[e.out].split(o, factor=portion)
    s[e.out].reorder(n, yo, xo, oo, oi, yi, xi, l)
    s[e.out].unroll(oo)
    if e.addition is not None:
        for tensor in (e.addition.added, e.addition.wide, e.addition.requantized):
            s[tensor].set_scope(ACC)
            s[tensor].compute_at(s[e.out], xo)
    acc = e.project.acc
    s[acc].compute_at(s[e.out], xo)
    n, o, y, x, l = s[acc].axis
    c, i = s[acc].reduce_axis
    co, ci = s[acc].split(c, factor=tile.blocks)
    oo, oi = s[acc].split(o, factor=portion)
    s[acc].reorder(n, co, oo, oi, y, x, ci, l, i)
    s[acc].unroll(oo)
    steps = _Place(acc, _pipelined(s, acc, co, tile))
    return _Places(_Place(e.out, xo), steps, _Place(acc, oo))


def _pipelined(s: Schedule, stage: Tensor, steps: Var, tile: SeparableTile) -> Var:
    """The loop over steps, which run beside one another if there are several threads."""
    if tile.vthreads > 1:
        s[stage].pragma(steps, PIPELINE)
    return steps


def _attach(
    s: Schedule,
    e: SeparableTensors,
    sizes: tuple[SeparableSizes, SeparableTile],
    places: _Places,
    ins: Intrinsics,
) -> None:
    """Computes and loads at each step what it needs; the last is placed first."""
    shape, tile = sizes

    def at(tensor: Tensor, place: _Place = places.steps) -> None:
        s[tensor].compute_at(s[place.stage], place.loop)

    def load(weights: Tensor, place: _Place = places.steps) -> None:
        if not tile.resident:
            at(weights, place)

    if e.project is not None:
        assert e.middle is not None
        assert places.portions is not None
        load(_weights(s, e.project), places.portions)
        at(e.middle)
    at(e.filter.acc)
    weights = _weights(s, e.filter)
    _tensorize_filter(s, e.filter, shape, ins)  # before its weights: they are whole tiles
    load(weights)
    at(e.image)
    if e.expand is not None:
        if e.staged is None:
            s.cache_read(e.data, INP, [e.expand.acc])
        at(e.expand.acc)
        load(_weights(s, e.expand))
        s[_data(e)].compute_at(s[places.tiles.stage], places.tiles.loop)


def _data(e: SeparableTensors) -> str:
    """The stage that has the first convolution's data in INP."""
    return e.staged.name if e.staged is not None else f"{e.data.name}_inp"


def _double_buffer(
    s: Schedule, e: SeparableTensors, sizes: tuple[SeparableSizes, SeparableTile], config: Config
) -> None:
    """Gives what a step leaves to another, and what it loads, a copy for each of them."""
    shape, tile = sizes
    copies = tile.vthreads
    for between in (e.image, e.middle):
        if between is not None:
            s[between].double_buffer(copies)
    if e.expand is not None:
        s[_data(e)].double_buffer(tile.stages)
    for sums in e.sums if not tile.resident else ():
        several = portion_copies(shape, tile, config) if sums is e.project else copies
        s[f"{sums.weight.name}_wgt"].double_buffer(several)
    if e.expand is None and e.project is None:
        return  # the threads that the tiles are dealt to have sums of their own
    for sums in e.sums:
        if sums is not e.project:
            s[sums.acc].double_buffer(copies)


def _weights(s: Schedule, sums: Sums) -> Tensor:
    """The weights of a convolution as they lie on chip."""
    return s.cache_read(sums.weight, WGT, [sums.acc])


def _tensorize(s: Schedule, e: SeparableTensors, shape: SeparableSizes, ins: Intrinsics) -> None:
    """Makes instructions of every stage but the constants."""
    if e.expand is not None:
        stage = s[e.expand.acc]
        *around, lanes = stage.axis
        stage.reorder(*around, *stage.reduce_axis[:1], lanes, *stage.reduce_axis[1:])
        stage.tensorize(lanes, ins.gemm)
    if e.project is not None:
        stage = s[e.project.acc]
        stage.tensorize(stage.axis[-1], ins.gemm)
    last = s[e.image].axis[-1]
    if e.expand is not None:
        data = s[_data(e)]
        data.tensorize(data.axis[-1], ins.load_inp if e.staged is None else ins.load_inp_pad)
        s[e.image].tensorize(last, ins.keep8_pad)
    else:
        s[e.image].tensorize(last, ins.load_inp_pad)
    if e.middle is not None:
        s[e.middle].tensorize(s[e.middle].axis[-1], ins.keep8)
    if e.addition is not None:
        _tensorize_addition(s, e.addition, ins)
    s[e.out].tensorize(s[e.out].leaf_iter_vars[-1], ins.store8)
    for sums in e.sums:
        weights = s[f"{sums.weight.name}_wgt"]
        weights.tensorize(weights.leaf_iter_vars[-2], ins.load_wgt)


def _tensorize_filter(s: Schedule, sums: Sums, shape: SeparableSizes, ins: Intrinsics) -> None:
    """A window slides along rows; without one, each pixel's taps follow one another."""
    stage = s[sums.acc]
    n, c, y, x, l = stage.axis
    if shape.taps == 1:
        ky, kx, i = stage.reduce_axis
        stage.reorder(n, c, y, x, ky, kx, l, i)
        stage.tensorize(l, ins.gemm)
        return
    ky, p, q, t, b = stage.reduce_axis
    stage.reorder(n, ky, p, q, c, y, x, l, t, b)
    stage.tensorize(l, gemm_window(shape.window_rows, shape.taps, ins.config))


def _tensorize_addition(s: Schedule, addition: Addition, ins: Intrinsics) -> None:
    steps = {
        addition.added: ins.alu_wadd,
        addition.wide: ins.load_acc8,
        addition.requantized: ins.alu_rq,
    }
    for tensor, intrin in steps.items():
        s[tensor].tensorize(s[tensor].axis[-1], intrin)
