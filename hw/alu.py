"""ALU: one vector operation per cycle, in the same pipeline as GEMM.

    operands → products → sum → shifted → rounded | combine
       1          2        3        4         5       6       cycles after READ's data

1. SHR, MUL, WADD and RQ use the two DSPs of a lane. MUL and RQ multiply x by y's low 25 bits or by
   its mantissa, WADD adds two products, SHR multiplies by one and shifts ``x × 2**32`` right.
2. ADD, MIN, MAX and the plain y of a first step need no stage of their own: y waits for them.
3. ``result`` is there when the late x is; ``x`` then is the late one.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.layout import lanes, limited
from vdla.hw.requantize import SHIFT_BITS, MultiplyAdd, RoundShift, split
from vdla.isa.config import Config
from vdla.isa.instructions import MUL_BITS, WEIGHT_BITS, AluOp
from vdla.isa.numbers import MANTISSA_BITS

WADD_BITS = 18  # of x and y in WADD
DEPTH = 5  # cycles from the operands to the combine stage
LIMIT_BITS = 9  # of zero, low and high


class Alu(Component):
    """``x``, ``y``, ``op``, ``weight``, ``imm`` come with READ's data; ``late_x``, ``late_op``,
    ``first``, ``zero``, ``low``, ``high`` and the ``result`` belong to the micro-op that came DEPTH
    cycles before."""

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
                "late_x": In(vector),
                "late_op": In(AluOp),
                "first": In(1),
                **limits,
                "result": Out(vector),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ys = self.y
        for stage in range(DEPTH):
            waiting = Signal(self.y.shape(), name=f"y_{stage}")
            m.d.sync += waiting.eq(ys)
            ys = waiting
        for lane in range(self.config.block_out):
            multiplied = self._multiply(m, lane)
            m.d.comb += self.result[lane].eq(self._combine(m, lane, multiplied, ys))
        return m

    def _multiply(self, m: Module, lane: int) -> Value:
        """What SHR, MUL, WADD and RQ give, before RQ's zero point and limits."""
        x, y, op = self.x[lane], self.y[lane], self.op
        m.submodules[f"multiply_{lane}"] = multiply = MultiplyAdd()
        m.submodules[f"shift_{lane}"] = shift = RoundShift()
        low, high = split(x)
        factor, amount = Signal(signed(25)), Signal(SHIFT_BITS)
        with m.Switch(op):
            with m.Case(AluOp.RQ):
                m.d.comb += [
                    factor.eq(y[:MANTISSA_BITS]),
                    amount.eq(y[MANTISSA_BITS : MANTISSA_BITS + SHIFT_BITS]),
                ]
            with m.Case(AluOp.SHR):
                m.d.comb += [factor.eq(1), amount.eq(32 + y[:SHIFT_BITS].as_signed())]
            with m.Default():
                m.d.comb += factor.eq(y[:MUL_BITS].as_signed())
        wadd = op == AluOp.WADD
        m.d.comb += [
            multiply.a0.eq(Mux(wadd, x[:WADD_BITS].as_signed(), low)),
            multiply.b0.eq(Mux(wadd, self.weight, factor)),
            multiply.a1.eq(Mux(wadd, y[:WADD_BITS].as_signed(), high)),
            multiply.b1.eq(Mux(wadd, self.imm[:WEIGHT_BITS].as_signed(), factor)),
            multiply.wide.eq(~wadd),
        ]
        control = Cat(amount, op == AluOp.SHR, op != AluOp.RQ)
        for stage in range(3):
            waiting = Signal(len(control), name=f"control_{stage}")
            m.d.sync += waiting.eq(control)
            control = waiting
        is_shift = control[SHIFT_BITS]
        m.d.comb += [
            shift.shift.eq(control[:SHIFT_BITS]),
            shift.wrap.eq(control[SHIFT_BITS + 1]),
            shift.value.eq(Mux(is_shift, multiply.result << 32, multiply.result)),
        ]
        return shift.result

    def _combine(self, m: Module, lane: int, multiplied: Value, ys: data.View) -> Value:
        x, y, op = self.late_x[lane], ys[lane], self.late_op
        result, less = Signal(signed(32)), Signal()
        moved = multiplied + self.zero
        m.d.comb += less.eq(x < y)
        with m.Switch(Cat(op, self.first)):
            with m.Case(AluOp.ADD):
                m.d.comb += result.eq(x + y)
            with m.Case(AluOp.MIN):
                m.d.comb += result.eq(Mux(less, x, y))
            with m.Case(AluOp.MAX):
                m.d.comb += result.eq(Mux(less, y, x))
            with m.Case(AluOp.RQ):
                m.d.comb += result.eq(limited(moved, self.low, self.high))
            with m.Case(AluOp.SHR, AluOp.MUL, AluOp.WADD):
                m.d.comb += result.eq(multiplied)
            with m.Default():
                m.d.comb += result.eq(y)
        return result
