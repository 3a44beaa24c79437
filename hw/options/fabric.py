"""Multiply-adds of int8 in look-up tables, for the lanes of GEMM that take no DSP.

    operands → digits 0, 1 of two products → digits 2, 3 of them → sums → sums → sums
       1                 2                          3               4      5      6

1. A weight is four digits from -2 to 2 (Booth's recoding, radix 4). A digit follows from three bits
   of the weight, and a bit of ``digit × x`` from these and from two bits of x.
2. So a bit of ``total + digit × x`` has six inputs, and is one LUT in front of a carry chain.
   A negative digit is a complement; the one that it lacks goes into the chain as a carry.
3. Two products go through the same chains, digit by digit. What lies below a digit is final, so a
   chain has 10 or 11 bits; products on their own would have as many, and their sum 17 more.
4. Four chains follow each other in a cycle, and take about as long as four DSPs.
5. Nothing here is a multiplication, so that no tool makes a DSP of it.
6. The last ``fabric_lanes`` outputs of GEMM are made so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from amaranth import Cat, Const, Module, Mux, Value

from vdla.hw.gemm import Gemm, GemmHooks, TermsOf
from vdla.hw.layout import add_selected
from vdla.hw.requantize import delayed
from vdla.isa.config import Config
from vdla.isa.options.fabric import OPTIONS, fabric_lanes

LANES = 2  # of a vector, whose products one ``sum_of_products`` adds
DIGITS = 4  # of a weight
DIGIT_BITS = 2
MULTIPLE_BITS = 10  # of a digit times an int8


class FabricGemm(GemmHooks):
    """GEMM's last outputs, without DSPs."""

    option, columns = OPTIONS[0], LANES

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.rows = fabric_lanes(config)

    def terms_of(self, gemm: Gemm) -> TermsOf:
        """Sums that two lanes add to an output; outputs share the lanes' late registers."""
        late: dict[str, Value] = {}  # lanes a cycle after their registers, by these' names
        lanes = self.config.block_in

        def terms(m: Module, row: int, column: int) -> tuple[Value, ...]:
            factors = []
            for c in range(column, min(column + LANES, lanes)):
                lane, name = gemm.lane(row, c)
                if name not in late:
                    late[name] = delayed(m, lane, 1, name).as_signed()
                factors.append(Factors(gemm.wgt[row * lanes + c], lane, late[name]))
            return (sum_of_products(m, factors, f"{row}_{column}"),)

        return terms


class Factors(NamedTuple):
    """A weight, the ``lane`` a cycle after it out of a register, and that lane a cycle ``late``."""

    weight: Value
    lane: Value
    late: Value


def sum_of_products(m: Module, factors: Sequence[Factors], name: str) -> Value:
    """The sum of up to ``LANES`` products of int8, three cycles after the weights."""
    recoded: list[Value] = [
        Cat(Const(0, 1), delayed(m, f.weight, 1, f"weights_{name}_{column}"))
        for column, f in enumerate(factors)
    ]
    lowest, total = _digits(None, recoded, [f.lane for f in factors])
    half = DIGITS // 2 * DIGIT_BITS
    upper = [
        delayed(m, bits[half:], 1, f"digits_{name}_{column}") for column, bits in enumerate(recoded)
    ]
    lowest = delayed(m, lowest, 1, f"low_{name}")
    total = delayed(m, total, 1, f"high_{name}").as_signed()
    low, total = _digits(total, upper, [f.late for f in factors])
    return delayed(m, Cat(lowest, low, total), 1, f"pair_{name}").as_signed()


def _digits(
    total: Value | None, recoded: Sequence[Value], lanes: Sequence[Value]
) -> tuple[Value, Value]:
    """``total`` with half of each weight's digits times its lane: the bits that are final, and
    those above them."""
    low: list[Value] = []
    for bit in range(0, DIGITS // 2 * DIGIT_BITS, DIGIT_BITS):
        for column, (bits, lane) in enumerate(zip(recoded, lanes, strict=True)):
            digit = bits[bit : bit + DIGIT_BITS + 1]
            total = add_multiple(total, digit, lane, MULTIPLE_BITS + column)
        assert total is not None
        low.append(total[:DIGIT_BITS])
        total = total[DIGIT_BITS:].as_signed()
    assert total is not None
    return Cat(low), total


def add_multiple(total: Value | None, digit: Value, x: Value, bits: int) -> Value:
    """``total`` + (``digit[0]`` + ``digit[1]`` - 2 × ``digit[2]``) × ``x`` in ``bits`` bits, with
    no ``total`` the product alone."""
    negative = digit[2]
    one, two = digit[0] ^ digit[1], (digit[0] == digit[1]) & (digit[1] != negative)
    once, twice = (Cat(v, v[-1].replicate(bits - len(v))) for v in (x, Cat(Const(0, 1), x)))
    multiple = Mux(one, once, Mux(two, twice, 0)) ^ negative.replicate(bits)
    rest = Const(0, bits) if total is None else total
    return add_selected(rest.as_signed(), multiple.as_signed(), negative)[:bits].as_signed()
