"""Normalization of pixels: lanes are pixels, whose channels are the rows of products.

A block of pixels as weights, with ones as inputs, gives sums over channels; with its own pixels as
inputs the sums of squares, on the diagonal; with unit vectors the channels one by one. Factors and
offsets are digits, which a product with their weights makes numbers in all lanes.

    load the digits, if all of them fit
    for images, tiles of pixels, virtual threads interleaved:
        load the pixels as weights, and by portions as inputs
        moments: a mean and a reciprocal root for each pixel
        for portions of channels:
            load the digits, if they don't all fit
            channels below the mean, times the factor, times the root, plus the offset: stored
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.normalize import FINE, SUM_BITS, Moments, QNormalize
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.ops.wide_normalize import QWideNormalize, WideMoments
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.operators.access import Size
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TURN,
    TileCost,
    group_cycles,
    pace,
    shares,
    sizes,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.normalize.expression import expression
from vdla.compiler.targets.accelerator.operators.normalize.schedule import schedule
from vdla.compiler.targets.accelerator.operators.normalize.space import (
    NormalizeSizes,
    NormalizeTile,
)
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    elements,
    one_scale,
    unlike_blocks,
)
from vdla.compiler.targets.accelerator.options.reciprocals import no_reciprocals
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div, divisors

HALF = 128  # of a high byte's step, in steps of a low one
DIGIT = 127  # the weight of all digits but the first, and the largest digit
STEPS = 2  # operations of the ALU for each vector, which multiply
SMALL = 12  # and for each block of pixels
MULTIPLIED = 6  # of these


AnyNormalize = QNormalize | QWideNormalize


@dataclass(frozen=True)
class Normalize(NormalizeSizes, Held[AnyNormalize, NormalizeTile]):
    """The normalization of all pixels of some images, or of pairs of images of bytes."""

    NAME = "normalize"
    TILE = NormalizeTile
    NOUN = "normalization"
    NODES = (QNormalize, QWideNormalize)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(
        ("epsilon", "shift", "zero", "low", "high"), 0
    )
    ZEROS = ("in_zero",)

    @classmethod
    def refusal(
        cls, node: AnyNormalize, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Blocks must be tiles of weights, their lanes channels, or zeros, and roots computed."""
        channels, block = graph.tensors[node.data].shape[1], config.channel_block
        if channels % block:
            maker = graph.producers.get(node.data)
            if type(maker) is not QTransposeImage:
                return f"{channels} channels don't end with a block of {block}"
        if not 0 <= cls._epsilon(node, channels) < 1 << SUM_BITS:
            return f"an epsilon of {node.epsilon:g} squared steps exceeds a sum of squares"
        if lack := unlike_blocks(config) or no_reciprocals(config):
            return lack
        blocks = ceil_div(channels, block)
        if blocks > config.uop_depth or not cls.of(node, graph, config).has_room(config):
            return f"{blocks} blocks of channels exceed the {config.depth('wgt')} tiles of wgt"
        return None

    @classmethod
    def of(cls, node: AnyNormalize, graph: Graph, config: Config) -> Normalize:
        """The template of a normalization; factors and offsets are constants."""
        n, channels, _, pixels = graph.tensors[node.data].shape
        moments = node.centered, cls._epsilon(node, channels), node.shift
        if isinstance(node, QNormalize):
            (zero,) = node.zeros
            return cls(n, channels, pixels, *moments, zero, *node.requant.limits)
        limits = node.requant.limits if node.requant else (0, node.low, node.high)
        whole = cls(n // 2, channels, pixels, *moments, 0, *limits)
        return replace(whole, bytes=True, is_wide=node.requant is None)

    @staticmethod
    def _epsilon(node: AnyNormalize, channels: int) -> int:
        """The number added to each sum of squares."""
        kind = Moments if isinstance(node, QNormalize) else WideMoments
        return kind(channels).epsilon(node.epsilon)

    def bind(self, node: AnyNormalize, graph: Graph, config: Config) -> Binding:
        """The digits of factors and offsets with their weights, unit vectors and ones."""
        lanes = config.channel_block
        weights = np.full((1, lanes, lanes), DIGIT, np.int8)
        weights[:, :, 0] = 1
        constants: dict[str, Array] = {
            "factor": digits(graph.constants[node.factor], lanes),
            "offset": digits(graph.constants[node.offset], lanes),
            "weights": weights,
        }
        if node.requant is not None:
            constants["scale"] = one_scale(node.requant.scale[0], config)
        constants |= {
            "units": -(1 if self.bytes else FINE) * np.eye(lanes, dtype=np.int8),
            "diagonal": np.eye(lanes, dtype=np.int32),
        }
        if self.bytes:
            constants["high_units"] = (-HALF * np.eye(lanes)).astype(np.int8)
        if self.centered or self.in_zero:
            constants["ones"] = np.ones((1, lanes), np.int8)
        tensors = {"data": node.data, "out": node.output}
        written = (4 if self.is_wide else 1) * elements(graph, node.output)
        moved = elements(graph, node.data) + written
        return Binding(tensors, constants, 0, moved)

    def sizes(
        self, config: Config, vthreads: int, only: NormalizeTile | None = None
    ) -> Iterator[NormalizeTile]:
        """Blocks of pixels for all threads, and portions of channels."""
        lanes = config.channel_block
        inputs, count = ceil_div(self.channels, lanes), ceil_div(self.pixels, lanes)
        portions = [n for n in divisors(self.channels) if n % lanes == 0] or [self.channels]
        knobs = product(
            sizes(range(1, ceil_div(count, vthreads) + 1), only, "blocks"),
            sizes(portions, only, "channels"),
            sizes(divisors(inputs), only, "inputs"),
            (True, False),
        )
        for blocks, channels, step, resident in knobs:
            if ceil_div(count, blocks) >= vthreads:
                yield NormalizeTile(blocks, channels, step, vthreads, resident)

    def cost(self, tile: NormalizeTile, config: Config) -> TileCost:
        """Loads of the pixels, products for moments, channels and terms, steps of the ALU, a
        store."""
        lanes, c = config.channel_block, config
        inputs, count = ceil_div(self.channels, lanes), ceil_div(self.pixels, lanes)
        vectors = tile.blocks * self.channels
        size = vectors * c.out_entry
        images, squares = (2, 3) if self.bytes else (1, 1)
        waits = inputs // tile.inputs * (c.memory.first_beat + TURN)  # one portion after another
        load = transfer(size, tile.blocks * tile.inputs * c.wgt_entry, c)
        load = (images + squares) * load + squares * waits
        gemm = vectors * (2 * squares + 1 if self.bytes else 3) + self.channels
        gemm = gemm + images * tile.blocks * inputs
        both = 2 * self.channels * c.inp_entry
        side = 0.0 if tile.resident else transfer(both, both, c)
        portions = ceil_div(self.channels, tile.channels)
        steps = 2 * STEPS if self.is_wide else STEPS  # limits are two more
        alu: Size = steps * (vectors + portions * STARTUP) + 2 * squares * tile.blocks * lanes
        alu = alu + squares * SMALL * (tile.blocks + STARTUP)
        diagonals = tile.blocks * (squares * lanes + MULTIPLIED)
        alu = alu + group_cycles(STEPS * vectors + diagonals, c)
        width = 4 if self.is_wide else 1
        store = transfer(width * size, width * tile.channels * c.out_entry, c)
        tiles = self.batch * ceil_div(count, tile.blocks)
        share = shares(tiles, tiles, tile.vthreads)
        cost = TileCost(*share, inp=load, gemm=gemm, side=side, alu=alu, store=store, shared=False)
        return replace(cost, pace=pace(c))

    def schedule(self, tile: NormalizeTile, config: Config) -> Schedule:
        """Moments for each tile of pixels, channels by portions, every stage tensorized."""
        return schedule(expression(self, config), self, tile, config)


def digits(numbers: Array, lanes: int) -> Array:
    """Numbers as vectors of int8, of which the first one counts once and the others DIGIT times."""
    tens = np.floor_divide(numbers.astype(np.int64) + DIGIT // 2, DIGIT)
    result = np.zeros((len(numbers), lanes), np.int8)
    result[:, 0] = numbers - tens * DIGIT
    for lane in range(1, lanes):
        result[:, lane] = np.clip(tens, -DIGIT, DIGIT)
        tens = tens - result[:, lane]
    return result
