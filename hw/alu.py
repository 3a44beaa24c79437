"""ALU: one vector operation per cycle, in the same pipeline as GEMM, whose sums it accumulates.

    operands → products → sum → shifted → moved → combine
       1          2        3       4        5        6       cycles after READ's data

1. SHR, MUL, WADD and RQ use the two DSPs of a lane. MUL and RQ multiply x by y's low 25 bits or by
   its mantissa, WADD adds two products, SHR multiplies by a power of two and shifts by 16s.
2. ADD, MIN, MAX and the plain y of a first step need no stage of their own: y waits for them. What
   SHR, MUL and WADD give takes y's place in stage 5.
3. The late x of an operation that doesn't use it is zero, so one adder gives the sums of GEMM and
   of ADD, every y, and, subtracting, which of the two is less.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.layout import lanes
from vdla.hw.requantize import (
    MULTIPLY_CYCLES,
    MultiplyAdd,
    Requantize,
    add,
    choose,
    delayed,
    split,
)
from vdla.isa.config import Config
from vdla.isa.instructions import WEIGHT_BITS, AluOp
from vdla.isa.numbers import MANTISSA_BITS, SHIFT_BITS

WADD_BITS = 18  # of x and y in WADD
DEPTH = 5  # cycles from the operands to the combine stage
LIMIT_BITS = 9  # of zero, low and high
HOT_BITS = 17  # SHR multiplies by 2**0 to 2**16
MULTIPLIED = (AluOp.SHR, AluOp.MUL, AluOp.WADD)  # a product takes y's place


class Alu(Component):
    """``x``, ``y``, ``op``, ``weight``, ``imm`` come with READ's data. ``late_op``, ``late_first``,
    ``late_gemm``, ``zero``, ``low`` and ``high`` belong to the micro-op that came DEPTH - 1 cycles
    before, ``late_x``, ``sums``, ``carry`` and ``result`` to the one before it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        vector = lanes(32, config.block_out)
        limits = {name: In(signed(LIMIT_BITS)) for name in ("zero", "low", "high")}
        super().__init__(
            {
                "x": In(vector),
                "y": In(vector),
                "op": In(AluOp),
                "weight": In(signed(WEIGHT_BITS)),
                "imm": In(signed(32)),
                "late_op": In(AluOp),
                "late_first": In(1),
                "late_gemm": In(1),
                **limits,
                "late_x": In(vector),
                "sums": In(vector),
                "carry": In(1),
                "result": Out(vector),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        waited = delayed(m, self.y.as_value(), DEPTH - 1, "y")
        ys = data.View(self.y.shape(), waited)
        plain = ~self.late_first & ~self.late_gemm
        multiplied = plain & self.late_op.matches(*MULTIPLIED)
        # What the combine stage chooses by comes from registers.
        self.limits, self.compares, self.greater = Signal(), Signal(), Signal()
        self.accumulates = Signal()
        self.low_now, self.high_now = Signal(signed(LIMIT_BITS)), Signal(signed(LIMIT_BITS))
        m.d.sync += [
            self.limits.eq(plain & (self.late_op == AluOp.RQ)),
            self.compares.eq(plain & self.late_op.matches(AluOp.MIN, AluOp.MAX)),
            self.greater.eq(self.late_op == AluOp.MAX),
            self.accumulates.eq(self.late_gemm),
            self.low_now.eq(self.low),
            self.high_now.eq(self.high),
        ]
        for lane in range(self.config.block_out):
            requantize = self._multiply(m, lane)
            window, y = (Signal(signed(32), name=f"{n}_{lane}") for n in ("window", "late_y"))
            m.d.sync += [
                window.eq(requantize.window),
                y.eq(Mux(multiplied, window, ys[lane])),
            ]
            m.d.comb += self.result[lane].eq(self._combine(m, lane, y, requantize))
        return m

    def _multiply(self, m: Module, lane: int) -> Requantize:
        """The products of SHR, MUL, WADD and RQ, and what is shifted out of them."""
        x, y, op = self.x[lane], self.y[lane], self.op
        m.submodules[f"multiply_{lane}"] = multiply = MultiplyAdd()
        m.submodules[f"requantize_{lane}"] = requantize = Requantize(LIMIT_BITS)
        low, high = split(x)
        factor = Cat(y[:MANTISSA_BITS], y[MANTISSA_BITS] & (op == AluOp.MUL)).as_signed()
        amount = Signal(SHIFT_BITS, name=f"amount_{lane}")
        with m.If(op == AluOp.RQ):
            m.d.comb += amount.eq(y[MANTISSA_BITS:])
        with m.Elif(op == AluOp.SHR):
            m.d.comb += amount.eq(Mux(y[5], 0, Mux(y[4], 32, 16)))
        power, far = _power(m, y, lane)
        shr, wadd = op == AluOp.SHR, op == AluOp.WADD
        other = self.imm[:WEIGHT_BITS].as_signed()
        m.d.comb += [
            multiply.a0.eq(Mux(wadd, x[:WADD_BITS].as_signed(), low)),
            multiply.b0.eq(Mux(wadd, self.weight, Mux(shr, Mux(far, 0, power), factor))),
            multiply.a1.eq(Mux(wadd, y[:WADD_BITS].as_signed(), Mux(shr & far, low, high))),
            multiply.b1.eq(Mux(wadd, other, Mux(shr, power, factor))),
            multiply.wide.eq(~wadd),
            requantize.value.eq(multiply.result),
            requantize.shift.eq(delayed(m, amount, MULTIPLY_CYCLES, f"amount_{lane}")),
            requantize.zero.eq(self.zero),
        ]
        return requantize

    def _combine(self, m: Module, lane: int, y: Value, requantize: Requantize) -> Value:
        """One lane's result: its late x, and what has waited or been computed for it."""
        x, subtracts = self.late_x[lane], self.compares
        addend = Signal(signed(32), name=f"addend_{lane}")
        total = Signal(signed(33), name=f"total_{lane}")
        takes_x = Signal(name=f"takes_x_{lane}")
        m.d.comb += [
            addend.eq(Mux(self.accumulates, self.sums[lane], y ^ subtracts.replicate(32))),
            total.eq(add(x, addend, subtracts | (self.accumulates & self.carry))),
            takes_x.eq(total[32] ^ self.greater),
        ]
        which = Cat(takes_x & subtracts, ~takes_x & subtracts) | self.limits.replicate(2)
        limited = requantize.limited(self.low_now, self.high_now)
        return choose(which, [total[:32].as_signed(), x, y, limited])


def _power(m: Module, y: Value, lane: int) -> tuple[Value, Value]:
    """What SHR by ``y`` multiplies with, and whether it shifts left by more than 16.

    To the right by 16 × n + r is 2**(16 - r) and 16 × (n + 1) to the right; to the left by up to 16
    is a power of two. By more it is 2**17 times one: x's low bits stand where the high ones do.
    """
    far = y[5] & ~y[4]
    exponent = Signal(range(HOT_BITS), name=f"exponent_{lane}")
    m.d.comb += exponent.eq(16 - y[:4] - far)
    fours = [exponent[2:] == n for n in range(-(-HOT_BITS // 4))]
    ones = [exponent[:2] == n for n in range(4)]
    return Cat(fours[bit // 4] & ones[bit % 4] for bit in range(HOT_BITS)), far
