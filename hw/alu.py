"""ALU: one vector operation per cycle. In a pipeline with GEMM it also accumulates GEMM's sums.

    operands → products → sum → shifted → moved → combined → result
       1          2        3       4        5        6             cycles after READ's data

1. MUL and RQ multiply x by y's low 25 bits or by its mantissa, SHR by a power of two, WADD by its
   weight: on two DSPs. What is shifted out by 16s is SHR's, MUL's and WADD's; RQ rounds it.
2. A third DSP makes WADD's other product, of y and the immediate, and adds what the first two made;
   for SHR and MUL it adds nothing to that.
3. Two operands meet in combine. The first is the late x, or zero where the operation doesn't use
   it. The second has waited, or came out of a multiplier: y, the immediate, what the third DSP has;
   or the sums of GEMM.
4. So one adder gives the sums of GEMM and ADD, every y, what SHR, MUL and WADD give, and, when it
   subtracts, which of the two is less. The result is the sum, one of the two operands, or what RQ
   limits. Which one is known with the sum, and chosen a cycle later, on the way to the scratchpad.
5. A config with tables looks y's low bits up there (TAB), while y waits: where the operation is
   TABLE, the result goes on in y's place.
6. With reciprocal units SCALE takes RQ's way as far as the shift, which keeps 32 bits then: SHR,
   MUL and WADD have their results there, too. Combine's adder rounds SCALE's. One beyond 32 bits is
   dropped for the greatest or the least, which pass where RQ's limits do.
7. What the units compute (``reciprocals.py``) is in the late x's place; of y their micro-ops have
   nothing else. They see y a cycle after it came, and keep it there.
8. What isn't chosen is zero: its register is reset, by a signal that is high then, since an
   inverter would take a LUT. So a choice is an OR, where a multiplexer would need inputs of its LUT
   for what it chooses by.
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.layout import is_operation, is_other_operation, lanes, operation_shape
from vdla.hw.requantize import (
    FACTOR_BITS,
    Requantize,
    add,
    choose,
    delayed,
    multiplied,
    scaler,
    split,
)
from vdla.isa.config import Config
from vdla.isa.instructions import (
    WADD_BITS,
    WEIGHT_BITS,
    AluOp,
    operations,
)
from vdla.isa.numbers import MANTISSA_BITS, SHIFT_BITS
from vdla.isa.options.reciprocals import reciprocal_units
from vdla.isa.options.tables import RESULT_BYTES, tables
from vdla.support.numbers import ceil_div

DEPTH = 5  # cycles from the operands to the combine stage
WEIGHED = 2  # cycles from the operands to WADD's product of y
LOOKED_UP = 3  # cycles from the operands to the indices of TABLE; the results come a cycle later
INDEX_BITS = 8
LIMIT_BITS = 9  # of zero, low and high
HOT_BITS = 17  # SHR multiplies by 2**0 to 2**16


class Factor(enum.Enum, shape=2):
    """Factor that x is multiplied by."""

    Y = 0
    SCALAR = 1
    POWER = 2


class Alu(Component):
    """``x``, ``y``, ``op``, ``use_imm``, ``weight``, ``imm`` come with READ's data, a micro-op's
    ``y_weight``, and whether it is ``unweighed`` (not WADD), WEIGHED cycles later. ``zero``,
    ``low``, ``high`` and what ``late_…`` says of an operation belong to the micro-op that came
    DEPTH - 1 cycles before, ``late_x``, ``sums``, ``carry`` to the one before it and ``result`` to
    the next before. ``late_x`` is the accumulator, or zero where the operation doesn't use it late;
    ``sums`` are zero where it isn't GEMM's. In a pipeline without ``gemm`` there are no ``sums``,
    ``carry`` and ``late_gemm``. With tables, ``indices`` are y's low bits LOOKED_UP
    cycles later; a cycle after them come ``results``, which count where ``looked_up`` is high. With
    reciprocal units, ``kept_y`` is y a cycle later, and stays while ``keeps_y`` is high.
    """

    def __init__(self, config: Config, *, gemm: bool = True) -> None:
        self.config, self.gemm = config, gemm
        self.has_units = reciprocal_units(config) > 0
        self.scales = (AluOp.RQ, AluOp.SCALE) if self.has_units else (AluOp.RQ,)
        super().__init__(_ports(config, gemm=gemm))

    def elaborate(self, platform: object) -> Module:
        """Logic of all lanes; then per lane the multipliers, weighted products and the result."""
        m = Module()
        self._control(m)
        waiting = self._wait(m)
        waited = delayed(m, waiting, DEPTH - 1 - WEIGHED, "y_later")
        if tables(self.config):
            low = Cat(waiting.word_select(n, 32)[:INDEX_BITS] for n in range(self.config.block_out))
            m.d.comb += self.indices.eq(delayed(m, low, LOOKED_UP - WEIGHED, "index"))
        weighed, ys = (data.View(self.y.shape(), value) for value in (waiting, waited))
        for lane in range(self.config.block_out):
            requantize = self._multiply(m, lane)
            product = self._weigh(m, lane, weighed[lane], requantize)
            y = Signal(signed(32), name=f"late_y_{lane}", reset_less=True)
            late_y = ys[lane]
            if tables(self.config):
                late_y = Mux(self.looked_up, self.results[lane], late_y)
            m.d.sync += y.eq(Mux(self.drops_y, 0, late_y))
            second = y | self.immediate | product
            m.d.comb += self.result[lane].eq(self._combine(m, lane, second, y, requantize))
        return m

    def _wait(self, m: Module) -> Value:
        """y, WEIGHED cycles later."""
        y = self.y.as_value()
        if not self.has_units:
            return delayed(m, y, WEIGHED, "y")
        kept = self.kept_y.as_value()
        with m.If(~self.keeps_y):
            m.d.sync += kept.eq(y)
        return delayed(m, kept, WEIGHED - 1, "kept_y")

    def _control(self, m: Module) -> None:
        """Control of all lanes; what the combine stage chooses by comes from registers."""
        op, late = self.op, self.late_op
        late_gemm = self.late_gemm if self.gemm else Const(0)
        idle = self.late_first | late_gemm
        self.factor = Signal(Factor)
        self.scalar = Signal(signed(FACTOR_BITS[1]))  # the same for each lane
        # What combine doesn't get, of what the third DSP has, the immediate, and y.
        self.drops_product, self.drops_y, drops_immediate = (
            Signal(name=f"drops_{n}") for n in ("product", "y", "immediate")
        )
        self.immediate, self.compared = (  # ``compared``: the one of MIN and MAX
            Signal(signed(32), name=n, reset_less=True) for n in ("immediate", "compared")
        )
        self.compares, self.drops_compared, self.drops_total, self.drops_limited = (
            Signal(name=n, reset_less=True)
            for n in ("compares", "drops_compared", "drops_total", "drops_limited")
        )
        self.greater, self.accumulates = (
            Signal(name=n, reset_less=True) for n in ("greater", "accumulates")
        )
        self.low_now, self.high_now = (
            Signal(signed(LIMIT_BITS), name=n, reset_less=True) for n in ("low_now", "high_now")
        )
        multiplied = is_operation(late, AluOp.SHR, AluOp.MUL, AluOp.WADD, *self.scales[1:])
        m.d.comb += [
            self.scalar.eq(Mux(is_operation(op, AluOp.WADD), self.weight, self.imm)),
            self.drops_product.eq(idle | ~multiplied),
            drops_immediate.eq(
                ~self.drops_product | late_gemm | ~self.late_use_imm | self._takes_y(late)
            ),
            self.drops_y.eq(self._or_inverts(~self.drops_product | late_gemm | ~drops_immediate)),
        ]
        with m.If(is_operation(op, AluOp.SHR)):
            m.d.comb += self.factor.eq(Factor.POWER)
        with m.Elif(self.use_imm | is_operation(op, AluOp.WADD)):
            m.d.comb += self.factor.eq(Factor.SCALAR)
        compares = ~idle & is_operation(late, AluOp.MIN, AluOp.MAX)
        limits = ~idle & is_operation(late, AluOp.RQ)
        m.d.sync += [
            self.immediate.eq(Mux(drops_immediate, 0, self.late_imm)),
            self.compared.eq(Mux(self.drops_compared, 0, self.immediate)),
            self.accumulates.eq(late_gemm),
            self.compares.eq(compares),
            self.drops_compared.eq(~compares),
            self.drops_total.eq(compares | limits),
            self.drops_limited.eq(~limits),
            self.greater.eq(is_operation(late, AluOp.MAX)),
            self.low_now.eq(self.low),
            self.high_now.eq(self.high),
        ]
        if self.has_units:
            scales = ~idle & is_operation(late, AluOp.SCALE)
            self.scales_now = Signal(name="scales", reset_less=True)
            m.d.sync += [self.scales_now.eq(scales), self.drops_limited.eq(~limits & ~scales)]
            with m.If(scales):  # between them is nothing but zero
                m.d.sync += [self.low_now.eq(0), self.high_now.eq(0)]

    def _takes_y(self, op: Value) -> Value:
        """Whether an operation's y is never the immediate."""
        return is_operation(op, *(each for each in operations(self.config) if each.y_from_acc))

    def _or_inverts(self, value: Value) -> Value:
        """Whether something holds, or the reciprocal units made the late operation's result."""
        if not self.has_units:
            return value
        serial = (op for op in operations(self.config) if op.serial)
        return value | (is_operation(self.late_op, *serial) & ~self.late_first)

    def _multiply(self, m: Module, lane: int) -> Requantize:
        """x times what SHR, MUL, WADD or RQ say, and what is shifted out of it."""
        x, y, op = self.x[lane], self.y[lane], self.op
        low, high = split(x)
        amount = Signal(SHIFT_BITS, name=f"amount_{lane}")
        multiply, requantize = scaler(m, lane, LIMIT_BITS, amount, self.zero, wide=self.has_units)
        shift = Mux(self.use_imm, self.imm, y)
        power, far = _power(m, shift, lane)
        with m.If(is_operation(op, *self.scales)):
            m.d.comb += amount.eq(shift[MANTISSA_BITS:])
        with m.Elif(is_operation(op, AluOp.SHR)):
            m.d.comb += amount.eq(Mux(shift[5], 0, Mux(shift[4], 32, 16)))
        far &= is_operation(op, AluOp.SHR)
        # WADD takes x's low bits, with their own sign.
        sign = x[WADD_BITS - 1].replicate(FACTOR_BITS[0]).as_signed()
        factors = [y[: FACTOR_BITS[1]].as_signed(), self.scalar, power, Const(0)]
        factor = choose(self.factor.as_value(), factors)
        # A mantissa has no sign.
        sign_of_factor = factor[MANTISSA_BITS] & is_other_operation(op, *self.scales)
        m.d.comb += [
            multiply.low.eq(low),
            multiply.high.eq(Mux(far, low, Mux(is_operation(op, AluOp.WADD), sign, high))),
            multiply.only_high.eq(far),
            multiply.factor.eq(Cat(factor[:MANTISSA_BITS], sign_of_factor)),
        ]
        return requantize

    def _weigh(self, m: Module, lane: int, y: Value, requantize: Requantize) -> Signal:
        """Operand of combine for SHR, MUL and WADD: WADD's product of y and the immediate, if it is
        WADD, and what came out of the other multiplication, as SCALE's does, too, which is still to
        be rounded. One DSP with its adder."""
        factor = Mux(self.unweighed, 0, y[:WADD_BITS].as_signed())
        product = multiplied(m, factor, self.y_weight, f"weighed_{lane}")
        other = (
            requantize.quotient
            if self.has_units
            else delayed(m, requantize.window, 1, f"window_{lane}").as_signed()
        )
        total = Signal(signed(32), name=f"product_{lane}", reset_less=True)
        m.d.sync += total.eq(Mux(self.drops_product, 0, product + other))
        return total

    def _combine(
        self, m: Module, lane: int, second: Value, y: Value, requantize: Requantize
    ) -> Value:
        """One lane's result: all that it could be comes out of registers."""
        x, subtracts = self.late_x[lane], self.compares
        addend = Signal(signed(32), name=f"addend_{lane}")
        total = Signal(signed(33), name=f"total_{lane}")
        takes_x = Signal(name=f"takes_x_{lane}")
        carry: Value = subtracts
        if self.gemm:
            second = self.sums[lane] | second
            carry |= self.accumulates & self.carry[lane]
        if self.has_units:
            carry |= self.scales_now & requantize.up
        m.d.comb += [
            addend.eq(second ^ subtracts.replicate(32)),
            total.eq(add(x, addend, carry)),
            takes_x.eq(subtracts & (total[32] ^ self.greater)),
        ]
        drops_total, limited = self.drops_total, requantize.limited(self.low_now, self.high_now)
        if self.has_units:
            high, low = _beyond(self.scales_now, requantize, total)
            drops_total |= high | low
            bits = limited.as_unsigned()
            limited = Cat(bits | high.replicate(LIMIT_BITS), bits[-1] | low)
        options = [
            takes_x,
            x,
            Mux(self.drops_compared, 0, y),
            Mux(drops_total, 0, total[:32].as_signed()),
            Mux(self.drops_limited, 0, limited),
        ]
        takes_x, x, y, total, limited = (
            delayed(m, n, 1, f"option_{i}_{lane}").as_signed() for i, n in enumerate(options)
        )
        if self.has_units:
            between = limited[LIMIT_BITS - 1].replicate(31 - LIMIT_BITS)
            limited = Cat(limited[:LIMIT_BITS], between, limited[LIMIT_BITS]).as_signed()
        return Mux(takes_x, x, y | self.compared) | total | limited


def _beyond(scales: Value, requantize: Requantize, total: Value) -> tuple[Value, Value]:
    """Whether SCALE's result is greater than 32 bits hold, and whether it is less.

    Rounding leads beyond the greatest number, too, and to no number below the least.
    """
    rounds_beyond = ~requantize.too_low & total[31] & ~total[32]
    return scales & (requantize.too_high | rounds_beyond), scales & requantize.too_low


def _ports(config: Config, *, gemm: bool) -> dict[str, object]:
    """An ALU's ports; ``gemm``: it is in a pipeline with GEMM."""
    vector, op = lanes(32, config.block_out), operation_shape(config)
    return {
        "x": In(vector),
        "y": In(vector),
        "op": In(op),
        "use_imm": In(1),
        "imm": In(signed(32)),
        "weight": In(signed(WEIGHT_BITS)),
        "y_weight": In(signed(WEIGHT_BITS)),
        "unweighed": In(1),
        "late_op": In(op),
        "late_use_imm": In(1),
        "late_imm": In(signed(32)),
        "late_first": In(1),
        **({"late_gemm": In(1)} if gemm else {}),
        **{name: In(signed(LIMIT_BITS)) for name in ("zero", "low", "high")},
        "late_x": In(vector),
        **({"sums": In(vector), "carry": In(config.block_out)} if gemm else {}),
        "result": Out(vector),
        **(_table_ports(config) if tables(config) else {}),
        **({"kept_y": Out(vector), "keeps_y": In(1)} if reciprocal_units(config) else {}),
    }


def _table_ports(config: Config) -> dict[str, object]:
    indices = lanes(INDEX_BITS, config.block_out, is_signed=False)
    results = lanes(8 * RESULT_BYTES, config.block_out)
    return {"indices": Out(indices), "results": In(results), "looked_up": In(1)}


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
