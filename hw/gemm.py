"""GEMM: a matrix–vector product of int8 per cycle, two multiply-adds per DSP48E1.

    operands → products → pairs → sums → sums
       1          2         3       4      5       cycles after the data of the scratchpads

1. Two neighbouring outputs share an input lane: ``(w1 × 2**16 + w0) × x`` is a 25 × 8 product.
2. The products of two lanes are added in their DSPs: to ``LIFT`` the first, to what that gives the
   second. The low half, two products and 2**15 - 1, is so never negative and never beyond 16 bits:
   it borrows nothing from the high one.
3. That leaves both halves one too small, once the low one's top bit is flipped. ``x - ~y`` is one
   more than x + y, and costs the same: so each sum in the tree is one too small again, and whoever
   takes ``sums`` adds ``carry``.
4. Where multipliers have fewer than 25 bits each output has its own, and nothing is too small.
5. Sums wrap at 32 bits nowhere: ``block_in`` products of 16 bits need at most 24.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.layout import lanes
from vdla.isa.config import Config

HALF = 16  # bits of an int8 product
PACKED_BITS = 25  # the wider input of a multiplier that makes two products
LIFT = (1 << HALF - 1) - 1 - (1 << HALF)
TREE_STAGES = 2  # registers in the adder tree


class Gemm(Component):
    """``sums`` + ``carry`` is the product of the tile and the vector that came five cycles before.

    A platform can have ``multiplier_bits``, the width of its multipliers; it is ``PACKED_BITS``
    where there is none.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "inp": In(lanes(8, config.block_in)),
                "wgt": In(lanes(8, config.block_in * config.block_out)),
                "sums": Out(lanes(32, config.block_out)),
                "carry": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.packed = getattr(platform, "multiplier_bits", PACKED_BITS) >= PACKED_BITS
        vector = Signal(self.inp.shape())
        m.d.sync += vector.eq(self.inp)
        m.d.comb += self.carry.eq(self.packed)
        step = 2 if self.packed else 1
        for first in range(0, self.config.block_out, step):
            rows = range(first, min(first + step, self.config.block_out))
            for row, terms in zip(rows, self._terms(m, vector, rows), strict=True):
                m.d.comb += self.sums[row].eq(self._sum(m, terms, f"sum_{row}"))
        return m

    def _terms(
        self, m: Module, vector: data.View, rows: Sequence[int]
    ) -> tuple[Sequence[Value], ...]:
        """For each of one or two rows, what pairs of input lanes add to it."""
        pairs = []
        for first in range(0, self.config.block_in, 2):
            total: Value = Const(LIFT if self.packed else 0)
            for i in range(first, min(first + 2, self.config.block_in)):
                total = total + self._product(m, vector, rows, i)
            pair = Signal(signed(2 * HALF), name=f"pair_{rows[0]}_{first}")
            m.d.sync += pair.eq(total)
            pairs.append(pair)
        if not self.packed:
            return ([pair[: HALF + 1].as_signed() for pair in pairs],)
        lows = [Cat(pair[: HALF - 1], ~pair[HALF - 1]).as_signed() for pair in pairs]
        highs = [pair[HALF:].as_signed() for pair in pairs]
        return (lows, highs)[: len(rows)]

    def _product(self, m: Module, vector: data.View, rows: Sequence[int], column: int) -> Signal:
        name = f"{rows[0]}_{column}"
        packed: Value = Const(0)
        for place, row in enumerate(rows):
            weight: Value = self.wgt[row * self.config.block_in + column]
            packed = (weight << HALF * place) + packed
        bits = PACKED_BITS if len(rows) > 1 else 8
        weights = Signal(signed(bits), name=f"weights_{name}")
        product = Signal(signed(bits + 8), name=f"product_{name}")
        m.d.sync += [weights.eq(packed), product.eq(weights * vector[column])]
        return product

    def _sum(self, m: Module, terms: Sequence[Value], name: str) -> Value:
        """An adder tree with a register after each half of its levels."""
        levels = (len(terms) - 1).bit_length()
        for stage in range(TREE_STAGES):
            for _ in range(-(-levels // TREE_STAGES)):
                terms = self._level(terms)
            registers = [Signal(t.shape(), name=f"{name}_{stage}_{i}") for i, t in enumerate(terms)]
            m.d.sync += [r.eq(t) for r, t in zip(registers, terms, strict=True)]
            terms = registers
        return terms[0]

    def _level(self, terms: Sequence[Value]) -> list[Value]:
        """Neighbours added, and the last one alone."""
        add = (lambda x, y: x - ~y) if self.packed else (lambda x, y: x + y)
        return [
            add(*terms[i : i + 2]) if i + 1 < len(terms) else terms[i]
            for i in range(0, len(terms), 2)
        ]
