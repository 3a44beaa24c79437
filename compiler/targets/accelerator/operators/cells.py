"""Cells and states, behind the gates of a recurrent step: by the ALU and tables.

The functions are the graph's (``graph/ops/fixed_point.py``): each operation becomes a stage in ACC
with an instruction. Two tables have a sigmoid's points and the ways between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ir import BY_OP, Graph
from vdla.compiler.graph.ops.fixed_point import (
    HIGH,
    LOW,
    SLOPES,
    SLOPES_RANGE,
    VALUES,
    VALUES_RANGE,
    Arithmetic,
    by_low_bits,
)
from vdla.compiler.graph.ops.recurrent import (
    Cellwise,
    QGruReset,
    QGruState,
    QLstmCell,
    QLstmState,
    QNarrow,
)
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.cost import (
    TileCost,
    group_cycles,
    parts,
    shares,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.pairwise import VectorTile
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Binding,
    elements,
    one_scale,
)
from vdla.compiler.targets.accelerator.options.tables import TAB, no_two_tables
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.options.tables import TABLE_RESULTS
from vdla.support.numbers import ceil_div

TABLES = {"values": (VALUES, VALUES_RANGE), "slopes": (SLOPES, SLOPES_RANGE)}


class Stages(Arithmetic[Tensor]):
    """Operations on vectors of ACC, each a stage with the instructions that may do it."""

    def __init__(self, ins: Intrinsics) -> None:
        self.ins = ins
        self.intrins: dict[Tensor, Sequence[TensorIntrin]] = {}
        self.tables = {
            name: te.placeholder((TABLE_RESULTS,), "int16", name, value_range=bounds)
            for name, (_, bounds) in TABLES.items()
        }

    def stage(self, like: Tensor, value: Callable[..., Expr], *intrins: TensorIntrin) -> Tensor:
        """A stage of the shape of another one."""
        tensor = te.compute(like.shape[-3:], value, f"step{len(self.intrins)}")
        self.intrins[tensor] = intrins
        return tensor

    def loaded(self, operand: Tensor, gate: int) -> Tensor:
        """A gate of all vectors, brought to ACC."""
        shape = operand.shape[0], *operand.shape[2:]
        tensor = te.compute(shape, lambda n, v, l: operand[n, gate, v, l], f"{operand.name}{gate}")
        self.intrins[tensor] = (self.ins.load_acc,)
        return tensor

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``x + y`` in every lane."""
        return self.stage(x, lambda *i: x[i] + y[i], self.ins.alu_add)

    def subtract(self, x: Tensor, y: Tensor) -> Tensor:
        """``x - y`` in every lane."""
        return self.stage(x, lambda *i: x[i] - y[i], self.ins.alu_wsub, self.ins.alu_sub)

    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        """``x * y`` in every lane."""
        return self.stage(x, lambda *i: x[i] * y[i], self.ins.alu_mul)

    def increase(self, x: Tensor, number: int) -> Tensor:
        """``x + number`` in every lane."""
        return self.stage(x, lambda *i: x[i] + te.const(number), self.ins.alu_add_imm)

    def left(self, x: Tensor, bits: int) -> Tensor:
        """``x << bits`` in every lane."""
        return self.stage(x, lambda *i: x[i] << te.const(bits), self.ins.alu_shl_imm)

    def right(self, x: Tensor, bits: int) -> Tensor:
        """``x >> bits`` in every lane."""
        return self.stage(x, lambda *i: x[i] >> te.const(bits), self.ins.alu_shr_imm)

    def limited(self, x: Tensor) -> Tensor:
        """``clip(x, LOW, HIGH)`` in every lane, by two stages."""
        high = self.stage(x, lambda *i: te.minimum(x[i], te.const(HIGH)), self.ins.alu_min_imm)
        return self.stage(x, lambda *i: te.maximum(high[i], te.const(LOW)), self.ins.alu_max_imm)

    def value(self, point: Tensor) -> Tensor:
        """``VALUES`` at the point of every lane."""
        return self._looked_up("values", point)

    def slope(self, point: Tensor) -> Tensor:
        """``SLOPES`` at the point of every lane."""
        return self._looked_up("slopes", point)

    def _looked_up(self, table: str, point: Tensor) -> Tensor:
        results = self.tables[table]

        def value(*i: Expr) -> Expr:
            return results[point[i] & (TABLE_RESULTS - 1)].astype("int32")

        return self.stage(point, value, self.ins.alu_table)


@dataclass(frozen=True)
class CellTensors:
    """The tensors of an expression: operands, tables and a scale in DRAM, stages in ACC."""

    operands: list[Tensor]
    tables: list[Tensor]
    stages: list[tuple[Tensor, Sequence[TensorIntrin]]]
    out: Tensor
    scale: Tensor | None = None

    @property
    def inputs(self) -> list[Tensor]:
        """Tensors that the function reads, in calling order."""
        return [*self.operands, *self.tables, *([] if self.scale is None else [self.scale])]


@dataclass(frozen=True)
class Cells(Held[Cellwise, VectorTile]):
    """An operator ``kind`` of the graph on ``rows`` of ``vectors``; ``counts`` are the gates of its
    operands."""

    NAME = "cells"
    TILE = VectorTile
    NOUN = "step of cells"
    NODES = (QLstmCell, QLstmState, QGruReset, QGruState, QNarrow)

    kind: str
    rows: int
    vectors: int
    counts: tuple[int, ...]
    zero: int

    @classmethod
    def refusal(
        cls, node: Cellwise, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """A config may have no tables."""
        return no_two_tables(config)

    @classmethod
    def placed(cls, node: Cellwise) -> str:
        """Text of the placement report."""
        return "recurrent step on int32"

    @classmethod
    def of(cls, node: Cellwise, graph: Graph, config: Config) -> Cells:
        """The template of a node; its scale is a constant."""
        rows, hidden = graph.tensors[node.output].shape
        vectors = vectors_of_row(hidden, config)
        zero = node.requant.zero if node.requant else 0
        return cls(type(node).__name__, rows, vectors, node.counts, zero)

    def bind(self, node: Cellwise, graph: Graph, config: Config) -> Binding:
        """The tables that are read, in the order of the points' low 8 bits, and one scale."""
        e = self.expression(config)
        constants = {t.name: by_low_bits(TABLES[t.name][0]) for t in e.tables}
        if node.requant is not None:
            constants["scale"] = one_scale(node.requant.scale[0], config)
        tensors = {t.name: name for t, name in zip(e.operands, node.inputs, strict=True)}
        moved = 4 * sum(elements(graph, name) for name in (*node.inputs, node.output))
        return Binding({**tensors, "out": node.output}, constants, 0, moved)

    def expression(self, config: Config) -> CellTensors:
        """A stage for each operation that the result needs."""
        of, lanes = Stages(intrinsics(config)), config.block_out
        operands = [
            te.placeholder(
                (self.rows, count, self.vectors, lanes), "int32", f"in{n}", value_range=(LOW, HIGH)
            )
            for n, count in enumerate(self.counts)
        ]
        kind = BY_OP[self.kind]
        assert issubclass(kind, Cellwise)
        gates = [[of.loaded(x, g) for g in range(x.shape[1])] for x in operands]
        last, scale = kind.function(of, gates), None
        if "int8" in kind.WRITES:
            scale = te.placeholder((1, lanes), "int32", "scale")
            out = _narrowed(last, scale, self.zero)
        else:
            out = te.compute(last.shape, lambda *i: last[i], "out")
        needed = set(te.producers((out,)))
        stages = [(t, intrins) for t, intrins in of.intrins.items() if t in needed]
        tables = [t for t in of.tables.values() if t in needed]
        return CellTensors(operands, tables, stages[::-1], out, scale)

    def sizes(
        self, config: Config, vthreads: int, only: VectorTile | None = None
    ) -> Iterator[VectorTile]:
        """Runs of vectors, for one thread."""
        for vectors in parts(self.vectors) if vthreads == 1 else ():
            yield VectorTile(vectors)

    def cost(self, tile: VectorTile, config: Config) -> TileCost:
        """Loads of all operands, an operation of the ALU for each stage, and a store per tile."""
        size = tile.vectors * config.block_out * 4 / config.bytes_per_cycle
        tiles = self.rows * ceil_div(self.vectors, tile.vectors)
        ins, stages = intrinsics(config), self.expression(config).stages
        early = ins.alu_wsub, ins.alu_mul, ins.alu_shl_imm, ins.alu_shr_imm
        multiplied = sum(intrins[0] in early for _, intrins in stages)
        alu = tile.vectors * len(stages) + group_cycles(tile.vectors * multiplied, config)
        share = shares(tiles, tiles, tile.vthreads)
        loads = sum(self.counts) * size
        return TileCost(*share, inp=loads, alu=alu, store=size)

    def schedule(self, tile: VectorTile, config: Config) -> Schedule:
        """Tiles the vectors and tensorizes every stage."""
        ins, e = intrinsics(config), self.expression(config)
        s = create_schedule(e.out, e.inputs, self.NAME)
        for table in e.tables:
            users = [t for t, _ in e.stages if table in t.compute_op.inputs]
            held = s.cache_read(table, TAB, users)
            s[held].tensorize(s[held].axis[-1], ins.load_tab)
        if e.scale is not None:
            held = s.cache_read(e.scale, ACC, [e.out])
            s[held].tensorize(s[held].axis[-1], ins.load_acc)
        _, vectors, lanes = s[e.out].axis
        outer, _ = s[e.out].split(vectors, factor=tile.vectors)
        for stage, _ in e.stages:
            s[stage].set_scope(ACC)
        for stage, intrins in e.stages:
            s[stage].compute_at(s[e.out], outer)
            s[stage].tensorize(s[stage].axis[-1], intrins)
        s[e.out].tensorize(lanes, ins.store32 if e.scale is None else ins.store8)
        return s


def vectors_of_row(hidden: int, config: Config) -> int:
    """Vectors of ACC that a row of so many channels has, in blocks."""
    return ceil_div(hidden, config.channel_block) * config.channel_block // config.block_out


def _narrowed(last: Tensor, scale: Tensor, zero: int) -> Tensor:
    """The int8 result."""
    return te.compute(
        last.shape,
        lambda *i: te.requantize(last[i], scale[0, i[-1]], zero, -128, 127).astype("int8"),
        "out",
    )
