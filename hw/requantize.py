"""The arithmetic that ALU and STORE share: a wide multiplication, and a shift with rounding.

    operands → products → sum → by 16s → shifted → moved | limited
       1          2        3      4         5        6              cycles after the inputs

1. ``Multiply``: a 32-bit number times a 25-bit number is two products of 18 × 25 bits, which a
   DSP48E1 makes (UG479), 17 bits apart: the second DSP adds what the first has beyond them. The
   sum of two products of different numbers is made in LUTs. An ECP5's multipliers have 18 × 18
   bits: two of them make each product, 17 bits apart as well, and the sum of all is made in LUTs.
2. ``Requantize`` rounds ``value / 2**shift``, ties to the even, and adds ``zero``. What comes after
   are limits of few bits, so it keeps few: whether the value lies above or below is a flag.
3. It shifts by 16s, by 4s, by 1s: each time a choice of four, and a narrower window. Bits lost
   below, and bits above that differ from the sign, are gathered on the way.
4. Where it is ``wide`` it keeps 32 bits, for results of 32 bits, too. Then the limits of few bits
   look at the bits above theirs only when the shift is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import Component, In, Out

from vdla.isa.numbers import SHIFT_BITS

FACTOR_BITS = 18, 25  # of a DSP48E1
PACKED_BITS = FACTOR_BITS[1]  # its wider input, in which GEMM has two weights
LOW_BITS = 17  # of a 32-bit number, unsigned: with a sign they fill the narrow input
VALUE_BITS = 57  # of a 32-bit number times a 25-bit number
WINDOW_BITS = 32
MULTIPLY_CYCLES = 3


class Multiply(Component):
    """``result``: ``(high × 2**17 + low) × factor``, MULTIPLY_CYCLES after them, where
    ``high_factor`` is the same: two DSPs, no LUT. ``total``: ``low × factor + high × high_factor``.

    With ``only_high``, ``low`` counts as zero.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "low": In(signed(FACTOR_BITS[0])),
                "high": In(signed(FACTOR_BITS[0])),
                "factor": In(signed(FACTOR_BITS[1])),
                "high_factor": In(signed(FACTOR_BITS[1])),
                "only_high": In(1),
                "result": Out(signed(VALUE_BITS)),
                "total": Out(WINDOW_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two products, of the number's low and high part, and their sum a cycle later."""
        m = Module()
        # Written as a register's reset, which the DSP has, this costs no LUT.
        bits = multiplier_bits(platform)
        low = multiplied(m, Mux(self.only_high, 0, self.low), self.factor, ("low", bits))
        high = multiplied(m, self.high, self.high_factor, ("high", bits))
        rest = Signal(LOW_BITS, reset_less=True)
        upper = Signal(signed(VALUE_BITS - LOW_BITS), reset_less=True)
        m.d.sync += [rest.eq(low), upper.eq(high + (low >> LOW_BITS))]
        m.d.sync += self.total.eq(low[:WINDOW_BITS] + high[:WINDOW_BITS])
        m.d.comb += self.result.eq(Cat(rest, upper))
        return m


def multiplier_bits(platform: object) -> int:
    """Width of the wider input of a platform's multipliers, which can have it as an attribute of
    this name: 25 bits, or 18, an ECP5's."""
    return getattr(platform, "multiplier_bits", PACKED_BITS)


def multiplied(m: Module, x: Value, factor: Value, of: tuple[str, int]) -> Value:
    """A product of 18 × 25 bits, two cycles after its factors: of one DSP, or of two multipliers,
    with a sum, where they have 18 bits. ``of``: the registers' name, and a multiplier's bits."""
    name, bits = of
    a = Signal(signed(FACTOR_BITS[0]), name=f"{name}_x", reset_less=True)
    b = Signal(signed(FACTOR_BITS[1]), name=f"{name}_factor", reset_less=True)
    m.d.sync += [a.eq(x), b.eq(factor)]
    if bits >= PACKED_BITS:
        product = Signal(signed(sum(FACTOR_BITS)), name=f"{name}_product", reset_less=True)
        m.d.sync += product.eq(a * b)
        return product
    low, high = Cat(b[:LOW_BITS], 0).as_signed(), b[LOW_BITS:].as_signed()
    parts = [
        Signal(signed(len(a) + len(part)), name=f"{name}_product_{i}", reset_less=True)
        for i, part in enumerate((low, high))
    ]
    m.d.sync += [product.eq(a * part) for product, part in zip(parts, (low, high), strict=True)]
    return Cat(parts[0][:LOW_BITS], (parts[0] >> LOW_BITS) + parts[1]).as_signed()


def split(x: Value) -> tuple[Value, Value]:
    """A signed 32-bit number as the inputs ``low`` and ``high`` of a multiplication."""
    return Cat(x[:LOW_BITS], 0).as_signed(), x[LOW_BITS:32].as_signed()


class Requantize(Component):
    """``round_half_even(value / 2**shift) + zero`` in front of limits of ``bits`` bits.

    ``moved``, ``above`` and ``below`` follow three cycles after the inputs, ``zero`` comes two
    after them. ``window`` is the value shifted right by ``shift``'s 16s alone, a cycle later.

    A ``wide`` one has ``quotient``, two cycles after the inputs, of 32 bits, rounded down. In the
    next cycle it says whether one is to be added, ``up``, and whether it is ``too_high`` or
    ``too_low`` for 32 bits.
    """

    def __init__(self, bits: int, *, wide: bool = False) -> None:
        self.bits, self.wide = bits, wide
        flags = ("up", "too_high", "too_low")
        of_wide = {"quotient": Out(signed(WINDOW_BITS)), **dict.fromkeys(flags, Out(1))}
        super().__init__(
            {
                "value": In(signed(VALUE_BITS)),
                "shift": In(SHIFT_BITS),
                "zero": In(signed(bits)),
                "window": Out(WINDOW_BITS),
                "moved": Out(signed(bits + 2)),
                "above": Out(1),
                "below": Out(1),
                **(of_wide if wide else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A shift in three steps that keeps what rounding needs; then rounding, zero and limits."""
        m = Module()
        # Of a quotient: with zero it goes beyond any limit, or it is flagged.
        kept = WINDOW_BITS if self.wide else self.bits + 1
        value = Cat(0, self.value)  # the bit below a quotient decides its rounding
        of_shift = (kept, self.value[-1], self.shift)
        far = _Shifted(m, value, of_shift, 4)
        later = Signal(5, name="later", reset_less=True)  # the rest of the shift, and the sign
        m.d.sync += later.eq(Cat(self.shift[:4], self.value[-1]))
        far.keep(m)
        by_16s = [self.value[n:].as_signed() for n in range(0, 64, 16)]
        m.d.sync += self.window.eq(choose(self.shift[4:6], by_16s))
        sign = later[4]
        of_shift = (kept, sign, later[:4])
        middle = _Shifted(m, far.value, of_shift, 2)
        near = _Shifted(m, middle.value, of_shift, 0)
        shifted = near.value
        sticky, beyond = (
            Cat(getattr(each, name) for each in (far, middle, near)) for name in ("rest", "beyond")
        )
        quotient = Signal(signed(kept), reset_less=True)
        moved = Signal.like(self.moved, reset_less=True)
        half, rest, high, low, above, below = (
            Signal(name=n, reset_less=True)
            for n in ("half", "rest", "high", "low", "is_above", "is_below")
        )
        m.d.sync += [
            Cat(half, quotient).eq(shifted),
            rest.eq(sticky.any()),
            high.eq(beyond.any() & ~sign),
            low.eq(beyond.any() & sign),
        ]
        up = half & (rest | quotient[0])
        narrow: Value = quotient
        if self.wide:
            narrow = quotient[: self.bits + 1].as_signed()
            low, high = self._widen(m, quotient, up, Cat(low, high))
        m.d.sync += [
            moved.eq(add(narrow, self.zero, up)),
            above.eq(high),
            below.eq(low),
        ]
        m.d.comb += [self.moved.eq(moved), self.above.eq(above), self.below.eq(below)]
        return m

    def _widen(self, m: Module, quotient: Signal, up: Value, beyond: Value) -> Value:
        """Flags beside a quotient of 32 bits; ``beyond``: it is too low for them, or too high.

        Returns whether it is too low, or too high, for the limits of few bits.
        """
        sign = quotient[-1]
        far = (quotient[self.bits : -1] ^ sign.replicate(WINDOW_BITS - 1 - self.bits)).any()
        flags = Signal(3, name="flags", reset_less=True)
        m.d.sync += flags.eq(Cat(beyond, up))
        m.d.comb += [
            self.quotient.eq(quotient),
            Cat(self.too_low, self.too_high, self.up).eq(flags),
        ]
        far &= ~beyond.any()
        return beyond | Cat(far & sign, far & ~sign)

    def limited(self, low: Value, high: Value) -> Value:
        """``min(max(moved, low), high)``: ``high`` wins, should they cross."""
        above = self.above | (~self.below & (self.moved > high)) | (low > high)
        below = self.below | (self.moved < low)
        return Mux(above, high, Mux(below, low, self.moved[: self.bits].as_signed()))


class _Shifted:
    """A ``value`` shifted right by a shift's bits ``bit`` and ``bit + 1``; what falls out below, or
    differs from the sign above what is still to be kept, is said by ``rest`` and ``beyond``.

    ``of_shift``: the bits that a quotient keeps, the sign, and the shift.
    """

    def __init__(
        self, m: Module, value: Value, of_shift: tuple[int, Value, Value], bit: int
    ) -> None:
        kept, sign, shift = of_shift
        to_come = (1 << bit) - 1  # by which later steps may shift
        amount, steps = shift[bit : bit + 2], [n << bit for n in range(4)]
        top = [value[n + kept + to_come :] for n in steps]
        names = (f"by_{1 << bit}s", f"rest_{bit}", f"beyond_{bit}")
        self.value = Signal(1 + kept + to_come, name=names[0])
        self.rest, self.beyond = Signal(name=names[1]), Signal(name=names[2])
        m.d.comb += [
            self.value.eq(choose(amount, [value[n:].as_signed() for n in steps])),
            self.rest.eq(choose(amount, [value[:n].any() for n in steps])),
            self.beyond.eq(choose(amount, [(t ^ sign.replicate(len(t))).any() for t in top])),
        ]

    def keep(self, m: Module) -> None:
        """Keeps all of it in registers."""
        for name in ("value", "rest", "beyond"):
            now = getattr(self, name)
            kept = Signal.like(now, name=f"{now.name}_kept", reset_less=True)
            m.d.sync += kept.eq(now)
            setattr(self, name, kept)


def scaler(
    m: Module, lane: int, bits: int, shift: Value, zero: Value, *, wide: bool = False
) -> tuple[Multiply, Requantize]:
    """A lane's multiplication and what rounds its result; ``shift`` comes with the factors."""
    m.submodules[f"multiply_{lane}"] = multiply = Multiply()
    m.submodules[f"requantize_{lane}"] = requantize = Requantize(bits, wide=wide)
    m.d.comb += [
        requantize.value.eq(multiply.result),
        requantize.shift.eq(delayed(m, shift, MULTIPLY_CYCLES, f"shift_{lane}")),
        requantize.zero.eq(zero),
    ]
    return multiply, requantize


def add(x: Value, y: Value, carry: Value) -> Value:
    """``x + y + carry`` of signed numbers in one adder: the bits below them make the carry."""
    return (Cat(1, x).as_signed() + Cat(carry, y).as_signed()) >> 1


def delayed(m: Module, value: Value, cycles: int, name: str, *, reset_less: bool = True) -> Value:
    """``value`` as it was some cycles ago."""
    for cycle in range(cycles):
        register = Signal(len(value), name=f"{name}_after_{cycle + 1}", reset_less=reset_less)
        m.d.sync += register.eq(value)
        value = register
    return value


def choose(which: Value, options: Sequence[Value]) -> Value:
    """One of four: with two bits to choose by, a six-input LUT for each bit."""
    return Mux(
        which[1], Mux(which[0], options[3], options[2]), Mux(which[0], options[1], options[0])
    )
