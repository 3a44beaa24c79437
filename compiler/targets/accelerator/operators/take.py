"""Elements from other places: nearest upsampling by whole factors, and images in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.take import OUTSIDE, QTake
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.moves import (
    Move,
    Moves,
    MoveTensors,
    MoveTile,
    ones,
    plain,
)
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL, Binding, elements
from vdla.compiler.te import Tensor
from vdla.compiler.te.assemble import Place
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

MOST_RUNS = 64  # of images: beyond, the host copies


@dataclass(frozen=True)
class Upsampling(Moves[QTake]):
    """Pixel (y, x) of the result is pixel (y / down, x / across) of the data, rounded down.

    Rows are those of all channel blocks of all images, one behind another. The ALU writes a row's
    pixels ``across`` times side by side, since a STORE of whole rows takes half the cycles of one
    that leaves gaps; the STORE writes each row ``down`` times.

    Images in another order are copied by runs of images one behind another, a run for each of
    ``starts``: its first vector in the data, or ``OUTSIDE`` for a run of ``fill``. There is one
    row then, and each of its pixels is a vector.
    """

    NAME = "upsampling"
    NOUN = "upsampling"
    NODES = (QTake,)
    NUMBERS: ClassVar[Mapping[str, object]] = {"fill": 0}

    down: int
    across: int
    starts: tuple[int, ...] = ()
    size: int = 0  # vectors of the data, where images have another order
    fill: int = 0

    @classmethod
    def refusal(
        cls, node: QTake, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only images, or whole repetitions of rows and columns, are addresses that step evenly."""
        if len(node.shape) != 4:
            return f"a tensor of {len(node.shape)} dimensions has no channel blocks"
        shape = graph.tensors[node.data].shape
        batch, channels, *image = map(_repeats, node.tables(), shape)
        if (channels, *image) == (1, 1, 1):
            runs = _runs(node.tables()[0])
            if all(first == OUTSIDE for first, _ in runs):
                return "images of which none is the data's"
            count = len(runs)
            return None if count <= MOST_RUNS else f"{count} runs of images; at most {MOST_RUNS}"
        if (batch, channels) != (1, 1) or None in image:
            return "elements other than each row and each column a number of times"
        return None

    @classmethod
    def of(cls, node: QTake, graph: Graph, config: Config) -> Upsampling:
        """The template of an upsampling."""
        n, c, height, width = graph.tensors[node.data].shape
        rows = n * ceil_div(c, config.channel_block) * height
        sub = config.channel_block // config.block_out
        if node.shape[1:] == (c, height, width):
            runs, image = _runs(node.tables()[0]), rows // n * width * sub
            starts = tuple(first if first == OUTSIDE else first * image for first, _ in runs)
            pixels = tuple(count * image for _, count in runs)
            return cls(1, pixels, 1, 1, 1, starts, n * image, int(node.fill))
        return cls(rows, (width,), sub, node.shape[2] // height, node.shape[3] // width)

    @classmethod
    def placed(cls, node: QTake) -> str:
        """Which kind of ``QTake`` it is."""
        moved = any(first for first, _ in _runs(node.tables()[0]))
        return "images in another order on int8" if moved else "nearest upsampling on int8"

    def bind(self, node: QTake, graph: Graph, config: Config) -> Binding:
        """One scale, 1, for all lanes; each run has the data as an operand of its own."""
        moved = elements(graph, node.data) + elements(graph, node.output)
        tensors, constants = {"out": node.output}, {"scales": ones(config)}
        if not self.starts:
            return Binding({"data": node.data, **tensors}, constants, 0, moved)
        for run, (start, count) in enumerate(zip(self.starts, self.pixels, strict=True)):
            if start == OUTSIDE:
                shape = 1, count, config.block_out
                constants[f"run{run}"] = np.full(shape, self.fill, np.int8)
            else:
                tensors[f"run{run}"] = node.data
        return Binding(tensors, constants, 0, 2 * elements(graph, node.output))

    @property
    def grown(self) -> tuple[int, int]:
        """Number of times that an operand's row is stored, and its pixels in a row."""
        return self.down, self.across

    def run(self, tile: MoveTile) -> int:
        """A row, with its pixels several times."""
        return tile.pixels * self.across * self.vectors

    def expression(self, config: Config) -> MoveTensors:
        """The data widened, its pixels repeated in ACC, its rows on the way to DRAM."""
        if self.starts:
            return self._copied(config)
        ins, lanes = intrinsics(config), config.block_out
        width, *pixel = self.pixels[0], self.vectors, lanes
        scales = te.placeholder((1, lanes), "int32", "scales")
        data = te.placeholder((self.rows, width, *pixel), "int8", "data")
        wide = widened(data, 0, "wide")
        steps, shape = [(wide, ins.load_acc8)], (self.rows, width, self.across, *pixel)
        line = te.compute(shape, lambda y, x, q, s, l: wide[y, x, s, l], "line")
        if self.across > 1:
            steps = [(line, ins.alu_copy), *steps]
        stored = te.compute(
            (self.rows, width, self.down, self.across, *pixel),
            lambda y, x, r, q, s, l: plain(
                line[y, x, q, s, l] if self.across > 1 else wide[y, x, s, l], scales[0, l]
            ),
            "stored",
        )
        out = te.assemble(
            (self.rows, self.down, width, self.across, *pixel),
            [(stored, lambda y, x, r, q, s, l: (y, r, x, q, s, l))],
            "out",
        )
        return MoveTensors([Move(data, steps, stored, stored.axis[2:3])], scales, out)

    def _copied(self, config: Config) -> MoveTensors:
        """Each run widened, and stored behind the one before it."""
        lanes, load = config.block_out, intrinsics(config).load_acc8
        scales, moves = te.placeholder((1, lanes), "int32", "scales"), []
        for run, (start, count) in enumerate(zip(self.starts, self.pixels, strict=True)):
            size, first = (count, 0) if start == OUTSIDE else (self.size, start)
            data = te.placeholder((1, size, lanes), "int8", f"run{run}")
            wide = _shifted(data, (1, count, lanes), first, f"wide{run}")
            moves.append(Move(data, [(wide, load)], _stored(wide, scales, f"stored{run}")))
        starts = accumulate(self.pixels, initial=0)
        parts = [(move.stored, _behind(start)) for move, start in zip(moves, starts, strict=False)]
        return MoveTensors(moves, scales, te.assemble((1, sum(self.pixels), lanes), parts, "out"))


def _shifted(data: Tensor, shape: tuple[int, ...], first: int, name: str) -> Tensor:
    """The pixels of some data from ``first`` on, widened."""
    return te.compute(shape, lambda y, v, l: data[y, v + first, l].astype("int32"), name)


def _stored(wide: Tensor, scales: Tensor, name: str) -> Tensor:
    return te.compute(wide.shape, lambda *i: plain(wide[i], scales[0, i[-1]]), name)


def _behind(start: int) -> Place:
    """Place of the vectors of a run that has ``start`` of them before it."""
    return lambda y, v, l: (y, v + start, l)


def _runs(table: Sequence[int]) -> list[tuple[int, int]]:
    """Images one behind another: the first one's place, and how many there are."""
    runs: list[tuple[int, int]] = []
    for place in table:
        first, count = runs[-1] if runs else (OUTSIDE, 0)
        expected = OUTSIDE if first == OUTSIDE else first + count
        if runs and place == expected:
            runs[-1] = first, count + 1
        else:
            runs.append((place, 1))
    return runs


def _repeats(table: Sequence[int], size: int) -> int | None:
    """Number of times that a table has each index of an axis, one after another; None where it
    hasn't.
    """
    times, rest = divmod(len(table), size)
    if rest or list(table) != [i // times for i in range(len(table))]:
        return None
    return times
