"""GEMM: a matrix–vector product of int8 per cycle, two multiply-adds per DSP48E1.

    operands → products → lifted → sums → sums
       1          2         3       4      5       cycles after the data of the scratchpads

1. Two neighbouring outputs share an input lane: ``(w1 × 2**16 + w0) × x`` is a 25 × 8 product.
2. The adder behind the multiplier lifts it by 2**15: so the low half, ``w0 × x + 2**15``, is
   never negative and borrows nothing from the high one, ``w1 × x``. Flipping its top bit lowers it.
3. Sums wrap at 32 bits nowhere: ``block_in`` products of 16 bits need at most 24.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.layout import lanes
from vdla.isa.config import Config

HALF = 16  # bits of an int8 product
TREE_STAGES = 2  # registers in the adder tree


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
        lows, highs = [], []
        for i in range(self.config.block_in):
            weights = Signal(signed(25), name=f"weights_{low}_{i}")
            product = Signal(signed(33), name=f"product_{low}_{i}")
            lifted = Signal(signed(33), name=f"lifted_{low}_{i}")
            packed = self._weight(low, i)
            if high is not None:
                packed = (self._weight(high, i) << HALF) + packed
            m.d.sync += [
                weights.eq(packed),
                product.eq(weights * vector[i]),
                lifted.eq(product + (1 << HALF - 1)),
            ]
            lows.append(Cat(lifted[: HALF - 1], ~lifted[HALF - 1]).as_signed())
            highs.append(lifted[HALF:].as_signed())
        m.d.comb += self.sums[low].eq(self._sum(m, lows, f"sum_{low}"))
        if high is not None:
            m.d.comb += self.sums[high].eq(self._sum(m, highs, f"sum_{high}"))

    def _weight(self, row: int, column: int) -> Value:
        value: Value = self.wgt[row * self.config.block_in + column]
        return value

    def _sum(self, m: Module, terms: Sequence[Value], name: str) -> Value:
        """An adder tree with a register after each half of its levels."""
        levels = (len(terms) - 1).bit_length()
        for stage in range(TREE_STAGES):
            for _ in range(-(-levels // TREE_STAGES)):
                terms = _pairs(terms)
            terms = self._registers(m, terms, f"{name}_{stage}")
        return terms[0]

    @staticmethod
    def _registers(m: Module, values: Sequence[Value], name: str) -> list[Signal]:
        registers = [Signal(v.shape(), name=f"{name}_{i}") for i, v in enumerate(values)]
        m.d.sync += [r.eq(v) for r, v in zip(registers, values, strict=True)]
        return registers


def _pairs(terms: Sequence[Value]) -> list[Value]:
    """One level of an adder tree."""
    return [sum(terms[i + 1 : i + 2], start=terms[i]) for i in range(0, len(terms), 2)]
