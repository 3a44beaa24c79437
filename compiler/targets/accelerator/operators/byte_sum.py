"""Sums of 16 bits, whose tensors of 16 bits are bytes: loaded as int8, and stored as int8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.byte_sum import QByteSum
from vdla.compiler.graph.ops.wide import BYTE_BITS, MOST
from vdla.compiler.targets.accelerator.description import Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.moves import (
    Move,
    Moves,
    MoveTensors,
    MoveTile,
    plain,
)
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    elements,
    one_scale,
    without_blocks,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

Steps = list[tuple[Tensor, TensorIntrin]]  # the first one first
TOP = 32 - BYTE_BITS  # bits above a byte in a lane
BYTES, WIDE, NARROW = "bytes", "int32", "int8"  # what a term is


@dataclass(frozen=True)
class ByteSum(Moves[QByteSum]):
    """``clip((Σ (terms[i] - zeros[i]) · weights[i] + offset[c] + half) >> shift, low, high)``, of
    which each byte is computed by itself; or the sum, requantized as int8: ``narrow``.

    Rows are channel blocks. ``kinds`` says what each term is.
    """

    NAME = "byte_sum"
    NOUN = "sum of bytes"
    NODES = (QByteSum,)
    NUMBERS: ClassVar[dict[str, object]] = {"zero": 0, "low": 0, "high": 0}

    kinds: tuple[str, ...]
    zeros: tuple[int, ...]
    weights: tuple[int, ...]
    shift: int
    narrow: bool
    offset: bool
    zero: int
    low: int
    high: int
    within: bool  # the limits, whatever the terms are

    @classmethod
    def refusal(
        cls, node: QByteSum, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only images have channel blocks."""
        return without_blocks(node, graph)

    @classmethod
    def of(cls, node: QByteSum, graph: Graph, config: Config) -> ByteSum:
        """The template of a node; offsets are constants."""
        _, channels, *image = graph.tensors[node.output].shape
        block, vectors = config.channel_block, config.channel_block // config.block_out
        dtypes = [graph.tensors[name].dtype for name in node.terms]
        kinds = tuple(BYTES if b else d for b, d in zip(node.bytes, dtypes, strict=True))
        limits = node.requant.limits if node.requant else (0, node.low, node.high)
        narrow = node.requant is not None
        count = (prod(image),) * (1 if narrow else 2)
        sums = kinds, node.zeros, node.weights, node.shift, narrow, node.offset is not None
        rows, within = ceil_div(channels, block), _is_within(node, kinds, graph)
        return cls(rows, count, vectors, *sums, *limits, within)

    def bind(self, node: QByteSum, graph: Graph, config: Config) -> Binding:
        """The scale of what is stored, and offsets with half a step, by channel."""
        ends = ("",) if self.narrow else ("low_", "high_")
        tensors = {
            f"{end}term{n}": name for end in ends for n, name in enumerate(node.terms)
        }  # each is loaded for each byte
        scale = node.requant.scale[0] if node.requant else 1.0
        constants: dict[str, Array] = {"scales": one_scale(scale, config)}
        if node.offset is not None:
            values = graph.constants[node.offset]
            full = np.zeros(self.rows * config.channel_block, np.int32)
            full[: len(values)] = values + (0 if self.narrow else node.half)
            rows = full.reshape(self.rows, self.vectors, config.block_out)
            constants |= {f"{end}offset": rows for end in ends}
        sizes = {BYTES: 2, WIDE: 4, NARROW: 1}
        moved = elements(graph, node.output)
        moved += sum(sizes[kind] for kind in self.kinds) * self.lanes(config) * len(ends)
        return Binding({**tensors, "out": node.output}, constants, 0, moved)

    def lanes(self, config: Config) -> int:
        """Elements of the image, with the padding of its channels."""
        return self.rows * self.pixels[0] * self.vectors * config.block_out

    def run(self, tile: MoveTile) -> int:
        """All vectors of a tile."""
        return tile.pixels * self.vectors

    @property
    def alu_steps(self) -> int:
        """The terms of bytes, their sum, its rounding, and a byte of it."""
        own = self.kinds.count(BYTES) + 1 + self.offset
        return own if self.narrow else own + 3 + 2 * (not self.within) + (not self.offset)

    @property
    def multiplications(self) -> int:
        """Operations of the ALU per vector that multiply or shift."""
        return self.kinds.count(BYTES) + 1 + (0 if self.narrow else 3)

    def loaded(self, tile: MoveTile) -> int:
        """Vectors of int8 that have as many bytes as what a tile loads."""
        sizes = {BYTES: 2, WIDE: 4, NARROW: 1}
        count = sum(sizes[kind] for kind in self.kinds)
        return count * tile.rows * tile.pixels * self.vectors

    def expression(self, config: Config) -> MoveTensors:
        """The sum for each byte, and where it is stored."""
        ins, lanes = intrinsics(config), config.block_out
        scales = te.placeholder((1, lanes), "int32", "scales")
        dims = self.rows, self.pixels[0], self.vectors, lanes
        if self.narrow:
            way = _Way("", dims, ins)
            total, limits = self._total(way), (self.zero, self.low, self.high)

            def narrowed(*i: Expr) -> Expr:
                return te.requantize(total[i], scales[0, i[-1]], *limits).astype("int8")

            move = way.move(te.compute(dims, narrowed, "out"))
            return MoveTensors([move], scales, move.stored)
        moves = []
        for name, byte in (("low_", _low), ("high_", _high)):
            way = _Way(name, dims, ins)
            last = byte(way, self._rounded(way))
            moves.append(way.move(_stored(last, scales, name)))
        out = te.assemble(
            (2, *dims),
            [
                (moves[0].stored, lambda y, p, s, l: (0, y, p, s, l)),
                (moves[1].stored, lambda y, p, s, l: (1, y, p, s, l)),
            ],
            "out",
        )
        return MoveTensors(moves, scales, out)

    def _total(self, way: _Way) -> Tensor:
        """The sum of the terms and the offset."""
        ins = way.ins
        numbers = zip(self.kinds, self.zeros, strict=True)
        terms = [way.term(number, *each) for number, each in enumerate(numbers)]
        weights = [te.const(weight) for weight in self.weights]
        first, last = terms[0], terms[-1]
        if len(terms) > 1:

            def both(*i: Expr) -> Expr:
                return first[i] * weights[0] + last[i] * weights[1]

            total = way.step("summed", ins.alu_wadd, both)
        else:
            total = way.step("scaled", ins.alu_mul_imm, lambda *i: first[i] * weights[0])
        return way.offset(total) if self.offset else total

    def _rounded(self, way: _Way) -> Tensor:
        """The sum as 16 bits."""
        ins, total = way.ins, self._total(way)
        half, low, high = (te.const(n) for n in ((1 << self.shift) >> 1, self.low, self.high))
        shift, more = te.const(self.shift), total
        if not self.offset and self.shift:
            more = way.step("more", ins.alu_add_imm, lambda *i: total[i] + half)
        down = more
        if self.shift:
            down = way.step("down", ins.alu_shr_imm, lambda *i: more[i] >> shift)
        if self.within:
            return down
        under = way.step("under", ins.alu_min_imm, lambda *i: te.minimum(down[i], high))
        return way.step("over", ins.alu_max_imm, lambda *i: te.maximum(under[i], low))


class _Way:
    """The way of one byte through ACC: what it loads, and its steps."""

    def __init__(self, name: str, dims: tuple[int, ...], ins: Intrinsics) -> None:
        self.name, self.dims, self.ins = name, dims, ins
        self.inputs: list[Tensor] = []
        self.steps: Steps = []

    def step(
        self,
        name: str,
        intrin: TensorIntrin,
        value: Callable[..., Expr],
        dims: tuple[int, ...] | None = None,
    ) -> Tensor:
        """One more stage."""
        tensor = te.compute(dims or self.dims, value, f"{self.name}{name}")
        self.steps.append((tensor, intrin))
        return tensor

    def term(self, number: int, kind: str, zero: int) -> Tensor:
        """A term in ACC."""
        ins, dims = self.ins, self.dims
        if kind == BYTES:
            data = self._input(f"term{number}", (2, *dims), "int8")
            low, high = (
                self.step(f"{end}{number}", ins.load_acc8, _byte(data, at))
                for at, end in enumerate(("below", "above"))
            )
            one, step = te.const(1), te.const(1 << BYTE_BITS)
            return self.step(
                f"whole{number}", ins.alu_wadd, lambda *i: high[i] * step + low[i] * one
            )
        data = self._input(f"term{number}", dims, kind)
        if kind == WIDE:
            return self.step(f"wide{number}", ins.load_acc, lambda *i: data[i])
        return self.step(
            f"wide{number}", ins.load_acc8, lambda *i: data[i].astype("int32") - te.const(zero)
        )

    def offset(self, total: Tensor) -> Tensor:
        """A sum and a constant of each channel."""
        rows, _, vectors, lanes = self.dims
        size = rows, vectors, lanes
        data = te.placeholder(size, "int32", f"{self.name}offset")
        self.inputs.append(data)
        held = self.step("held", self.ins.load_acc, lambda *i: data[i], size)
        return self.step(
            "moved", self.ins.alu_add, lambda y, p, s, l: total[y, p, s, l] + held[y, s, l]
        )

    def _input(self, name: str, dims: tuple[int, ...], dtype: str) -> Tensor:
        ends = (-MOST, MOST) if dtype == WIDE else None
        tensor = te.placeholder(dims, dtype, f"{self.name}{name}", value_range=ends)
        self.inputs.append(tensor)
        return tensor

    def move(self, stored: Tensor) -> Move:
        """The move that it is."""
        first, *others = self.inputs
        return Move(first, self.steps[::-1], stored, others=others)


def _is_within(node: QByteSum, kinds: Sequence[str], graph: Graph) -> bool:
    """Whether no terms give a sum beyond a node's limits."""
    total = node.half
    for weight, zero, kind in zip(node.weights, node.zeros, kinds, strict=True):
        size = max(128 + zero, 127 - zero) if kind == NARROW else MOST + 1
        total += abs(weight) * size
    if node.offset is not None:
        total += int(np.abs(graph.constants[node.offset].astype(np.int64)).max())
    return total >> node.shift <= min(-node.low, node.high)


def _byte(data: Tensor, number: int) -> Callable[..., Expr]:
    """One byte of bytes at an index of the whole."""
    return lambda *i: data[(te.const(number), *i)].astype("int32")


def _low(way: _Way, whole: Tensor) -> Tensor:
    """The low byte, signed."""
    up = way.step("up", way.ins.alu_shl_imm, lambda *i: whole[i] << te.const(TOP))
    return way.step("low", way.ins.alu_shr_imm, lambda *i: up[i] >> te.const(TOP))


def _high(way: _Way, whole: Tensor) -> Tensor:
    """The high byte, so that 256 of it and the low one are the whole."""
    half = te.const(1 << (BYTE_BITS - 1))
    more = way.step("half", way.ins.alu_add_imm, lambda *i: whole[i] + half)
    return way.step("high", way.ins.alu_shr_imm, lambda *i: more[i] >> te.const(BYTE_BITS))


def _stored(last: Tensor, scales: Tensor, name: str) -> Tensor:
    """A byte as it is stored."""
    return te.compute(last.shape, lambda *i: plain(last[i], scales[0, i[-1]]), f"{name}stored")
