"""Convolution and dense layers, with their requantization and, where fused, a residual addition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.numbers import add_terms
from vdla.compiler.graph.ops.wide import BYTE_BITS, QWideConv2d
from vdla.compiler.graph.types import Requant
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.operators.conv2d.schedule import expression, schedule
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import (
    ANY_RESIDUAL,
    ConvSizes,
    ConvTile,
    Residual,
)
from vdla.compiler.targets.accelerator.operators.conv2d.space import space_of
from vdla.compiler.targets.accelerator.operators.cost import Places, TileCost
from vdla.compiler.targets.accelerator.operators.nest import Nest
from vdla.compiler.targets.accelerator.operators.table import results
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    Template,
    one_scale,
)
from vdla.compiler.targets.accelerator.operators.window import only_padding
from vdla.compiler.targets.accelerator.options.weights4 import fits, in_dram
from vdla.isa.config import Config
from vdla.isa.numbers import pack_scale
from vdla.support.numbers import ceil_div

__all__ = ["Conv2d", "ConvTile", "Residual"]


Product = ops.QConv2d | ops.QDense | QWideConv2d


@dataclass(frozen=True)
class Conv2d(ConvSizes, Template[Product, ConvTile]):
    """A convolution or a dense layer; see ``ConvSizes``."""

    NAME = "conv"
    TILE = ConvTile
    NOUN = "convolution"
    NODES: ClassVar[tuple[type[Node], ...]] = (ops.QConv2d, ops.QDense, QWideConv2d)
    NUMBERS: ClassVar[Mapping[str, object]] = {
        "in_zero": 0,
        "zero": 0,
        "low": 0,
        "high": 0,
        "residual": ANY_RESIDUAL,
    }

    @classmethod
    def refusal(
        cls,
        node: Product,
        graph: Graph,
        config: Config,
        min_fill: float = MIN_FILL,
    ) -> str | None:
        """Too few input channels, or windows that see nothing of the image."""
        if isinstance(node, ops.QDense) or not _is_image(node, graph):
            return None
        return _too_narrow(node, graph, config, min_fill) or only_padding(node, graph)

    @classmethod
    def placed(cls, node: Product) -> str:
        """A dense layer is one of a 1 × 1 image; weights of 0 and 1 only move elements."""
        function = " and function of its result" if node.step_of(ops.TableStep) else ""
        if _moves(node):
            return "elements moved by a convolution on int8"
        if node.step_of(ops.AddStep):
            return f"convolution with residual addition{function} on int8"
        noun = "dense layer" if isinstance(node, ops.QDense) else cls.NOUN
        if isinstance(node, QWideConv2d):
            return f"{noun} of {_bits(node)}"
        return f"{noun}{function} on int8"

    @classmethod
    def of(cls, node: Product, graph: Graph, config: Config) -> Conv2d:
        """The template of a node, with groups merged until they fill channel blocks."""
        window = None if isinstance(node, ops.QDense) or not _is_image(node, graph) else node
        both = isinstance(node, QWideConv2d) and node.bytes
        requant = node.requant or WHOLE
        n, _, height, width = (*graph.tensors[node.data].shape, 1, 1)[:4]
        groups = window.groups if window else 1
        weight = weight_of(node, graph)
        merged = _groups_per_block(weight.shape, groups, config.channel_block)
        ins, outs = weight.shape[1] * merged, len(weight) // groups * merged
        return cls(
            batch=n // 2 if both else n,
            groups=groups // merged,
            inputs=ceil_div(ins, config.channel_block),
            outputs=ceil_div(outs, config.channel_block),
            height=height,
            width=width,
            kernel=weight.shape[2:],
            strides=window.strides if window else (1, 1),
            pads=window.pads if window else (0, 0, 0, 0),
            dilations=window.dilations if window else (1, 1),
            in_zero=_zero(node),
            zero=requant.zero,
            low=requant.low,
            high=requant.high,
            residual=Residual.of(node),
            fixed=_is_fixed(node, graph),
            table=node.step_of(ops.TableStep) is not None,
            weights4=fits([weight], config),
            bytes=both,
            wide=node.requant is None,
        )

    def bind(self, node: Product, graph: Graph, config: Config) -> Binding:
        """Weights in tiles; biases that take the input's zero point along; scales as words."""
        weight = weight_of(node, graph)
        tiles = pack_weight(weight, getattr(node, "groups", 1), self, config)
        constants = {
            "weight": in_dram(tiles, weights4=self.weights4),
            "bias": self._biases(node, graph, config),
            **self._numbers(node, graph, config),
            **self._behind(node, graph, config),
        }
        tensors = {"data": node.data, "out": node.output}
        if addition := node.step_of(ops.AddStep):
            tensors["residual"] = addition.addend
        pixels = self.batch * self.out_height * self.out_width
        n, c = graph.tensors[node.data].shape[:2]
        moved = n * c * self._touched() + weight.size // (1 + self.weights4)
        moved += pixels * len(weight) * (2 if self.residual else 1)
        return Binding(tensors, constants, 0 if _moves(node) else pixels * weight.size, moved)

    def _biases(self, node: Product, graph: Graph, config: Config) -> Array:
        """Biases that take the input's zero point along; of both bytes, one after the other."""
        weight, bias = weight_of(node, graph), graph.constants[node.bias].astype(np.int64)
        bias = bias - _zero(node) * weight.astype(np.int64).reshape(len(weight), -1).sum(1)
        if not self.bytes:
            return _per_channel(bias, self, config)
        return np.stack([_per_channel(row, self, config) for row in bias])

    def _numbers(self, node: Product, graph: Graph, config: Config) -> dict[str, Array]:
        """Scales as words, or what makes 16 bits of sums; shifts of both bytes."""
        result = dict[str, Array]()
        if node.requant is not None:
            words = np.array([pack_scale(s) for s in node.requant.scale], np.int64)
            result["scale"] = _per_channel(words, self, config)
        else:
            names = {"least": "low", "most": "high", "before": "before", "factor": "factor"}
            for name, key in names.items():
                values = graph.constants[getattr(node, key)]
                result[name] = _per_channel(values, self, config)
        if self.bytes:
            result["shifts"] = np.stack(
                [np.full(config.block_out, shift, np.int32) for shift in (BYTE_BITS, 0)]
            )
        return result

    def _touched(self) -> int:
        """Input pixels that some window looks at, at most the whole image."""
        sizes = (self.height, self.width), (self.out_height, self.out_width)
        seen = [
            min(n, o * k if k < s else (o - 1) * s + k)
            for k, s, n, o in zip(self.kernel, self.strides, *sizes, strict=True)
        ]
        return seen[0] * seen[1]

    @property
    def wanted(self) -> str:
        """With its kernel, and its padding where that is too much."""
        return self.named(self.NOUN)

    @staticmethod
    def _behind(node: Product, graph: Graph, config: Config) -> dict[str, Array]:
        """Constants of what comes behind the requantization of the sums."""
        constants = dict[str, Array]()
        if addition := node.step_of(ops.AddStep):
            _, _, k = add_terms(*addition.requant.scale)
            constants["out_scale"] = one_scale(2.0**-k, config)
        if look_up := node.step_of(ops.TableStep):
            constants["table"] = results(look_up.table, graph)
            constants["one"] = one_scale(1.0, config)
        return constants

    def schedule(self, tile: ConvTile, config: Config) -> Schedule:
        """Tiled by ``tile``, every stage tensorized."""
        return schedule(expression(self, config), self, tile, config)

    def tiles(
        self, config: Config, vthreads: int, only: ConvTile | None = None
    ) -> Iterator[ConvTile]:
        """Portions of the output and of the reduction, and what stays on chip meanwhile."""
        return space_of(self, config).tiles(vthreads, only)

    def candidates(self, config: Config, vthreads: int) -> Iterator[tuple[Places, ConvTile]]:
        """One of each combination of what is stationary and what is resident."""
        return space_of(self, config).candidates(vthreads)

    def cost(self, tile: ConvTile, config: Config) -> TileCost:
        """Averaged over full and partial tiles."""
        return space_of(self, config).cost(tile)

    def nest(self, tile: ConvTile, config: Config) -> Nest:
        """Tiles that reduce in steps of several parts."""
        return space_of(self, config).nest(tile)


WHOLE = Requant((1.0,), 0)  # of a result that isn't requantized


# From the graph ---------------------------------------------------------------------------------


def _is_image(node: Product, graph: Graph) -> bool:
    """Whether a node's window may see several pixels."""
    return not isinstance(node, ops.QDense) and graph.constants[node.weight].ndim == 4


def _zero(node: Product) -> int:
    """The zero point of a node's data."""
    return node.zero if isinstance(node, QWideConv2d) else node.zeros[0]


def _bits(node: QWideConv2d) -> str:
    """Bits of what a node reads and writes."""
    return f"{16 if node.bytes else 8} bits to {8 if node.requant else 16}"


def weight_of(node: Product, graph: Graph) -> Array:
    """[O, I, KH, KW]: a dense layer's window is all of the image."""
    weight = graph.constants[node.weight]
    if weight.ndim == 4:
        return weight
    return weight.reshape(len(weight), *(*graph.tensors[node.data].shape, 1, 1)[1:4])


def _too_narrow(
    node: ops.QConv2d | QWideConv2d, graph: Graph, config: Config, min_fill: float
) -> str | None:
    channels = graph.tensors[node.data].shape[1]
    fill = channels / config.block_in
    if fill >= min(min_fill, 1.0):
        return None
    noun = "channel fills" if channels == 1 else "channels fill"
    percent = f"{100 * fill:.0f} %"
    return f"{channels} input {noun} {percent} of the {config.block_in}-lane block"


def _moves(node: Product) -> bool:
    """Whether nothing is multiplied for its own sake."""
    return isinstance(node, ops.QConv2d) and node.moves


def _is_fixed(node: Node, graph: Graph) -> bool:
    """Whether a residual is one value for each channel, where the result has several pixels."""
    addition = node.step_of(ops.AddStep)
    result = graph.tensors[node.output].shape
    return addition is not None and graph.tensors[addition.addend].shape != result


def _groups_per_block(weight: Sequence[int], groups: int, block: int) -> int:
    """The fewest groups of weights [O, I, …] that fill whole channel blocks together, or all."""
    outs, ins = weight[0] // groups, weight[1]
    enough = (
        k
        for k in range(1, groups + 1)
        if groups % k == 0 and (k * outs) % block == 0 and (k * ins) % block == 0
    )
    return next(enough, groups)


def pack_weight(weight: Array, groups: int, shape: Conv2d, config: Config) -> Array:
    """[O, I, KH, KW] to tiles [g, o, so, ci, si, KH, KW, block_out, block_in].

    Groups that are merged lie on the diagonal: a depthwise convolution becomes one per block.
    """
    bi, bo, block = config.block_in, config.block_out, config.channel_block
    outs, ins = len(weight) // groups, weight.shape[1]
    merged = groups // shape.groups
    dense = np.zeros(
        (shape.groups, shape.outputs * block, shape.inputs * block, *shape.kernel), np.int8
    )
    for g in range(groups):
        at, k = divmod(g, merged)
        rows, cols = slice(k * outs, (k + 1) * outs), slice(k * ins, (k + 1) * ins)
        dense[at, rows, cols] = weight[g * outs : (g + 1) * outs]
    tiles = dense.reshape(
        shape.groups, shape.outputs, block // bo, bo, shape.inputs, block // bi, bi, *shape.kernel
    )
    return np.ascontiguousarray(tiles.transpose(0, 1, 2, 4, 5, 7, 8, 3, 6))


def _per_channel(values: Array, shape: Conv2d, config: Config) -> Array:
    """One int32 per output channel, as vectors of block_out lanes; padded channels get 0."""
    per_group = shape.outputs * config.channel_block
    full = np.zeros((shape.groups, per_group), np.int64)
    full[:, : len(values) // shape.groups] = values.reshape(shape.groups, -1)
    return full.reshape(-1, config.block_out).astype(np.int32)
