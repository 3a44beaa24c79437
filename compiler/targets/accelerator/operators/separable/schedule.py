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

from collections.abc import Mapping
from dataclasses import dataclass, field

from vdla.compiler import te
from vdla.compiler.schedule import Schedule, Stage, create_schedule
from vdla.compiler.targets.accelerator.codegen.pipeline import PIPELINE
from vdla.compiler.targets.accelerator.description import (
    ACC,
    BUFFER_OF_SCOPE,
    INP,
    Intrinsics,
    intrinsics,
)
from vdla.compiler.targets.accelerator.operators.separable.expression import (
    SeparableTensors,
    Sums,
)
from vdla.compiler.targets.accelerator.operators.separable.kept import (
    Kept,
    intrinsics_of,
    kept,
)
from vdla.compiler.targets.accelerator.operators.separable.sizes import (
    PORTIONS,
    SeparableSizes,
    SeparableTile,
)
from vdla.compiler.targets.accelerator.options.weights4 import hold_weights
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Var
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class _Place:
    """A loop of a stage, at which others are computed."""

    stage: Tensor
    loop: Var


@dataclass(frozen=True)
class _Scheduled:
    """A schedule that is being made: what it keeps on chip, the intrinsics that make some stages,
    and by level the innermost loop."""

    schedule: Schedule
    e: SeparableTensors
    kept: Mapping[Tensor, Kept]
    made_by: Mapping[Tensor, TensorIntrin]
    places: dict[str, _Place] = field(default_factory=dict)

    def attach(self, tensor: Tensor) -> None:
        """Computes or loads a tensor for as long as it is kept."""
        level = self.kept[tensor].level
        if level != "operator":
            place = self.places[level]
            self.on_chip(tensor).compute_at(self.schedule[place.stage], place.loop)

    def on_chip(self, tensor: Tensor) -> Stage:
        """The stage that has a tensor on chip: its own, or the one that loads it."""
        buffer = BUFFER_OF_SCOPE[self.kept[tensor].scope]
        return self.schedule[tensor if tensor.op else f"{tensor.name}_{buffer}"]


def schedule(
    e: SeparableTensors, shape: SeparableSizes, tile: SeparableTile, config: Config
) -> Schedule:
    """Tiles the result, places what lies between, and tensorizes every stage."""
    ins = intrinsics(config)
    s = create_schedule(e.out, e.inputs, "separable")
    on_chip = {each.tensor: each for each in kept(e, tile)}
    made = _Scheduled(s, e, on_chip, intrinsics_of(e, shape, config))
    for tensor, each in on_chip.items():
        if tensor.op is not None:
            s[tensor].set_scope(each.scope)
    constants = _constants(s, e)
    _tile_result(made, tile)
    _attach(made, shape)
    if tile.vthreads > 1:
        _double_buffer(made)
    _tensorize(made, ins)
    for name in constants:
        s[name].tensorize(s[name].axis[-1], ins.load_acc)
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


def _tile_result(made: _Scheduled, tile: SeparableTile) -> None:
    """Splits the loops over the result, and those over the sums of a projection."""
    s, e = made.schedule, made.e
    n, o, y, x, l = s[e.out].axis
    yo, yi = s[e.out].split(y, factor=tile.rows)
    xo, xi = s[e.out].split(x, factor=tile.cols)
    made.places["tile"] = _Place(e.out, xo)
    if e.project is None:
        co, ci = s[e.out].split(o, factor=tile.blocks)
        order = (n, yo, xo, co) if e.expand else (n, co, yo, xo)
        s[e.out].reorder(*order, ci, yi, xi, l)
        made.places["step"] = _Place(e.out, order[-1])
        if e.expand is not None:
            _pipeline(s[e.out], co, tile)
        elif tile.vthreads > 1:
            s[e.out].bind(xo, te.thread_axis("vthread", threads=tile.vthreads))
        return
    portion = ceil_div(e.out.shape[1], PORTIONS)
    oo, oi = s[e.out].split(o, factor=portion)
    s[e.out].reorder(n, yo, xo, oo, oi, yi, xi, l)
    s[e.out].unroll(oo)
    if e.addition is not None:
        for tensor in e.addition.stages:
            made.attach(tensor)
    _tile_sums(made, e.project.acc, tile, portion)


def _tile_sums(made: _Scheduled, acc: Tensor, tile: SeparableTile, portion: int) -> None:
    """Splits the loops over what a projection sums up, within a tile of the result."""
    s = made.schedule
    made.attach(acc)
    n, o, y, x, l = s[acc].axis
    c, i = s[acc].reduce_axis
    co, ci = s[acc].split(c, factor=tile.blocks)
    oo, oi = s[acc].split(o, factor=portion)
    s[acc].reorder(n, co, oo, oi, y, x, ci, l, i)
    s[acc].unroll(oo)
    _pipeline(s[acc], co, tile)
    made.places.update(step=_Place(acc, co), portion=_Place(acc, oo))


def _pipeline(stage: Stage, steps: Var, tile: SeparableTile) -> None:
    """Makes steps run beside one another if there are several threads."""
    if tile.vthreads > 1:
        stage.pragma(steps, PIPELINE)


def _attach(made: _Scheduled, shape: SeparableSizes) -> None:
    """Computes and loads at each step what it needs; the last is placed first."""
    s, e = made.schedule, made.e
    if e.project is not None:
        assert e.middle is not None
        _load_weights(made, e.project)
        made.attach(e.middle)
    made.attach(e.filter.acc)
    hold_weights(s, e.filter.tiles, e.filter.acc)
    _tensorize_filter(made, shape)  # before its weights: they are whole tiles
    made.attach(e.filter.tiles)
    made.attach(e.image)
    if e.expand is not None:
        if e.staged is None:
            s.cache_read(e.data, INP, [e.expand.acc])
        made.attach(e.expand.acc)
        _load_weights(made, e.expand)
        made.attach(e.staged or e.data)


def _load_weights(made: _Scheduled, sums: Sums) -> None:
    """Loads the weights of a convolution."""
    hold_weights(made.schedule, sums.tiles, sums.acc)
    made.attach(sums.tiles)


def _double_buffer(made: _Scheduled) -> None:
    """Gives what a step leaves to another, and what it loads, its copies."""
    e = made.e
    dealt = e.expand is None and e.project is None  # tiles, to threads that have sums of their own
    for tensor, each in made.kept.items():
        if each.copies != 1 and not (dealt and each.scope == ACC):
            made.on_chip(tensor).double_buffer(int(each.copies))


def _tensorize(made: _Scheduled, ins: Intrinsics) -> None:
    """Makes instructions of every stage but the constants."""
    s, e = made.schedule, made.e
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
        data = made.on_chip(e.staged or e.data)
        data.tensorize(data.axis[-1], ins.load_inp if e.staged is None else ins.load_inp_pad)
        s[e.image].tensorize(last, ins.keep8_pad)
    else:
        s[e.image].tensorize(last, ins.load_inp_pad)
    if e.middle is not None:
        s[e.middle].tensorize(s[e.middle].axis[-1], ins.keep8)
    if e.addition is not None:
        for tensor in e.addition.stages:
            s[tensor].tensorize(s[tensor].axis[-1], made.made_by[tensor])
    s[e.out].tensorize(s[e.out].leaf_iter_vars[-1], ins.store8)
    for sums in e.sums:
        weights = made.on_chip(sums.tiles)
        load = ins.load_wgt if sums.tiles is sums.weight else ins.load_wgt4
        weights.tensorize(weights.leaf_iter_vars[-2], load)


def _tensorize_filter(made: _Scheduled, shape: SeparableSizes) -> None:
    """A window slides along rows; without one, each pixel's taps follow one another."""
    acc = made.e.filter.acc
    stage = made.schedule[acc]
    n, c, y, x, l = stage.axis
    if shape.taps == 1:
        ky, kx, i = stage.reduce_axis
        stage.reorder(n, c, y, x, ky, kx, l, i)
    else:
        ky, p, q, t, b = stage.reduce_axis
        stage.reorder(n, ky, p, q, c, y, x, l, t, b)
    stage.tensorize(l, made.made_by[acc])
