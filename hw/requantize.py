"""The arithmetic that ALU and STORE share: a multiply-add on two DSPs, and shift with rounding.

    operands → products → sum → shifted → rounded
       1          2        3        4         5       cycles after the inputs

1. ``MultiplyAdd``: ``a0 × b0 + a1 × b1``; with ``wide``, ``a1``'s product counts 2**17 times, so
   that a 32-bit number times a 25-bit number takes two 18 × 25 multipliers (DSP48E1: UG479).
2. ``RoundShift``: ``round_half_even(value / 2**shift)``, saturated to 32 bits; with ``wrap``, the
   low 32 bits of the value shifted right without rounding.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import Component, In, Out

LOW_BITS = 17  # of a 32-bit number, unsigned: with a sign they fill an 18-bit input
VALUE_BITS = 64
SHIFT_BITS = 6


class MultiplyAdd(Component):
    """Result three cycles after the inputs."""

    def __init__(self) -> None:
        factors = {"a0": 18, "b0": 25, "a1": 18, "b1": 25}
        super().__init__(
            {
                **{name: In(signed(bits)) for name, bits in factors.items()},
                "wide": In(1),
                "result": Out(signed(VALUE_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        products = []
        for i in range(2):
            a, b = Signal(signed(18), name=f"a{i}_in"), Signal(signed(25), name=f"b{i}_in")
            product = Signal(signed(43), name=f"product{i}")
            m.d.sync += [
                a.eq(getattr(self, f"a{i}")),
                b.eq(getattr(self, f"b{i}")),
                product.eq(a * b),
            ]
            products.append(product)
        wide = Signal(2)
        m.d.sync += wide.eq(Cat(self.wide, wide[0]))
        upper = Mux(wide[1], products[1] << LOW_BITS, products[1])
        m.d.sync += self.result.eq(products[0] + upper)
        return m


def split(x: Value) -> tuple[Value, Value]:
    """A signed 32-bit number as the inputs ``a0``, ``a1`` of a wide multiplication."""
    return Cat(x[:LOW_BITS], 0).as_signed(), x[LOW_BITS:32].as_signed()


class RoundShift(Component):
    """Result two cycles after the inputs."""

    def __init__(self) -> None:
        super().__init__(
            {
                "value": In(signed(VALUE_BITS)),
                "shift": In(SHIFT_BITS),
                "wrap": In(1),
                "result": Out(signed(32)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # One more bit below the value: what was shifted out last decides the rounding.
        shifted, sticky = Cat(0, self.value).as_signed(), Value.cast(0)
        for step in reversed(range(SHIFT_BITS)):
            lost = shifted[: 1 << step].any()
            shifted, sticky = self._stage(m, step, shifted, sticky, lost)
        held, rest = Signal(signed(VALUE_BITS + 1)), Signal()
        wrap = Signal()
        m.d.sync += [held.eq(shifted), rest.eq(sticky), wrap.eq(self.wrap)]

        quotient, half = held[1:].as_signed(), held[0]
        up = half & (rest | quotient[0]) & ~wrap
        rounded = Signal(signed(VALUE_BITS))
        m.d.comb += rounded.eq(quotient + up)
        fits = (rounded[31:] == 0) | rounded[31:].all()
        limit = Mux(rounded[-1], -(1 << 31), (1 << 31) - 1)
        m.d.sync += self.result.eq(Mux(fits | wrap, rounded[:32], limit))
        return m

    def _stage(
        self, m: Module, step: int, value: Value, sticky: Value, lost: Value
    ) -> tuple[Value, Value]:
        """Shifts by ``2**step`` if that bit of the amount is set."""
        result = Signal(signed(VALUE_BITS + 1), name=f"by_{1 << step}")
        seen = Signal(name=f"lost_{1 << step}")
        bit = self.shift[step]
        m.d.comb += result.eq(Mux(bit, value >> (1 << step), value))
        m.d.comb += seen.eq(sticky | (bit & lost))
        return result, seen
