"""GEMM: a matrix–vector product of int8 per cycle, two multiply-adds per DSP48E1.

    operands → products → sums → sums → sums
       1          2        3      4      5       cycles after the data of the scratchpads

1. Two neighbouring outputs share an input lane: ``(w1 × 2**16 + w0) × x`` is a 25 × 8 product. Its
   low half is ``w0 × x``; its high half is ``w1 × x``, less one when the low half is negative.
2. These ones are counted, and added at the end of the tree: a few LUTs instead of an adder each.
3. Sums wrap at 32 bits nowhere: ``block_in`` products of 16 bits need at most 24.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Module, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.layout import lanes
from vdla.isa.config import Config

HALF = 16  # bits of an int8 product
TREE_STAGES = 3  # registers in the adder tree


class Gemm(Component):
    """``sums`` is the product of the tile and the vector that came five cycles before."""

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "inp": In(lanes(8, config.block_in)),
                "wgt": In(lanes(8, config.block_in * config.block_out)),
                "sums": Out(lanes(32, config.block_out)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vector = Signal(self.inp.shape())
        m.d.sync += vector.eq(self.inp)
        rows = range(self.config.block_out)
        for low in rows[::2]:
            high = low + 1 if low + 1 in rows else None
            self._pair(m, vector, low, high)
        return m

    def _pair(self, m: Module, vector: data.View, low: int, high: int | None) -> None:
        """Two output lanes, or the last one alone."""
        products = []
        for i in range(self.config.block_in):
            weights = Signal(signed(25), name=f"weights_{low}_{i}")
            product = Signal(signed(33), name=f"product_{low}_{i}")
            packed = self._weight(low, i)
            if high is not None:
                packed = (self._weight(high, i) << HALF) + packed
            m.d.sync += [weights.eq(packed), product.eq(weights * vector[i])]
            products.append(product)
        lows = [p[:HALF].as_signed() for p in products]
        m.d.comb += self.sums[low].eq(self._sum(m, lows, f"sum_{low}"))
        if high is not None:
            highs = [p[HALF:].as_signed() for p in products]
            borrows = [p[HALF - 1] for p in products]
            upper = self._sum(m, highs, f"sum_{high}", borrows)
            m.d.comb += self.sums[high].eq(upper)

    def _weight(self, row: int, column: int) -> Value:
        value: Value = self.wgt[row * self.config.block_in + column]
        return value

    def _sum(
        self, m: Module, terms: Sequence[Value], name: str, borrows: Sequence[Value] = ()
    ) -> Value:
        """An adder tree with a register after each third of its levels."""
        levels = max((len(terms) - 1).bit_length(), 1)
        per_stage = -(-levels // TREE_STAGES)
        count: Value = sum(borrows, start=Value.cast(0))
        for stage in range(TREE_STAGES):
            for _ in range(per_stage):
                terms = [
                    a + b if b is not None else a
                    for a, b in zip(terms[::2], [*terms[1::2], None], strict=False)
                ]
            last = stage == TREE_STAGES - 1
            terms = [self._register(m, t, f"{name}_{stage}_{i}") for i, t in enumerate(terms)]
            if borrows and not last:
                count = self._register(m, count, f"{name}_borrows_{stage}")
                if stage == TREE_STAGES - 2:
                    terms = [*terms[:-1], terms[-1] + count]
        return terms[0]

    @staticmethod
    def _register(m: Module, value: Value, name: str) -> Signal:
        register = Signal(value.shape(), name=name)
        m.d.sync += register.eq(value)
        return register
