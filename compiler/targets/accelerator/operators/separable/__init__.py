"""Depthwise convolutions, alone or between the 1 × 1 convolutions around them, as one operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeGuard

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.numbers import add_terms
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import ANY_RESIDUAL, Residual
from vdla.compiler.targets.accelerator.operators.cost import no_tile
from vdla.compiler.targets.accelerator.operators.separable.expression import expression
from vdla.compiler.targets.accelerator.operators.separable.schedule import schedule
from vdla.compiler.targets.accelerator.operators.separable.sizes import (
    ANY_LIMITS,
    Limits,
    SeparableSizes,
    SeparableTile,
)
from vdla.compiler.targets.accelerator.operators.separable.space import Space, cheapest_tile
from vdla.compiler.targets.accelerator.operators.template import (
    Array,
    Binding,
    Template,
    one_scale,
)
from vdla.compiler.targets.accelerator.options.weights4 import fits, in_dram
from vdla.isa.config import Config
from vdla.isa.numbers import pack_scale
from vdla.isa.options.window import window_rows, window_taps
from vdla.support.numbers import ceil_div

__all__ = ["Parts", "Separable", "parts_of"]


class Parts(NamedTuple):
    """The convolutions of a fused node; the outer ones may be missing."""

    expand: ops.QConv2d | None
    filter: ops.QConv2d
    project: ops.QConv2d | None


def is_depthwise(node: Node, graph: Graph) -> TypeGuard[ops.QConv2d]:
    """Whether a node is a convolution in which each channel sees itself alone."""
    if not isinstance(node, ops.QConv2d) or not node.is_plain:
        return False
    channels = graph.tensors[node.data].shape[1]
    outputs, inputs = graph.tensors[node.weight].shape[:2]
    return bool(inputs == 1 and outputs == channels == node.groups and channels > 1)


def parts_of(node: ops.Fused, graph: Graph) -> Parts:
    """Which convolution of a fused node does what."""
    nodes = [each for each in node.parts if isinstance(each, ops.QConv2d)]
    at = next(i for i, each in enumerate(nodes) if is_depthwise(each, graph))
    before, after = nodes[:at], nodes[at + 1 :]
    return Parts(before[0] if before else None, nodes[at], after[0] if after else None)


@dataclass(frozen=True)
class Separable(SeparableSizes, Template[ops.Fused, SeparableTile]):
    """``expand → depthwise → project``; see ``SeparableSizes``."""

    NAME = "separable"
    TILE = SeparableTile
    NOUN = "depthwise convolution"
    NODES = (ops.Fused,)
    TUNED = False
    NUMBERS: ClassVar[Mapping[str, object]] = {
        "pad": 0,
        "expanded": ANY_LIMITS,
        "filtered": ANY_LIMITS,
        "projected": ANY_LIMITS,
        "residual": ANY_RESIDUAL,
    }

    @classmethod
    def placed(cls, node: ops.Fused) -> str:
        """Text of the placement report: the names of its parts, between which tensors
        stay on chip.
        """
        names = " → ".join(part.name for part in node.parts)
        return f"{names} on int8, as one" if len(node.parts) > 1 else f"{cls.NOUN} on int8"

    @classmethod
    def of(cls, node: ops.Fused, graph: Graph, config: Config) -> Separable:
        """The template of a fused node."""
        return cls.of_parts(parts_of(node, graph), graph, config)

    @classmethod
    def of_parts(cls, parts: Parts, graph: Graph, config: Config) -> Separable:
        """The template of convolutions that follow one another."""
        expand, middle, project = parts
        n, channels, height, width = graph.tensors[middle.data].shape
        block = config.channel_block
        kh, kw = graph.tensors[middle.weight].shape[2:]
        taps = _taps(middle, graph, config)
        return cls(
            batch=n,
            inputs=_blocks(expand.data, graph, block) if expand else 0,
            blocks=ceil_div(channels, block),
            outputs=_blocks(project.output, graph, block) if project else 0,
            height=height,
            width=width,
            kernel=(kh, kw),
            strides=middle.strides,
            pads=middle.pads,
            dilations=middle.dilations,
            taps=taps,
            pad=middle.zeros[0],
            expanded=_limits(expand) if expand else None,
            filtered=_limits(middle),
            projected=_limits(project) if project else None,
            residual=Residual.of(project) if project else None,
            window_rows=window_rows(config) if taps > 1 else 1,
            weights4=fits([graph.constants[p.weight] for p in parts if p is not None], config),
        )

    def bind(self, node: ops.Fused, graph: Graph, config: Config) -> Binding:
        """Weights in tiles, biases that take zero points along, scales as words."""
        parts = parts_of(node, graph)
        tensors = {"data": node.parts[0].inputs[0], "out": node.output}
        constants: dict[str, Array] = {}
        macs = moved = 0
        for name, part in parts._asdict().items():
            if part is None:
                continue
            weight = graph.constants[part.weight]
            pack = self._pack_filter if name == "filter" else _pack_pointwise
            tiles = in_dram(pack(weight, config), weights4=self.weights4)
            constants |= _constants(name, part, tiles, graph, config)
            macs += int(np.prod(graph.tensors[part.output].shape[2:])) * self.batch * weight.size
            moved += weight.size // (1 + self.weights4)
        if addition := parts.project and parts.project.step_of(ops.AddStep):
            tensors["residual"] = addition.addend
            _, _, k = add_terms(*addition.requant.scale)
            constants["out_scale"] = one_scale(2.0**-k, config)
        for name in tensors.values():
            moved += int(np.prod(graph.tensors[name].shape))
        return Binding(tensors, constants, macs, moved)

    def _pack_filter(self, weight: Array, config: Config) -> Array:
        """[C, 1, KH, KW] to the tiles that the expression names."""
        block, (kh, kw) = config.channel_block, self.kernel
        padded = np.zeros((self.blocks * block, kh, kw), np.int8)
        padded[: len(weight)] = weight[:, 0]
        taps = padded.reshape(self.blocks, block, kh, kw)
        lane = np.arange(block)
        if self.taps == 1:
            diagonal = np.zeros((self.blocks, kh, kw, block, block), np.int8)
            diagonal[:, :, :, lane, lane] = taps.transpose(0, 2, 3, 1)
            return diagonal
        tiles = np.zeros((self.blocks, *self.steps, self.portions, block, block), np.int8)
        for ky, kx in np.ndindex(kh, kw):
            column, phase = divmod(kx, self.phases)
            portion, place = divmod(column, self.taps)
            back = self.taps - 1 - place  # steps before the micro-op's own
            step, over, row = self._seen(ky, phase)
            lanes = 2 * (row * window_taps(config) + back) + lane % 2
            tiles[:, step, over, portion, lane, lanes] = taps[..., ky, kx]
        return tiles

    def _seen(self, ky: int, phase: int) -> tuple[int, int, int]:
        """The step down, the step over phases, and the row of the window that see a tap."""
        if self.pairs_phases:
            return ky, 0, phase
        down = self.steps[0]
        return (ky, phase, 0) if ky < down else (ky - self.pitch, phase, 1)

    def schedule(self, tile: SeparableTile, config: Config) -> Schedule:
        """One schedule over all parts."""
        return schedule(expression(self, config), self, tile, config)

    def tiles(
        self, config: Config, vthreads: int, only: SeparableTile | None = None
    ) -> Iterator[SeparableTile]:
        """Portions of the result, and channel blocks of a step."""
        return Space(self, config).tiles(vthreads, only)

    def best(self, config: Config, vthreads: int) -> SeparableTile:
        """The tile that the model of these parts likes best.

        Raises:
            TilingError: the buffers hold none.
        """
        best = cheapest_tile(self.geometry, config, vthreads)
        if best is None:
            raise no_tile(f"one tile of {self.wanted}", config)
        return best.tile

    @property
    def wanted(self) -> str:
        """With its kernel."""
        return self.named(self.NOUN)


def _blocks(name: str, graph: Graph, block: int) -> int:
    return ceil_div(graph.tensors[name].shape[1], block)


def _taps(node: ops.QConv2d, graph: Graph, config: Config) -> int:
    """Neighbouring pixels that a micro-op sees of one phase: as many as the kernel has, at most as
    the window holds."""
    kw, stride = graph.tensors[node.weight].shape[3], node.strides[1]
    if node.dilations[1] > 1 or window_taps(config) == 0:
        return 1
    return min(ceil_div(kw, stride), window_taps(config))


def _limits(node: ops.QConv2d) -> Limits:
    return Limits(*node.requant.limits)


def _pack_pointwise(weight: Array, config: Config) -> Array:
    """[O, I, 1, 1] to tiles [o, i, block, block]."""
    block = config.channel_block
    outs, ins = ceil_div(len(weight), block), ceil_div(weight.shape[1], block)
    dense = np.zeros((outs * block, ins * block), np.int8)
    dense[: len(weight), : weight.shape[1]] = weight[:, :, 0, 0]
    return np.ascontiguousarray(dense.reshape(outs, block, ins, block).transpose(0, 2, 1, 3))


def _constants(
    name: str, node: ops.QConv2d, tiles: Array, graph: Graph, config: Config
) -> dict[str, Array]:
    """A convolution's constants as the expression's placeholders."""
    weight = graph.constants[node.weight].astype(np.int64)
    bias = graph.constants[node.bias].astype(np.int64)
    bias = bias - node.zeros[0] * weight.reshape(len(weight), -1).sum(1)
    words = np.array([pack_scale(scale) for scale in node.requant.scale], np.int64)
    block = config.channel_block
    values = {f"{name}_weight": tiles}
    for key, per_channel in (("bias", bias), ("scale", words)):
        full = np.zeros(ceil_div(len(weight), block) * block, np.int64)
        full[: len(weight)] = per_channel
        values[f"{name}_{key}"] = full.reshape(-1, block).astype(np.int32)
    return values
