"""Multipliers of the ALU's lanes, and what rounds their results: for all lanes, or for a group.

1. A lane's two products are x's, or WADD's of x and of y (``requantize.py``).
2. There are as many lanes of multipliers as a group has. They take the vector's groups one after
   the other, ``group`` says which. What they have of a group before the last is kept until combine,
   and is zero for other micro-ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum

from vdla.hw.layout import is_operation, is_other_operation
from vdla.hw.requantize import FACTOR_BITS, Multiply, Requantize, choose, delayed, scaler, split
from vdla.isa.config import Config
from vdla.isa.instructions import WADD_BITS, WEIGHT_BITS, AluOp
from vdla.isa.numbers import MANTISSA_BITS, SHIFT_BITS
from vdla.isa.options.lanes import alu_groups, alu_lanes
from vdla.support.numbers import ceil_div

DEPTH = 6  # cycles from the operands to combine
LIMIT_BITS = 9  # of zero, low and high
HOT_BITS = 17  # SHR multiplies by 2**0 to 2**16


class Factor(enum.Enum, shape=2):
    """Factor that x is multiplied by."""

    Y = 0
    SCALAR = 1
    POWER = 2


class Scaled(NamedTuple):
    """Results of a lane's multipliers at combine: SHR's, MUL's and WADD's ``product`` and what RQ
    ``limited``, zero where it is another operation's; where the ALU is wide, what is ``unlimited``
    goes up by one, or is too low or too high for 32 bits."""

    product: Value
    limited: Value
    up: Value = Const(0)
    too_low: Value = Const(0)
    too_high: Value = Const(0)


@dataclass(frozen=True)
class Operands:
    """Inputs of the multipliers that come with the operands."""

    x: data.View
    y: data.View
    group: Value  # of lanes that the multipliers take
    op: Value
    use_imm: Value
    imm: Value
    factor: Value  # a Factor
    scalar: Value  # the same for each lane


@dataclass(frozen=True)
class Results:
    """Inputs that belong to the micro-op that comes to combine next, but for the limits, which are
    combine's. ``scales``: operations whose immediate is a scale; ``wide``: 32 bits are kept."""

    op: Value
    valid: Value
    drops_product: Value
    zero: Value
    low: Value
    high: Value
    scales: tuple[AluOp, ...]
    wide: bool


class Multipliers:
    """``lanes``: of each lane, what its multipliers have at combine."""

    def __init__(self, m: Module, config: Config, operands: Operands, results: Results) -> None:
        self.operands, self.results = operands, results
        self.count = alu_lanes(config)
        groups = alu_groups(config)
        units = [self._unit(m, unit) for unit in range(self.count)]
        self.lanes = units
        if groups > 1:
            arrives = delayed(m, operands.group, DEPTH, "group")
            kept = [
                self._keep(m, group * self.count + n, unit, arrives == group)
                for group in range(groups - 1)
                for n, unit in enumerate(units)
            ]
            self.lanes = [*kept, *units]

    def _unit(self, m: Module, unit: int) -> Scaled:
        """A lane's multipliers, and what they have at combine."""
        operands, results = self.operands, self.results
        x, y = (_of_group(of, operands.group, unit, self.count) for of in (operands.x, operands.y))
        multiply, requantize = self._multiply(m, unit, x, y)
        product = self._product(m, unit, multiply, requantize)
        limited = requantize.limited(results.low, results.high)
        if not results.wide:
            return Scaled(product, limited)
        return Scaled(product, limited, requantize.up, requantize.too_low, requantize.too_high)

    def _keep(self, m: Module, lane: int, unit: Scaled, arrives: Value) -> Scaled:
        """Keeps what a unit has of a lane when that ``arrives``, for combine."""
        kept = [
            Signal.like(v, name=f"kept_{i}_{lane}", reset_less=True) for i, v in enumerate(unit)
        ]
        with m.If(arrives):
            m.d.sync += [mine.eq(value) for mine, value in zip(kept, unit, strict=True)]
        with m.If(self.results.valid & self.results.drops_product):
            m.d.sync += kept[0].eq(0)
        return Scaled(*kept)

    def _multiply(self, m: Module, lane: int, x: Value, y: Value) -> tuple[Multiply, Requantize]:
        """x times what SHR, MUL or RQ say, and what is shifted out of it; WADD's two products."""
        operands, scales = self.operands, self.results.scales
        op, weighs = operands.op, is_operation(operands.op, AluOp.WADD)
        low, high = split(x)
        amount = Signal(SHIFT_BITS, name=f"amount_{lane}")
        multiply, requantize = scaler(
            m, lane, LIMIT_BITS, amount, self.results.zero, wide=self.results.wide
        )
        shift = Mux(operands.use_imm, operands.imm, y)
        power, far = _power(m, shift, lane)
        with m.If(is_operation(op, *scales)):
            m.d.comb += amount.eq(shift[MANTISSA_BITS:])
        with m.Elif(is_operation(op, AluOp.SHR)):
            m.d.comb += amount.eq(Mux(shift[5], 0, Mux(shift[4], 32, 16)))
        far &= is_operation(op, AluOp.SHR)
        factors = [y[: FACTOR_BITS[1]].as_signed(), operands.scalar, power, Const(0)]
        factor = choose(operands.factor, factors)
        # A mantissa has no sign.
        sign_of_factor = factor[MANTISSA_BITS] & is_other_operation(op, *scales)
        factor = Cat(factor[:MANTISSA_BITS], sign_of_factor)
        m.d.comb += [
            multiply.low.eq(Cat(low[:-1], weighs & x[WADD_BITS - 1])),  # WADD's x has a sign
            multiply.high.eq(Mux(far, low, Mux(weighs, y[:WADD_BITS].as_signed(), high))),
            multiply.only_high.eq(far),
            multiply.factor.eq(factor),
            multiply.high_factor.eq(Mux(weighs, operands.imm[:WEIGHT_BITS].as_signed(), factor)),
        ]
        return multiply, requantize

    def _product(self, m: Module, lane: int, multiply: Multiply, requantize: Requantize) -> Signal:
        """Operand of combine for SHR, MUL and WADD, and for what is ``unlimited``: that is still to
        be rounded."""
        total = delayed(m, multiply.total, 2, f"weighed_{lane}")
        other = (
            requantize.quotient
            if self.results.wide
            else delayed(m, requantize.window, 1, f"window_{lane}")
        )
        product = Signal(signed(32), name=f"product_{lane}", reset_less=True)
        chosen = Mux(is_operation(self.results.op, AluOp.WADD), total, other)
        m.d.sync += product.eq(Mux(self.results.drops_product, 0, chosen))
        return product


def _of_group(vector: data.View, group: Value, unit: int, units: int) -> Value:
    """A unit's lane of a group."""
    count = len(vector.as_value()) // 32 // units
    lanes = Array(vector[n * units + unit] for n in range(count))
    return lanes[group].as_signed() if count > 1 else vector[unit]


def _power(m: Module, y: Value, lane: int) -> tuple[Value, Value]:
    """Factor by which SHR by ``y`` multiplies, and whether it shifts left by more than 16.

    To the right by 16 × n + r is 2**(16 - r) and 16 × (n + 1) to the right; to the left by up to 16
    is a power of two. By more it is 2**17 times one: x's low bits stand where the high ones do.
    """
    far = y[5] & ~y[4]
    less = ~y[:4]  # 15 - r: one is added by hand, since a carry chain would take long
    sums = [less[bit] ^ (~far & less[:bit].all()) for bit in range(4)]
    exponent = Signal(range(HOT_BITS), name=f"exponent_{lane}")
    m.d.comb += exponent.eq(Cat(*sums, ~far & less.all()))
    fours = [exponent[2:] == n for n in range(ceil_div(HOT_BITS, 4))]
    ones = [exponent[:2] == n for n in range(4)]
    return Cat(fours[bit // 4] & ones[bit % 4] for bit in range(HOT_BITS)), far
