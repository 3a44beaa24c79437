"""Preactivations of gates: products of vectors with weights, in fixed point of int32.

for tiles of vectors:
    load data
    for tiles of result channels, virtual threads interleaved:
        load weights, biases, factors and what is added
        acc: the sums; then shifted, scaled, increased and limited in place
        out: stored as int32
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.fixed_point import HIGH, LOW
from vdla.compiler.graph.ops.recurrent import MOST_FACTOR, QGates
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.codegen.nest import MAX_UOPS
from vdla.compiler.targets.accelerator.description import ACC, INP, Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.cells import vectors_of_row
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TURN,
    group_cycles,
    parts,
    sizes,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    Tile,
    elements,
)
from vdla.compiler.targets.accelerator.options.tables import no_tables
from vdla.compiler.targets.accelerator.options.weights4 import (
    fits,
    hold_weights,
    in_dram,
    weights,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div, divisors


@dataclass(frozen=True)
class GatesTile(Tile):
    """A tile is ``rows`` vectors' ``outputs`` vectors of the result."""

    outputs: int
    rows: int
    vthreads: int = 1


@dataclass(frozen=True)
class GatesTensors:
    """The tensors of the expression; ``steps`` are what ACC holds, each with its instruction, the
    last one first. ``rows`` are those that a tile loads for its channels, ``tiles`` the weights as
    int8."""

    data: Tensor
    weight: Tensor
    tiles: Tensor
    rows: list[Tensor]
    addend: Tensor | None
    acc: Tensor
    steps: list[tuple[Tensor, TensorIntrin]]
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """Tensors that the function reads, in calling order."""
        return [self.data, self.weight, *self.rows, *([] if self.addend is None else [self.addend])]


@dataclass(frozen=True)
class Gates(Held[QGates, GatesTile]):
    """``out[n, o] = clip(((Σ_c data[n, c] · weight[o, c] + bias[o]) >> before) · factor[o] /
    2^after + addend[n, o])``; ``inputs`` and ``outputs`` count vectors. With ``weights4`` the
    weights lie in DRAM as nibbles."""

    NAME = "gates"
    TILE = GatesTile
    NOUN = "product of gates"
    NODES = (QGates,)

    rows: int
    inputs: int
    outputs: int
    before: int
    after: int
    added: bool
    weights4: bool = False

    @classmethod
    def refusal(
        cls, node: QGates, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Reason for the host: no tables, which the next node needs, or weights of a sum that WGT
        doesn't hold all at once.
        """
        if lack := no_tables(config):
            return lack
        gates = cls.of(node, graph, config)
        if gates.inputs > min(MAX_UOPS, config.uop_depth) or not gates.has_room(config):
            return f"{gates.inputs * config.block_in} features, whose weights WGT doesn't hold"
        return None

    @classmethod
    def placed(cls, node: QGates) -> str:
        """Text of the placement report."""
        return "gates of int8 products on int32"

    @classmethod
    def of(cls, node: QGates, graph: Graph, config: Config) -> Gates:
        """The template of a node; its weights, biases and factors are constants."""
        rows, features = graph.tensors[node.data].shape
        gates, hidden, _ = graph.tensors[node.weight].shape
        inputs = ceil_div(features, config.channel_block) * config.channel_block // config.block_in
        outputs = gates * vectors_of_row(hidden, config)
        weights4 = fits([graph.constants[node.weight]], config)
        added = node.addend is not None
        return cls(rows, inputs, outputs, node.before, node.after, added, weights4)

    def bind(self, node: QGates, graph: Graph, config: Config) -> Binding:
        """Weights in tiles; rows of biases and factors."""
        weight = graph.constants[node.weight]
        tiles = _Weights(weight).tiles(self.inputs, config, weights4=self.weights4)
        constants = {"weight": tiles}
        for name, key in (("bias", node.bias), ("factor", node.factor)):
            constants[name] = _padded(graph.constants[key], config).reshape(-1, config.block_out)
        tensors = {"data": node.data, "out": node.output}
        if node.addend is not None:
            tensors["addend"] = node.addend
        wide = sum(elements(graph, t) for key, t in tensors.items() if key != "data")
        moved = elements(graph, node.data) + 4 * wide + weight.size // (1 + self.weights4)
        return Binding(tensors, constants, self.rows * weight.size, moved)

    @property
    def wanted(self) -> str:
        """With how much is summed."""
        return f"a {self.NOUN} of {self.inputs} vectors"

    def schedule(self, tile: GatesTile, config: Config) -> Schedule:
        """Tiled, every stage tensorized."""
        return schedule(expression(self, config), tile, config)

    def sizes(
        self, config: Config, vthreads: int, only: GatesTile | None = None
    ) -> Iterator[GatesTile]:
        """Portions of the result's channels and of the vectors."""
        blocks = sizes(divisors(self.outputs), only, "outputs")
        for outputs, rows in product(blocks, sizes(parts(self.rows), only, "rows")):
            if self.outputs // outputs >= vthreads:
                yield GatesTile(outputs, rows, vthreads)

    def ranking(self, tiles: Sequence[GatesTile], config: Config) -> Sequence[int]:
        """By :meth:`cycles`."""
        return sorted(range(len(tiles)), key=lambda place: self.cycles(tiles[place], config))

    def cycles(self, tile: GatesTile, config: Config) -> float:
        """The busiest engine's cycles, or the bus's, and what a tile waits for at its start."""
        turns = ceil_div(self.rows, tile.rows)
        tiles, vectors = turns * (self.outputs // tile.outputs), self.rows * self.outputs
        steps = 7 if self.added else 6
        multiplied = 3 if self.before else 2
        compute = vectors * (self.inputs + steps) + float(
            group_cycles(multiplied * vectors, config)
        )
        compute += tiles * steps * STARTUP
        wide = vectors * (2 if self.added else 1) + 2 * turns * self.outputs
        entry = config.entry("wgt4" if self.weights4 else "wgt")
        moved = turns * self.outputs * self.inputs * entry
        bus = (moved + wide * config.block_out * 4) / config.bytes_per_cycle
        latency = config.memory.first_beat + TURN
        if tile.vthreads == 1:
            return compute + bus + tiles * latency
        return max(compute, bus) + latency + tiles * STARTUP


# Constants ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights [G, H, I] of one array: its tiles are made once for all steps that share it."""

    array: Array

    def __hash__(self) -> int:
        return id(self.array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Weights) and other.array is self.array

    def tiles(self, inputs: int, config: Config, *, weights4: bool) -> Array:
        """[outputs, inputs, block_out, block_in], padded with zeros; as nibbles half the last."""
        return _tiles(self, inputs, config, weights4)


@lru_cache(maxsize=16)
def _tiles(weights: _Weights, inputs: int, config: Config, weights4: bool) -> Array:
    gates, hidden, features = weights.array.shape
    vectors, (lanes, block) = vectors_of_row(hidden, config), (config.block_out, config.block_in)
    full = np.zeros((gates, vectors * lanes, inputs * block), np.int8)
    full[:, :hidden, :features] = weights.array
    split = full.reshape(gates * vectors, lanes, inputs, block)
    return in_dram(np.ascontiguousarray(split.transpose(0, 2, 1, 3)), weights4=weights4)


def _padded(values: Array, config: Config) -> Array:
    """[G, H] with zeros up to whole vectors."""
    gates, hidden = values.shape
    full = np.zeros((gates, vectors_of_row(hidden, config) * config.block_out), np.int32)
    full[:, :hidden] = values
    return full


# The expression and its schedule ----------------------------------------------------------------


def expression(shape: Gates, config: Config) -> GatesTensors:
    """The expression of a product of gates."""
    ins, lanes, block = intrinsics(config), config.block_out, config.block_in
    data = te.placeholder((shape.rows, shape.inputs, block), "int8", "data")
    size = shape.outputs, shape.inputs, lanes, block
    weight, tiles = weights(size, "weight", weights4=shape.weights4)
    per_output = shape.outputs, lanes
    bias = te.placeholder(per_output, "int32", "bias")
    factor = te.placeholder(per_output, "int32", "factor", value_range=(0, MOST_FACTOR))
    results = shape.rows, *per_output
    addend = te.placeholder(results, "int32", "addend") if shape.added else None
    c, i = te.reduce_axis((0, shape.inputs), "c"), te.reduce_axis((0, block), "i")

    def sums(n: Expr, o: Expr, l: Expr) -> Expr:
        product = data[n, c, i].astype("int32") * tiles[o, c, l, i].astype("int32")
        return te.sum(product, axis=[c, i], init=bias[o, l])

    acc = last = te.compute(results, sums, "acc")
    steps = [(acc, ins.gemm)]

    def step(tensor: Tensor, intrin: TensorIntrin) -> Tensor:
        steps.append((tensor, intrin))
        return tensor

    if shape.before:
        shifted = te.compute(results, lambda *at: acc[at] >> te.const(shape.before), "shifted")
        last = step(shifted, ins.alu_shr_imm)
    last = step(_scaled(last, factor), ins.alu_mul)
    last = step(_plus(last, 1 << (shape.after - 1)), ins.alu_add_imm)
    last = step(_right(last, shape.after), ins.alu_shr_imm)
    if addend is not None:
        last = step(_sum(last, addend), ins.alu_add)
    last = step(_at_most(last), ins.alu_min_imm)
    last = step(_at_least(last), ins.alu_max_imm)
    out = te.compute(results, lambda *at: last[at], "out")
    return GatesTensors(data, weight, tiles, [bias, factor], addend, acc, steps[::-1], out)


def _scaled(x: Tensor, factor: Tensor) -> Tensor:
    return te.compute(x.shape, lambda n, o, l: x[n, o, l] * factor[o, l], "scaled")


def _plus(x: Tensor, number: int) -> Tensor:
    return te.compute(x.shape, lambda *at: x[at] + te.const(number), "increased")


def _right(x: Tensor, bits: int) -> Tensor:
    return te.compute(x.shape, lambda *at: x[at] >> te.const(bits), "rounded")


def _sum(x: Tensor, y: Tensor) -> Tensor:
    return te.compute(x.shape, lambda *at: x[at] + y[at], "total")


def _at_most(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda *at: te.minimum(x[at], te.const(HIGH)), "low_enough")


def _at_least(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda *at: te.maximum(x[at], te.const(LOW)), "high_enough")


def schedule(e: GatesTensors, tile: GatesTile, config: Config) -> Schedule:
    """Tiles the result, places loads, tensorizes every stage."""
    ins = intrinsics(config)
    s = create_schedule(e.out, e.inputs, "gates")
    for stage, _ in e.steps:
        s[stage].set_scope(ACC)
    data = s.cache_read(e.data, INP, [e.acc])
    weight, load_wgt = hold_weights(s, e.tiles, e.acc)
    n, o, lanes = s[e.out].axis
    no, ni = s[e.out].split(n, factor=tile.rows)
    oo, oi = s[e.out].split(o, factor=tile.outputs)
    s[e.out].reorder(no, oo, oi, ni, lanes)
    if tile.vthreads > 1:
        s[e.out].bind(oo, te.thread_axis("vthread", threads=tile.vthreads))
    rows = (*e.rows, *([] if e.addend is None else [e.addend]))
    users = [[stage for stage, _ in e.steps if row in stage.compute_op.inputs] for row in rows]
    loads = [s.cache_read(row, ACC, readers) for row, readers in zip(rows, users, strict=True)]
    for stage, intrin in e.steps:
        s[stage].compute_at(s[e.out], oo)
        if stage is not e.acc:
            s[stage].tensorize(s[stage].axis[-1], intrin)
    _place_sums(s, e, ins)
    for held in loads:
        s[held].compute_at(s[e.out], oo)
        s[held].tensorize(s[held].axis[-1], ins.load_acc)
    s[weight].compute_at(s[e.out], oo)
    s[data].compute_at(s[e.out], no)
    if tile.vthreads > 1:
        s[weight].double_buffer(2)
        s[data].double_buffer(2)
    s[weight].tensorize(s[weight].axis[-2], ins[load_wgt])
    s[data].tensorize(s[data].axis[-1], ins.load_inp)
    s[e.out].tensorize(lanes, ins.store32)
    return s


def _place_sums(s: Schedule, e: GatesTensors, ins: Intrinsics) -> None:
    """Makes a micro-op of each product of a vector with a tile of weights."""
    around, (c, i) = s[e.acc].axis, s[e.acc].reduce_axis
    s[e.acc].reorder(*around[:-1], c, around[-1], i)
    s[e.acc].tensorize(around[-1], ins.gemm)
