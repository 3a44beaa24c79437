"""Convolutions and dense layers without their weight tiles of zeros, where that takes fewer cycles.

A tile of ``block_out × block_in`` weights that is zero has no micro-op and no bytes in DRAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.zero_tiles import zero_share, zero_tiles
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, weight_of
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TileCost,
    TilingError,
    estimate,
    fetch,
    no_tile,
    pace,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.sparse.instructions import kernel
from vdla.compiler.targets.accelerator.operators.sparse.sizes import SparseSizes, SparseTile
from vdla.compiler.targets.accelerator.operators.template import Binding, Template
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

LEAST_SHARE = 0.3  # of zero tiles: below, a layer isn't looked at closer
MARGIN = 1.1  # that the model's two estimates have to differ by
VTHREADS = 2  # of the schedules that are compared


@dataclass(frozen=True)
class SparseConv2d(SparseSizes, Template[Node, SparseTile]):
    """A convolution or dense layer; see ``SparseSizes``."""

    NAME = "sparse conv"
    TILE = SparseTile
    NOUN = "block-sparse convolution"
    NODES: ClassVar[tuple[type[Node], ...]] = ()
    INSTEAD: ClassVar[tuple[type[Node], ...]] = (ops.QConv2d, ops.QDense)
    TUNED = False

    @classmethod
    def instead(cls, node: Node, graph: Graph, config: Config) -> Self | None:
        """The template of a node if it takes fewer cycles than that of the whole layer."""
        assert isinstance(node, ops.QConv2d | ops.QDense)
        if isinstance(node, ops.QConv2d) and (node.moves or node.groups > 1):
            return None
        dense = Conv2d.of(node, graph, config)
        if dense.groups > 1 or dense.alu_steps or dense.weights4:
            return None
        whole = cls(dense, ((0,),))
        if not whole.is_held(config):  # without regard to the weights, which take longer to look at
            return None
        zero = zero_tiles(weight_of(node, graph), config.block_out, config.block_in)
        if zero.mean() < LEAST_SHARE:
            return None
        made = cls(dense, _kept(zero, dense, config))
        return made if made.is_held(config) and made.gains(config) else None

    def gains(self, config: Config) -> bool:
        """Whether it takes fewer cycles than with all tiles, by the analytic model."""
        own = self.cost(self.best(config, VTHREADS), config)
        return MARGIN * float(estimate(own, config)[0]) < _dense_cycles(self.dense.geometry, config)

    @classmethod
    def placed_with_share(cls, node: Node, graph: Graph, config: Config) -> str:
        """Text of the placement report for a node that ``instead`` has a template for."""
        assert isinstance(node, ops.QConv2d | ops.QDense)
        share = zero_share(weight_of(node, graph), config.block_out, config.block_in)
        noun = "dense layer" if isinstance(node, ops.QDense) else "convolution"
        return f"{noun} with {100 * share:.0f} % zero tiles on int8"

    @classmethod
    def of(cls, node: Node, graph: Graph, config: Config) -> Self:
        """The template of a node that ``instead`` has one for."""
        made = cls.instead(node, graph, config)
        assert made is not None
        return made

    def bind(self, node: Node, graph: Graph, config: Config) -> Binding:
        """Tensors and constants of the whole layer, with the weight tiles that are kept."""
        assert isinstance(node, ops.QConv2d | ops.QDense)
        whole = self.dense.bind(node, graph, config)
        tiles = whole.constants["weight"].reshape(
            len(self.kept), -1, config.block_out, config.block_in
        )
        rows = [tiles[row, list(kept)] for row, kept in enumerate(self.kept)]
        constants = {**whole.constants, "weight": np.concatenate(rows)}
        size = graph.constants[node.weight].size
        stored = min(self.count * config.wgt_entry, size)
        moved = whole.dram_bytes - size + stored
        return Binding(whole.tensors, constants, whole.macs * stored // size, moved)

    @property
    def geometry(self) -> Self:
        """A copy whose dense layer has neutral numbers."""
        return replace(self, dense=self.dense.geometry)

    def schedule(self, tile: SparseTile, config: Config) -> Schedule:
        """None: loops can't say which tiles there are."""
        raise NotImplementedError(f"{self.NAME}: expected a template whose schedule is asked for")

    def instructions(self, tile: SparseTile, config: Config) -> Kernel:
        """Instructions that are made without a schedule."""
        return kernel(self, tile, config)

    def tiles(
        self, config: Config, vthreads: int, only: SparseTile | None = None
    ) -> Iterator[SparseTile]:
        """One."""
        if self.is_held(config):
            yield self.tile(config, vthreads)

    def best(self, config: Config, vthreads: int) -> SparseTile:
        """The one tile for so many virtual threads.

        Raises:
            TilingError: the buffers don't hold it.
        """
        if not self.is_held(config):
            raise no_tile(f"one tile of a {self.NOUN}", config)
        return self.tile(config, vthreads)

    def cost(self, tile: SparseTile, config: Config) -> TileCost:
        """Work of as many tiles as there are portions to be stored."""
        rows, pixels, count = len(self.kept), self.pixels, len(self.portions(0, len(self.kept)))
        loads, size = ceil_div(self.count, tile.weights), self.count * config.wgt_entry
        data = self.inputs(config) * config.inp_entry
        channels, micro = 2 * rows * config.acc_entry, self.count * config.uop_entry
        before = sum(transfer(size, size, config) for size in (data, channels, micro))
        stored = rows * pixels * config.block_out
        return TileCost(
            pairs=0,
            singles=count,
            threads=tile.vthreads,
            wgt=(transfer(size, size / loads, config) + fetch(loads + rows, config)) / count,
            gemm=(self.count * pixels + STARTUP * rows) / count,
            side=before / count,
            store=transfer(stored, pixels * config.block_out, config) / count,
            shared=False,
            stages=tile.vthreads,
            pace=pace(config),
        )


@lru_cache(maxsize=256)
def _dense_cycles(dense: Conv2d, config: Config) -> float:
    """Cycles of a layer with all of its tiles; many where the buffers hold no tile of it."""
    try:
        tile = dense.best(config, VTHREADS)
    except TilingError:
        return float("inf")
    return float(estimate(dense.cost(tile, config), config)[0])


def _kept(zero: NDArray[np.bool_], dense: Conv2d, config: Config) -> tuple[tuple[int, ...], ...]:
    """The tiles that each vector of output channels has, at least one."""
    parts = config.channel_block // np.array([config.block_out, config.block_in])
    whole = np.ones((*np.array([dense.outputs, dense.inputs]) * parts, *zero.shape[2:]), np.bool_)
    whole[: zero.shape[0], : zero.shape[1]] = zero
    rows = (np.flatnonzero(~row).tolist() for row in whole.reshape(len(whole), -1))
    return tuple(tuple(row) or (0,) for row in rows)
