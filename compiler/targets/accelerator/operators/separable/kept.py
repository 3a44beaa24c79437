"""Tensors that a separable convolution keeps on chip, for how long, and in how many copies.

The schedule places and copies stages by this list, and the entries that a tile takes follow from it
and from the expression's indices (``boxes.py``). A tile's numbers may be columns.

    tensor            memory   kept for                         copies
    biases, scales    ACC      the operator
    data              INP      a tile of the result             stages
    sums, result      ACC      a tile, or a step of channels    vthreads, of what a step leaves
    image, middle     INP      a step                           vthreads
    weights           WGT      the operator, or a step          vthreads
    those that project         the operator, or a portion       copies
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from vdla.compiler.targets.accelerator.description import ACC, INP, WGT, intrinsics
from vdla.compiler.targets.accelerator.description.lowering import Lowering, lowering_of
from vdla.compiler.targets.accelerator.description.memory import entry_shape
from vdla.compiler.targets.accelerator.operators.access import Size
from vdla.compiler.targets.accelerator.operators.boxes import Box, Boxes
from vdla.compiler.targets.accelerator.operators.separable.expression import (
    SeparableTensors,
    expression,
)
from vdla.compiler.targets.accelerator.operators.separable.sizes import (
    PORTIONS,
    SeparableSizes,
    SeparableTile,
)
from vdla.compiler.targets.accelerator.options.window import gemm_window
from vdla.compiler.targets.accelerator.passes.window_rows import row_pitch
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Var
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

LEVELS = ("operator", "tile", "step", "portion")  # that something is kept for, outermost first


@dataclass(frozen=True)
class Kept:
    """A tensor in a memory on chip, for as long as a level's loops need it, in some copies."""

    tensor: Tensor
    scope: str
    level: str
    copies: Size = 1


def kept(e: SeparableTensors, tile: SeparableTile) -> Iterator[Kept]:
    """All that lies on chip."""
    for sums in e.sums:
        yield Kept(sums.bias, ACC, "operator")
        yield Kept(sums.scale, ACC, "operator")
        yield _sums(e, sums.acc, tile)
        yield _weights(e, sums.tiles, tile)
    if e.addition is not None:
        yield Kept(e.addition.scale, ACC, "operator")
        yield from (Kept(stage, ACC, "tile") for stage in e.addition.stages)
    if e.expand is not None:
        yield Kept(e.staged or e.data, INP, "tile", tile.stages)
    for between in (e.image, e.middle):
        if between is not None:
            yield Kept(between, INP, "step", tile.vthreads)


def _sums(e: SeparableTensors, acc: Tensor, tile: SeparableTile) -> Kept:
    if e.project is not None and acc is e.project.acc:
        return Kept(acc, ACC, "tile")
    return Kept(acc, ACC, "step", tile.vthreads)


def _weights(e: SeparableTensors, tiles: Tensor, tile: SeparableTile) -> Kept:
    if tile.resident:
        return Kept(tiles, WGT, "operator")
    if e.project is not None and tiles is e.project.tiles:
        return Kept(tiles, WGT, "portion", tile.copies)
    return Kept(tiles, WGT, "step", tile.vthreads)


def intrinsics_of(
    e: SeparableTensors, shape: SeparableSizes, config: Config
) -> dict[Tensor, TensorIntrin]:
    """The intrinsics of the stages that there is a choice for, and of those that work in place."""
    ins, made_by = intrinsics(config), dict[Tensor, TensorIntrin]()
    made_by[e.filter.acc] = ins.gemm
    if shape.taps > 1:
        made_by[e.filter.acc] = gemm_window(shape.window_rows, shape.taps, config)
    if e.addition is not None:
        made_by[e.addition.added] = ins.alu_wadd
        made_by[e.addition.wide] = ins.load_acc8
        made_by[e.addition.requantized] = ins.alu_rq
    return made_by


class Layout:
    """The tensors of an operator at one size on a config, and the room that its tiles take."""

    def __init__(self, shape: SeparableSizes, config: Config) -> None:
        self.shape, self.config = shape, config
        self.tensors = expression(shape, config)
        self.boxes = Boxes(self.tensors.out)
        made_by = intrinsics_of(self.tensors, shape, config)
        self._lowerings = {tensor: lowering_of(each) for tensor, each in made_by.items()}

    @property
    def fills(self) -> int:
        """Micro-ops of a row of the filter's sums that only fill the window."""
        return self._lowerings[self.tensors.filter.acc].fills

    def under(self, tile: SeparableTile, level: str) -> Mapping[Tensor, Box]:
        """By tensor, the box that one iteration of a level needs."""
        return self.boxes.under(self._portions(tile, level))

    def seen(self, tile: SeparableTile) -> Size:
        """Pixels of the data under a tile's image; of several phases, with the columns that are
        padded."""
        e, boxes = self.tensors, self.under(tile, "tile")
        if e.expand is not None:
            return prod(boxes[e.expand.acc][2:-1])
        *_, rows, cols, _ = boxes[e.data]
        _, _, phases, _, wide, _ = boxes[e.image]
        return rows * (cols if self.shape.phases == 1 else phases * wide)

    def entries(self, tile: SeparableTile) -> dict[str, Size]:
        """By memory, the entries that a tile takes."""
        boxes = {level: self.under(tile, level) for level in LEVELS}
        result: dict[str, Size] = dict.fromkeys((INP, WGT, ACC), 0)
        for each in kept(self.tensors, tile):
            box = boxes[each.level][each.tensor]
            result[each.scope] = result[each.scope] + each.copies * self._entries(each, box)
        return result

    def _portions(self, tile: SeparableTile, level: str) -> dict[Var, Size]:
        """Sizes that the loops down to a level cut axes into."""
        e = self.tensors
        n, o, y, x, _ = e.out.axis
        steps = o if e.project is None else e.project.acc.reduce_axis[0]
        cuts: list[dict[Var, Size]] = [{}, {n: 1, y: tile.rows, x: tile.cols}, {steps: tile.blocks}]
        if e.project is not None:
            cuts.append({o: ceil_div(e.out.shape[1], PORTIONS)})
        return {axis: n for cut in cuts[: LEVELS.index(level) + 1] for axis, n in cut.items()}

    def _entries(self, each: Kept, box: Box) -> Size:
        """Entries of one copy of a tensor's box; what is made in place of an operand takes none."""
        lowering = self._lowerings.get(each.tensor, Lowering(()))
        if lowering.inplace:
            return 0
        shape = entry_shape(each.scope, self.config)  # of which each is taken whole
        *outer, cols = box[: -len(shape)]
        whole = prod(-(-size // n) for size, n in zip(box[-len(shape) :], shape, strict=True))
        return prod(outer) * row_pitch(cols, lowering.fills) * whole
