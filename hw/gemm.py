"""GEMM: a matrix–vector product of int8 per cycle, two multiply-adds per multiplier, or none.

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
6. An ECP5's multiplier has 18 bits: ``w1 × 2**10 + u`` times x, where ``u = w0 + 128`` has no sign.
   Both products are 16 bits wide, so bits 10 to 15 of the result are the sum of what they have
   there. LUTs make ``w1 × x`` mod 2**6; without it these six bits are u's.
7. With ``low``, the ten bits below, ``over``, the six bits with their sign, and ``above``, all but
   ``low``: ``u × x = low + over × 2**10`` and ``w1 × x = above - over``. Each of the three is added
   up over four lanes before the two products are parted. ``128 × x`` is subtracted once for all
   lanes that an output sees. Nothing is too small here.
8. The last outputs may be an option's (``GemmHooks.rows``): those have no DSPs here, and nothing is
   too small there.
9. Two outputs that share multipliers see the same lanes: those of the vector, or others that an
   option shows them (``GemmHooks.seen``).
10. Sums wrap at 32 bits nowhere: ``block_in`` products of 16 bits need at most 24.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.hooks import PortHooks, hooks_of, ports_of
from vdla.hw.layout import lanes
from vdla.hw.requantize import PACKED_BITS, add, delayed, multiplier_bits
from vdla.isa.config import Config

HALF = 16  # bits of an int8 product
APART = 10  # bits between two weights in one input of 18 bits
OVERLAP = HALF - APART  # bits that the products of both have
OFFSET_BITS = 7  # of 128, which is added to the lower weight
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
    cycles before; ``sums`` are zero after a cycle of ``clear``."""

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
        """Products of one vector with every row of weights, then a tree of sums per row."""
        m = Module()
        config = self.config
        wide = multiplier_bits(platform) >= PACKED_BITS
        self.seen = next(filter(None, (hook.seen(m, self) for hook in self.hooks)), None)
        self.vector = Signal(self.inp.shape(), reset_less=True)
        m.d.sync += self.vector.eq(self.inp)
        self.with_dsps = first = config.block_out - sum(hook.rows for hook in self.hooks)
        self.offsets: dict[tuple[str, ...], Value] = {}  # by the lanes that are seen
        m.d.comb += self.carry.eq(((1 << self.with_dsps) - 1) * wide)
        for row in range(0, self.with_dsps, 2):
            if wide:
                self._add_up(m, self._pair, row, 2 * QUAD)
            else:
                self._add_up(m, self._overlapping, row, QUAD, (), (self._offset(m, row),))
        for hook in self.hooks:
            if hook.rows:
                terms_of = hook.terms_of(self)
                for row in range(first, first + hook.rows):
                    self._add_up(m, terms_of, row, hook.columns)
                first += hook.rows
        return m

    def _add_up(
        self, m: Module, terms_of: TermsOf, first: int, columns: int, *more: Sequence[Value]
    ) -> None:
        """The sums of the rows that ``terms_of`` makes, so many columns at a time, and of what
        ``more`` has for each row."""
        parts = [terms_of(m, first, column) for column in range(0, self.config.block_in, columns)]
        for row, terms in enumerate(zip(*parts, strict=True)):
            terms = (*terms, *more[row]) if more else terms
            m.d.comb += self.sums[first + row].eq(self._sum(m, terms, first + row))

    def _pair(self, m: Module, row: int, column: int) -> tuple[Value, ...]:
        """Sums that eight lanes add to a row, and to the next if any: each is one too small."""
        here = self._quad(m, row, row + 1, column)
        there = self._quad(m, row + 1, row, column + QUAD)
        terms = _difference(here, there), _difference(there, here)
        return terms[: self.with_dsps - row]

    def _overlapping(self, m: Module, row: int, column: int) -> tuple[Value, ...]:
        """Sums that four lanes add to a row, and to the next if any, which gets 128 times the lanes
        too much."""
        name = f"{row}_{column}"
        low, over, above = self._parts(m, row, column)
        lows = Signal(APART + 2, name=f"low_{name}", reset_less=True)
        overs = Signal(signed(OVERLAP + 2), name=f"over_{name}", reset_less=True)
        aboves = Signal(signed(HALF + 2), name=f"above_{name}", reset_less=True)
        m.d.sync += [
            sums.eq(self._sum_of(terms))
            for sums, terms in ((lows, low), (overs, over), (aboves, above))
        ]
        lower = Cat(lows[:APART], (overs + lows[APART:])[: OVERLAP + 2]).as_signed()
        terms = (aboves - overs)[: HALF + 2].as_signed(), lower
        return terms[: self.with_dsps - row]

    def _parts(self, m: Module, row: int, column: int) -> tuple[list[Value], ...]:
        """``low``, ``over`` and ``above`` of four lanes, a multiplier each, for two rows."""
        result: tuple[list[Value], ...] = [], [], []
        for c in self._lanes(column):
            lower = self._weight(row + 1, c)
            plus_128 = Cat(lower[:-1], ~lower[-1], Const(0, APART - len(lower)))
            packed = Cat(plus_128, self._weight(row, c)).as_signed()
            weights, lane = self._factors(m, packed, (row, c))
            product = self._product(m, weights, lane, (row, c))
            modulo = Signal(OVERLAP, name=f"modulo_{row}_{c}", reset_less=True)
            m.d.sync += modulo.eq(_modulo(weights[APART:][:OVERLAP], lane[:OVERLAP]))
            above = product[APART:].as_signed()
            low = Cat(product[:APART], 0).as_signed()
            parts = low, (above[:OVERLAP] - modulo)[:OVERLAP].as_signed(), above
            for values, part in zip(result, parts, strict=True):
                values.append(part)
        return result

    def _offset(self, m: Module, row: int) -> Value:
        """-128 times the lanes that a row sees, as late as four lanes' sums."""
        columns = range(self.config.block_in)
        lanes, names = zip(*(self.lane(row, column) for column in columns), strict=True)
        if names not in self.offsets:
            number = len(self.offsets)
            parts: list[Value] = []
            for column in range(0, len(lanes), QUAD):
                part = Signal(signed(8 + 2), name=f"lanes_{number}_{column}", reset_less=True)
                m.d.sync += part.eq(self._sum_of([x.as_signed() for x in lanes[column:][:QUAD]]))
                parts.append(part)
            total = self._sum_of(parts)
            negative = Signal(signed(len(total) + 1), name=f"offset_{number}", reset_less=True)
            m.d.sync += negative.eq(-total)
            self.offsets[names] = Cat(Const(0, OFFSET_BITS), negative).as_signed()
        return self.offsets[names]

    def _sum_of(self, terms: Sequence[Value]) -> Value:
        """Terms added two by two."""
        while len(terms) > 1:
            terms = self._level(terms)
        return terms[0]

    def _quad(self, m: Module, high: int, low: int, column: int) -> Quad:
        """Four lanes, a multiplier each, for two rows."""
        name = f"{high}_{column}"
        quad = Signal(signed(2 * HALF + 2), name=f"quad_{name}", reset_less=True)
        total: Value | int = 0
        odd = []
        for c in self._lanes(column):
            weight = self._weight(high, c)
            packed = (weight << HALF) - self._weight(low, c)
            factors = self._factors(m, packed[:PACKED_BITS].as_signed(), (high, c))
            total += self._product(m, *factors, (high, c))
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

    def _factors(self, m: Module, weight: Value, place: tuple[int, int]) -> tuple[Signal, Value]:
        """Registers of a weight and of the lane that its row sees; ``place``: row and column."""
        weights = Signal(weight.shape(), name="weights_{}_{}".format(*place), reset_less=True)
        m.d.sync += weights.eq(weight)
        lane, _ = self.lane(*place)
        return weights, lane

    def _product(self, m: Module, weights: Signal, lane: Value, place: tuple[int, int]) -> Signal:
        """Register of the product of a weight and a lane."""
        name = "product_{}_{}".format(*place)
        product = Signal(signed(len(weights) + 8), name=name, reset_less=True)
        m.d.sync += product.eq(weights * lane)
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


def _modulo(x: Value, y: Value) -> Value:
    """``x × y`` mod 2**6 of six bits each, out of digits of two bits, whose products take four."""
    xs, ys = ([v[n : n + 2] for n in range(0, OVERLAP, 2)] for v in (x, y))
    low = _of_digits(xs[0], ys[0])
    middle = _of_digits(xs[0], ys[1]) + _of_digits(xs[1], ys[0])
    high = [_of_digits(xs[n], ys[2 - n]) for n in range(3)]
    ones, twos = (Cat(digit[bit] for digit in high) for bit in range(2))
    carry = (ones[0] & ones[1]) | (ones[2] & (ones[0] | ones[1]))
    return Cat(low[:2], (middle + Cat(low[2:], ones.xor(), twos.xor() ^ carry))[:4])


def _of_digits(x: Value, y: Value) -> Value:
    """The product of two bits and two bits, each of its bits a LUT."""
    carry = x.all() & y.all()
    return Cat(x[0] & y[0], (x[1] & y[0]) ^ (x[0] & y[1]), (x[1] & y[1]) ^ carry, carry)
