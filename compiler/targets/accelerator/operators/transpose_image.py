"""Channels and pixels of an image in each other's place, by products with unit vectors.

``block_out`` pixels of a channel block are a tile of weights as they lie in DRAM. Its product with
the unit vector of a channel is that channel of those pixels, one in each lane.

    for images, blocks of pixels, virtual threads interleaved:
        load tiles; acc: products with unit vectors
        out: stored, as it is
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, INP, WGT, intrinsics
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Binding,
    Tile,
    elements,
    one_scale,
    unlike_blocks,
)
from vdla.compiler.tir.ir import Expr
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class TransposeTile(Tile):
    """A tile is a block of pixels: all of its channels."""

    vthreads: int = 1


@dataclass(frozen=True)
class TransposeImage(Held[QTransposeImage, TransposeTile]):
    """``out[n, w, c] = data[n, c, w]``: ``pixels`` become channels, ``channels`` pixels."""

    NAME = "transpose"
    TILE = TransposeTile
    NOUN = "transposition of channels and pixels"
    NODES = (QTransposeImage,)

    batch: int
    channels: int
    pixels: int

    @classmethod
    def refusal(
        cls, node: QTransposeImage, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Blocks must be tiles of weights."""
        return unlike_blocks(config)

    @classmethod
    def of(cls, node: QTransposeImage, graph: Graph, config: Config) -> TransposeImage:
        """The template of a transposition."""
        n, channels, _, pixels = graph.tensors[node.data].shape
        return cls(n, channels, pixels)

    def bind(self, node: QTransposeImage, graph: Graph, config: Config) -> Binding:
        """Unit vectors, and scales: 1, and 0 for lanes without a pixel, which become zeros."""
        units = np.eye(config.channel_block, dtype=np.int8)
        scale = np.repeat(one_scale(1.0, config), ceil_div(self.pixels, len(units)), axis=0)
        scale.reshape(-1)[self.pixels :] = 0
        constants = {"units": units, "scale": scale}
        moved = 2 * elements(graph, node.output)
        return Binding({"data": node.data, "out": node.output}, constants, 0, moved)

    def schedule(self, tile: TransposeTile, config: Config) -> Schedule:
        """Tiled, every stage tensorized."""
        return _schedule(self, tile, config)

    @property
    def wanted(self) -> str:
        """With what is taken at a time."""
        return f"{self.channels} channels of a block of pixels"

    def sizes(
        self, config: Config, vthreads: int, only: TransposeTile | None = None
    ) -> Iterator[TransposeTile]:
        """One."""
        yield TransposeTile(vthreads)

    def ranking(self, tiles: Sequence[TransposeTile], config: Config) -> Sequence[int]:
        """That one."""
        return range(len(tiles))


def _schedule(shape: TransposeImage, tile: TransposeTile, config: Config) -> Schedule:
    ins, lanes = intrinsics(config), config.channel_block
    inputs, blocks = ceil_div(shape.channels, lanes), ceil_div(shape.pixels, lanes)
    # Rows of pixels by image and channel block; the last tile of each ends behind its rows.
    rows = shape.batch * inputs * shape.pixels + -shape.pixels % lanes
    data = te.placeholder((rows, lanes), "int8", "data")
    units = te.placeholder((lanes, lanes), "int8", "units")
    scale = te.placeholder((blocks, lanes), "int32", "scale")
    tiles = te.compute(
        (shape.batch, inputs, blocks, lanes, lanes),
        lambda n, c, w, l, i: data[(n * inputs + c) * shape.pixels + w * lanes + l, i],
        "tiles",
    )
    i = te.reduce_axis((0, lanes), "i")
    result = shape.batch, blocks, shape.channels, lanes

    def picked(n: Expr, w: Expr, c: Expr, l: Expr) -> Expr:
        unit = units[te.floormod(c, lanes), i].astype("int32")
        return te.sum(unit * tiles[n, te.floordiv(c, lanes), w, l, i].astype("int32"), axis=i)

    acc = te.compute(result, picked, "acc")
    out = te.compute(
        result,
        lambda *at: te.requantize(acc[at], scale[at[1], at[-1]], 0, -128, 127).astype("int8"),
        "out",
    )
    s = create_schedule(out, [data, units, scale], "transpose")
    s[acc].set_scope(ACC)
    s[tiles].set_scope(WGT)
    vectors, words = s.cache_read(units, INP, [acc]), s.cache_read(scale, ACC, [out])
    _, w, _, l = s[out].axis
    if tile.vthreads > 1:
        s[out].bind(w, te.thread_axis("vthread", threads=tile.vthreads))
    s[acc].compute_at(s[out], w)
    *_, c, lane = s[acc].axis
    s[acc].split(c, factor=min(lanes, shape.channels))
    s[acc].tensorize(lane, ins.gemm_zero)
    s[tiles].compute_at(s[out], w)
    if shape.pixels % lanes:
        s[tiles].unroll(s[tiles].axis[1])  # its blocks begin anywhere: a LOAD for each
    if tile.vthreads > 1:
        s[tiles].double_buffer(2)
    s[tiles].tensorize(s[tiles].axis[-2], ins.load_wgt)
    s[vectors].tensorize(s[vectors].axis[-1], ins.load_inp)
    s[words].tensorize(s[words].axis[-1], ins.load_acc)
    s[out].tensorize(l, ins.store8)
    return s
