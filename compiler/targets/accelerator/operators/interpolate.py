"""Bilinear resizing to whole multiples of a size: weighted sums of neighbours, by the ALU.

Pixels of the result take turns: those at each place among ``down`` rows and ``across`` columns see
the data's pixel of their own number and those around it, by weights of their row and column. Where
weights would lie outside the image they are zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.interpolate import MOST_WEIGHT, QInterpolate
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.description.intrinsics import Intrinsics
from vdla.compiler.targets.accelerator.operators.moves import Move, Moves, MoveTensors, MoveTile
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    elements,
    one_scale,
)
from vdla.compiler.te import Tensor
from vdla.compiler.te.assemble import Place
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

NEAR = (-1, 0, 1)  # neighbours of a pixel along an axis
Taps = tuple[int, ...]
Steps = list[tuple[Tensor, TensorIntrin]]


@dataclass(frozen=True)
class Interpolation(Moves[QInterpolate]):
    """``down`` times as many rows and ``across`` times as many columns.

    Rows are channel blocks of images, pixels their rows. ``taps`` are the neighbours with weights,
    of each of ``down`` rows; ``sides`` those of each of ``across`` columns.
    """

    NAME = "interpolate"
    NOUN = "interpolation"
    NODES = (QInterpolate,)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(("in_zero", "zero", "low", "high"), 0)

    width: int
    taps: tuple[Taps, ...]
    sides: tuple[Taps, ...]
    in_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def refusal(
        cls, node: QInterpolate, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only whole multiples of a size, of direct neighbours, are addresses that step evenly."""
        for name in (node.rows, node.columns):
            weights = graph.constants[name]
            if len(weights) % weights.shape[1]:
                return f"{len(weights)} pixels of {weights.shape[1]}, which is no whole multiple"
            factor = len(weights) // weights.shape[1]
            if any(_distant(weights[turn::factor]) for turn in range(factor)):
                return "pixels other than direct neighbours"
        return None

    @classmethod
    def of(cls, node: QInterpolate, graph: Graph, config: Config) -> Interpolation:
        """The template of a node; weights and scales are constants."""
        n, c, height, width = graph.tensors[node.data].shape
        taps, sides = (_taps(graph.constants[name]) for name in (node.rows, node.columns))
        images, sub = (
            n * ceil_div(c, config.channel_block),
            config.channel_block // config.block_out,
        )
        pixels = (height,) * (len(taps) * len(sides))
        finish = *node.zeros, *node.requant.limits
        return cls(images, pixels, sub * width, width, taps, sides, *finish)

    def bind(self, node: QInterpolate, graph: Graph, config: Config) -> Binding:
        """The weights of each turn's rows and columns, the same in all lanes."""
        rows, columns = graph.constants[node.rows], graph.constants[node.columns]
        constants = {"scales": one_scale(node.requant.scale[0], config)}
        tensors = {"out": node.output}
        for number in range(len(self.pixels)):
            row, column = divmod(number, len(self.sides))
            tensors[f"data{number}"] = node.data
            for name, weights, turn, taps in (
                ("rows", rows, row, self.taps), ("columns", columns, column, self.sides),
            ):  # fmt: skip
                table = _bands(weights[turn :: len(taps)], taps[turn])
                lanes = np.repeat(table[..., None], config.block_out, axis=-1)
                constants[f"{name}{number}"] = lanes.astype(np.int32)
        moved = elements(graph, node.data) + elements(graph, node.output)
        return Binding(tensors, constants, 0, moved)

    @property
    def alu_steps(self) -> int:
        """A product per neighbour, and their sums."""
        return 2 * self.multiplications - 2

    @property
    def multiplications(self) -> int:
        """The products."""
        return max(map(len, self.taps)) + max(map(len, self.sides))

    def run(self, tile: MoveTile) -> int:
        """A pixel's vectors, or all of a row where no other turn's pixels lie between."""
        return self.vectors if len(self.sides) == 1 else self.vectors // self.width

    def expression(self, config: Config) -> MoveTensors:
        """Each turn's pixels from all of the data, stored where they belong."""
        ins, lanes = intrinsics(config), config.block_out
        scales = te.placeholder((1, lanes), "int32", "scales")
        down, across = len(self.taps), len(self.sides)
        moves = [self._move(number, scales, ins) for number in range(down * across)]
        parts = [(m.stored, _turn(*divmod(n, across))) for n, m in enumerate(moves)]
        sub = self.vectors // self.width
        shape = self.rows, self.pixels[0], down, self.width, across, sub, lanes
        return MoveTensors(moves, scales, te.assemble(shape, parts, "out"))

    def _move(self, number: int, scales: Tensor, ins: Intrinsics) -> Move:
        """One turn's way."""
        height, width, lanes = self.pixels[0], self.width, scales.shape[1]
        sub = self.vectors // width
        data = te.placeholder((self.rows, height, width, sub, lanes), "int8", f"data{number}")
        row, column = divmod(number, len(self.sides))
        taps, sides = self.taps[row], self.sides[column]
        known = {"value_range": (0, MOST_WEIGHT)}
        rows = te.placeholder((len(taps), height, lanes), "int32", f"rows{number}", **known)
        columns = te.placeholder((len(sides), width, lanes), "int32", f"columns{number}", **known)
        near = (self.rows, height + 2, width + 2, sub, lanes)

        def around(n: Expr, y: Expr, x: Expr, v: Expr, l: Expr) -> Expr:
            inside = te.all(y >= 1, y < height + 1, x >= 1, x < width + 1)
            outside = te.const(self.in_zero, "int8")
            value = te.if_then_else(inside, data[n, y - 1, x - 1, v, l], outside)
            return value.astype("int32") - te.const(self.in_zero)

        wide = te.compute(near, around, f"wide{number}")
        steps: Steps = [(wide, ins.load_acc8_pad)]
        held = [_held(table, ins, steps) for table in (rows, columns)]

        def below(i: int) -> Tensor:
            return te.compute(
                (self.rows, height, width + 2, sub, lanes),
                lambda n, y, x, v, l: wide[n, y + 1 + taps[i], x, v, l] * held[0][i, y, l],
                f"row{number}.{i}",
            )

        line = _summed([below(i) for i in range(len(taps))], ins, steps)

        def beside(j: int) -> Tensor:
            return te.compute(
                data.shape,
                lambda n, y, x, v, l: line[n, y, x + 1 + sides[j], v, l] * held[1][j, x, l],
                f"column{number}.{j}",
            )

        total = _summed([beside(j) for j in range(len(sides))], ins, steps)
        limits = self.zero, self.low, self.high
        stored = te.compute(
            data.shape,
            lambda *i: te.requantize(total[i], scales[0, i[-1]], *limits).astype("int8"),
            f"stored{number}",
        )
        return Move(data, steps[::-1], stored, others=[rows, columns])


def _held(table: Tensor, ins: Intrinsics, steps: Steps) -> Tensor:
    """A table in ACC."""
    held = te.compute(table.shape, lambda *i: table[i], f"{table.name}.held")
    steps.append((held, ins.load_acc))
    return held


def _summed(terms: list[Tensor], ins: Intrinsics, steps: Steps) -> Tensor:
    """Adds products one by one."""
    total = terms[0]
    steps.append((total, ins.alu_mul))
    for term in terms[1:]:
        steps.append((term, ins.alu_mul))
        total = _sum(total, term)
        steps.append((total, ins.alu_add))
    return total


def _sum(a: Tensor, b: Tensor) -> Tensor:
    return te.compute(a.shape, lambda *i: a[i] + b[i], f"{b.name}.sum")


def _turn(row: int, column: int) -> Place:
    """Place of the pixels whose turn comes at some row and column."""
    return lambda n, y, x, v, l: (n, y, row, x, column, v, l)


def _distant(weights: Array) -> bool:
    """Whether some of the weights [n, n] are of pixels that aren't direct neighbours."""
    return bool(np.triu(weights, 2).any() or np.tril(weights, -2).any())


def _taps(weights: Array) -> tuple[Taps, ...]:
    """The neighbours of each turn's pixels that have weights."""
    factor = len(weights) // weights.shape[1]
    turns = (weights[turn::factor] for turn in range(factor))
    return tuple(tuple(d for d in NEAR if np.diagonal(w, d).any()) for w in turns)


def _bands(weights: Array, taps: Taps) -> Array:
    """[taps, n]: each pixel's weight of each neighbour."""
    size = len(weights)
    table = np.zeros((len(taps), size), np.int64)
    for number, tap in enumerate(taps):
        for i in range(size):
            if 0 <= i + tap < size:
                table[number, i] = weights[i, i + tap]
    return table
