"""GEMM: a matrix–vector product of int8 per cycle, two multiply-adds per DSP48E1, or none.

    operands → products → quads → sums → sums → sums
       1          2         3       4      5      6     cycles after inp and wgt

1. Two outputs share an input lane: ``(w1 × 2**16 - w0) × x`` is a 25 × 8 product, and the DSP has
   the subtraction.
2. The products of four lanes are added on the way through their DSPs, in a cycle: about 7 ns on the
   slowest parts. The minus makes the low half's sum lie between -2**16 and 2**16 - 1. These are 17
   bits, and there is room for 16.
3. The 17th, its sign, is what the low half borrows from the high one. There the lowest bit is the
   parity of the products without a borrow, and is not with one.
4. An output is low for four lanes and high for the next four. So the first adder subtracts, without
   the one that a subtraction carries in, but with what was borrowed: a sum is one too small.
5. In the tree the carry mends one of the two operands, so a sum is again one too small, and
   whoever takes ``sums`` adds ``carry``, a constant of each output.
6. Where multipliers have fewer than 25 bits each output has its own, and nothing is too small.
7. The last outputs may be an option's (``GemmHooks.rows``): those have no DSPs here, and nothing is
   too small there.
8. Two outputs that share multipliers see the same lanes: those of the vector, or others that an
   option shows them (``GemmHooks.seen``).
9. Sums wrap at 32 bits nowhere: ``block_in`` products of 16 bits need at most 24.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.hooks import PortHooks, hooks_of, ports_of
from vdla.hw.layout import lanes
from vdla.hw.requantize import add, delayed
from vdla.isa.config import Config

HALF = 16  # bits of an int8 product
PACKED_BITS = 25  # the wider input of a multiplier that makes two products
QUAD = 4  # lanes whose products are added before their first register
TREE_STAGES = 3  # registers in the adder tree

TermsOf = Callable[[Module, int, int], tuple[Value, ...]]  # of a row and a column, and those behind


class Quad(NamedTuple):
    """Four lanes' sums: ``high`` + ``borrow`` of one output, ``low`` of another, negative."""

    high: Value
    low: Value
    borrow: Value


class Seen(Protocol):
    """Lanes that outputs see: those of an even output and of the next one are the same."""

    def sees(self, output: int, lane: int) -> Value:
        """Value that an output sees in an input lane."""

    def register(self, output: int, lane: int) -> Signal:
        """Register of what ``sees`` gave a cycle before."""


class GemmHooks(PortHooks):
    """Seams of GEMM: an option shows outputs other lanes, or multiplies for the last outputs."""

    rows = 0  # outputs whose sums the option's ``terms`` make
    columns = 1  # input lanes that it takes at a time

    def seen(self, m: Module, gemm: Gemm) -> Seen | None:
        """Lanes that outputs see instead of those of ``gemm.inp``, if an option shows others."""
        return None

    def terms_of(self, gemm: Gemm) -> TermsOf:
        """Sums that ``columns`` lanes add to one of the option's outputs."""
        raise NotImplementedError


class Gemm(Component):
    """``sums`` + ``carry``, lane by lane, is the product of the tile and the vector that came six
    cycles before; ``sums`` are zero after a cycle of ``clear``.

    A platform can have ``multiplier_bits``, the width of its multipliers; it is ``PACKED_BITS``
    where there is none.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.hooks = hooks_of(GemmHooks, config)
        super().__init__(
            {
                "inp": In(lanes(8, config.block_in)),
                "wgt": In(lanes(8, config.block_in * config.block_out)),
                "clear": In(1),
                "sums": Out(lanes(32, config.block_out)),
                "carry": Out(config.block_out),
                **ports_of(self.hooks),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Products of one vector with every row of weights, then a tree of sums per row.

        A device whose multipliers are wide enough makes two rows' products with one multiplier.
        """
        m = Module()
        config = self.config
        packed = getattr(platform, "multiplier_bits", PACKED_BITS) >= PACKED_BITS
        self.seen = next(filter(None, (hook.seen(m, self) for hook in self.hooks)), None)
        self.vector = Signal(self.inp.shape(), reset_less=True)
        m.d.sync += self.vector.eq(self.inp)
        self.with_dsps = first = config.block_out - sum(hook.rows for hook in self.hooks)
        add_up, rows, columns = (self._pair, 2, 2 * QUAD) if packed else (self._single, 1, QUAD)
        m.d.comb += self.carry.eq(((1 << self.with_dsps) - 1) * packed)
        for row in range(0, self.with_dsps, rows):
            self._add_up(m, add_up, row, columns)
        for hook in self.hooks:
            if hook.rows:
                terms_of = hook.terms_of(self)
                for row in range(first, first + hook.rows):
                    self._add_up(m, terms_of, row, hook.columns)
                first += hook.rows
        return m

    def _add_up(self, m: Module, terms_of: TermsOf, first: int, columns: int) -> None:
        """The sums of the rows that ``terms_of`` makes, so many columns at a time."""
        parts = [terms_of(m, first, column) for column in range(0, self.config.block_in, columns)]
        for row, terms in enumerate(zip(*parts, strict=True), first):
            m.d.comb += self.sums[row].eq(self._sum(m, terms, row))

    def _pair(self, m: Module, row: int, column: int) -> tuple[Value, ...]:
        """Sums that eight lanes add to a row, and to the next if any: each is one too small."""
        here = self._quad(m, row, row + 1, column)
        there = self._quad(m, row + 1, row, column + QUAD)
        terms = _difference(here, there), _difference(there, here)
        return terms[: self.with_dsps - row]

    def _single(self, m: Module, row: int, column: int) -> tuple[Value, ...]:
        """Sums that four lanes add to a row that has its own multipliers."""
        products: Sequence[Value] = [
            self._product(m, self._weight(row, c), (row, c)) for c in self._lanes(column)
        ]
        while len(products) > 1:
            products = self._level(products)
        quad = Signal(signed(HALF + 2), name=f"quad_{row}_{column}", reset_less=True)
        m.d.sync += quad.eq(products[0])
        return (quad,)

    def _quad(self, m: Module, high: int, low: int, column: int) -> Quad:
        """Four lanes, a multiplier each, for two rows."""
        name = f"{high}_{column}"
        quad = Signal(signed(2 * HALF + 2), name=f"quad_{name}", reset_less=True)
        total: Value | int = 0
        odd = []
        for c in self._lanes(column):
            weight = self._weight(high, c)
            packed = (weight << HALF) - self._weight(low, c)
            total += self._product(m, packed[:PACKED_BITS].as_signed(), (high, c))
            lane = self.seen.sees(high, c) if self.seen else self.inp[c]
            odd.append(weight[0] & lane[0])
        m.d.sync += quad.eq(total)
        parity = delayed(m, Cat(odd).xor(), 3, f"parity_{name}")  # as long as the quad takes
        borrow = Signal(name=f"borrow_{name}")
        m.d.comb += borrow.eq(quad[HALF] ^ parity)
        return Quad(quad[HALF:].as_signed(), Cat(quad[:HALF], borrow).as_signed(), borrow)

    def _lanes(self, column: int) -> range:
        """Four lanes from ``column`` on, or as many as there are."""
        return range(column, min(column + QUAD, self.config.block_in))

    def _weight(self, row: int, column: int) -> Value:
        """The last row is its own neighbour if their number is odd."""
        row = min(row, self.with_dsps - 1)
        return self.wgt[row * self.config.block_in + column]

    def _product(self, m: Module, weight: Value, place: tuple[int, int]) -> Signal:
        """The product of a weight and the lane that its row sees; ``place``: row and column."""
        name = "_".join(map(str, place))
        lane, _ = self.lane(*place)
        weights = Signal(weight.shape(), name=f"weights_{name}", reset_less=True)
        product = Signal(signed(len(weights) + 8), name=f"product_{name}", reset_less=True)
        m.d.sync += [weights.eq(weight), product.eq(weights * lane)]
        return product

    def lane(self, row: int, column: int) -> tuple[Value, str]:
        """The register of the lane that a row sees, and a name for it."""
        if self.seen:
            register = self.seen.register(row, column)
            return register, register.name
        return self.vector[column], f"vector_{column}"

    def _sum(self, m: Module, terms: Sequence[Value], row: int) -> Value:
        """An adder tree with a register after each third of its levels."""
        levels = (len(terms) - 1).bit_length()
        for stage in range(TREE_STAGES):
            for _ in range((levels + stage) // TREE_STAGES):
                terms = self._level(terms, self.carry[row])
            registers = [
                Signal(t.shape(), name=f"sum_{row}_{stage}_{i}", reset_less=True)
                for i, t in enumerate(terms)
            ]
            if stage == TREE_STAGES - 1:
                terms = [Mux(self.clear, 0, terms[0])]
            m.d.sync += [r.eq(t) for r, t in zip(registers, terms, strict=True)]
            terms = registers
        return terms[0]

    def _level(self, terms: Sequence[Value], carry: Value | int = 0) -> list[Value]:
        """Neighbours added with what they lack, and the last one alone."""
        pairs = zip(terms[::2], terms[1::2], strict=False)
        alone = terms[len(terms) // 2 * 2 :]
        return [*(add(x, y, carry) for x, y in pairs), *alone]


def _difference(plus: Quad, minus: Quad) -> Value:
    """``plus.high + plus.borrow - minus.low - 1`` in one adder; eight products less one fit."""
    difference = Cat(plus.borrow, plus.high).as_signed() - Cat(1, minus.low).as_signed()
    return difference[1 : 1 + HALF + 2].as_signed()
