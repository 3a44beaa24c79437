"""ALU: one vector operation per cycle. In a pipeline with GEMM it also accumulates GEMM's sums.

    operands → products → sum → by 16s → shifted → moved → combined → result
       1          2        3      4         5        6        7             cycles after x and y

1. MUL and RQ multiply x by y's low 25 bits or by its mantissa, SHR by a power of two: on two DSPs.
   What is shifted out by 16s is SHR's and MUL's; RQ rounds it.
2. WADD takes them apart: one has x and its weight, the other y and the immediate.
3. Two operands meet in combine. The first is the late x, or zero where the operation doesn't use
   it. The second has waited, or came out of the multipliers: y, the immediate, or a product; or the
   sums of GEMM.
4. So one adder gives the sums of GEMM and ADD, every y, what SHR, MUL and WADD give, and, when it
   subtracts, which of the two is less. The result is the sum, one of the two operands, or what RQ
   limits. Which one is known with the sum, and chosen a cycle later, on the way to the scratchpad.
5. Operations of options have their results at the seams of ``AluHooks``: in y's place, while y
   waits; in the late x's place, where y is dropped; or beside the others, a cycle behind combine.
6. An option's operation whose immediate is a scale may be ``unlimited``: it takes RQ's way as far
   as the shift, and what was shifted goes on to combine. Where there is one the shift is ``wide``,
   it keeps 32 bits: SHR, MUL and WADD have their results there, too.
7. What isn't chosen is zero: its register is reset, by a signal that is high then, since an
   inverter would take a LUT. So a choice is an OR, where a multiplexer would need inputs of its LUT
   for what it chooses by.
8. The multipliers may be fewer than the lanes (``multipliers.py``).
"""

from __future__ import annotations

from amaranth import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.hooks import PortHooks, hooks_of, ports_of
from vdla.hw.layout import is_operation, lanes, operation_shape
from vdla.hw.multipliers import DEPTH, LIMIT_BITS, Factor, Multipliers, Operands, Results, Scaled
from vdla.hw.requantize import FACTOR_BITS, add, delayed
from vdla.isa.config import Config
from vdla.isa.instructions import WEIGHT_BITS, AluOp, operations
from vdla.isa.options.lanes import alu_groups

SHOWN = 3  # cycles from the operands to where options look at y


class AluHooks(PortHooks):
    """Seams of ALU, for the operations of an option.

    ``late_…`` of an ``alu`` belongs to the micro-op that comes to combine in the next cycle: what
    is registered for it meets its operands there. ``unlimited``: operations that RQ's limits don't
    apply to though their immediate is a scale.
    """

    unlimited: tuple[AluOp, ...] = ()

    def look(self, m: Module, alu: Alu, y: Value) -> None:
        """Sees ``y``, all lanes, SHOWN cycles after it came."""

    def control(self, m: Module, alu: Alu) -> None:
        """Decides what combine chooses by, where ``alu`` itself doesn't: the last statement counts.

        ``alu.idle``: there is no operation to compute; ``alu.limits``: it is RQ.
        """

    def drops_y(self, alu: Alu) -> tuple[Value, ...]:
        """Conditions on which the late operation adds no y: it has its result in x's place."""
        return ()

    def in_place_of_y(self, alu: Alu, lane: int, y: Value) -> Value:
        """A result in place of the late y, or that y."""
        return y

    def carries(self, alu: Alu, scaled: Scaled) -> tuple[Value, ...]:
        """Conditions on which combine's sum is one greater."""
        return ()

    def limit(
        self, alu: Alu, scaled: Scaled, total: Value, drops: Value, limited: Value
    ) -> tuple[Value, Value]:
        """Whether combine ``drops`` its sum, ``total``, and what it gets of RQ's limits."""
        return drops, limited

    def widened(self, limited: Value) -> Value:
        """Result of what ``limit`` gave, a cycle later."""
        return limited

    def results(self, m: Module, alu: Alu, lane: int, x: Value, y: Value) -> tuple[Value, ...]:
        """Results a cycle behind combine, zero where the operation is another one; ``x`` and ``y``
        are combine's operands. ``control`` has had the sum dropped (``alu.drops_total``)."""
        return ()


class Alu(Component):
    """``x`` and ``y`` are registers of the operands, ``op``, ``use_imm``, ``weight``, ``imm`` and
    ``group`` come with them. ``zero``, ``low``, ``high`` and what ``late_…`` says of an operation
    belong to the micro-op that came DEPTH - 1 cycles before, if ``late_valid``, ``late_x``,
    ``sums``, ``carry`` to the one before it and ``result`` to the next before. ``late_x`` is the
    accumulator, or zero where the operation doesn't use it late; ``sums`` are zero where it isn't
    GEMM's. In a pipeline without ``gemm`` there are no ``sums``, ``carry`` and ``late_gemm``.
    """

    def __init__(self, config: Config, *, gemm: bool = True) -> None:
        self.config, self.gemm = config, gemm
        self.hooks = hooks_of(AluHooks, config)
        self.scales = tuple(op for op in operations(config) if op.imm == "scale")
        self.unlimited = tuple(op for hook in self.hooks for op in hook.unlimited)
        super().__init__(_ports(config, gemm=gemm) | ports_of(self.hooks))

    def elaborate(self, platform: object) -> Module:
        """Logic of all lanes; then per lane the multipliers and the result."""
        m = Module()
        self._control(m)
        waiting = delayed(m, self.y.as_value(), SHOWN, "y")
        ys = data.View(self.y.shape(), delayed(m, waiting, DEPTH - 1 - SHOWN, "y_later"))
        for hook in self.hooks:
            hook.look(m, self, waiting)
        scaled = self._multipliers(m).lanes
        for lane in range(self.config.block_out):
            y = Signal(signed(32), name=f"late_y_{lane}", reset_less=True)
            late_y = ys[lane]
            for hook in self.hooks:
                late_y = hook.in_place_of_y(self, lane, late_y)
            m.d.sync += y.eq(Mux(self.drops_y, 0, late_y))
            m.d.comb += self.result[lane].eq(self._combine(m, lane, y, scaled[lane]))
        return m

    def _multipliers(self, m: Module) -> Multipliers:
        """The multipliers, connected."""
        operands = Operands(
            x=self.x,
            y=self.y,
            group=self.group,
            op=self.op,
            use_imm=self.use_imm,
            imm=self.imm,
            factor=self.factor.as_value(),
            scalar=self.scalar,
        )
        results = Results(
            op=self.late_op,
            valid=self.late_valid,
            drops_product=self.drops_product,
            zero=self.zero,
            low=self.low_now,
            high=self.high_now,
            scales=self.scales,
            wide=bool(self.unlimited),
        )
        return Multipliers(m, self.config, operands, results)

    def _control(self, m: Module) -> None:
        """Control of all lanes; what the combine stage chooses by comes from registers."""
        op, late = self.op, self.late_op
        late_gemm = self.late_gemm if self.gemm else Const(0)
        self.idle = idle = self.late_first | late_gemm  # no operation is to be computed
        self.factor = Signal(Factor)
        self.scalar = Signal(signed(FACTOR_BITS[1]))  # the same for each lane
        # What combine doesn't get, of a product, the immediate, and y.
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
        multiplied = is_operation(late, AluOp.SHR, AluOp.MUL, AluOp.WADD, *self.unlimited)
        m.d.comb += [
            self.scalar.eq(Mux(is_operation(op, AluOp.WADD), self.weight, self.imm)),
            self.drops_product.eq(idle | ~multiplied),
            drops_immediate.eq(
                ~self.drops_product | late_gemm | ~self.late_use_imm | self._takes_y(late)
            ),
            self.drops_y.eq(self._drops_y(~self.drops_product | late_gemm | ~drops_immediate)),
        ]
        with m.If(is_operation(op, AluOp.SHR)):
            m.d.comb += self.factor.eq(Factor.POWER)
        with m.Elif(self.use_imm | is_operation(op, AluOp.WADD)):
            m.d.comb += self.factor.eq(Factor.SCALAR)
        compares = ~idle & is_operation(late, AluOp.MIN, AluOp.MAX)
        self.limits = limits = ~idle & is_operation(late, AluOp.RQ)
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
        for hook in self.hooks:
            hook.control(m, self)

    def _takes_y(self, op: Value) -> Value:
        """Whether an operation's y is never the immediate."""
        return is_operation(op, *(each for each in operations(self.config) if each.y_from_acc))

    def _drops_y(self, drops: Value) -> Value:
        """Whether combine gets no y: where it ``drops`` it, and where an option says so."""
        for hook in self.hooks:
            for condition in hook.drops_y(self):
                drops = drops | condition
        return drops

    def _combine(self, m: Module, lane: int, y: Value, scaled: Scaled) -> Value:
        """One lane's result: all that it could be comes out of registers."""
        x, subtracts = self.late_x[lane], self.compares
        second = y | self.immediate | scaled.product
        addend = Signal(signed(32), name=f"addend_{lane}")
        total = Signal(signed(33), name=f"total_{lane}")
        takes_x = Signal(name=f"takes_x_{lane}")
        carry: Value = subtracts
        if self.gemm:
            second = self.sums[lane] | second
            carry |= self.accumulates & self.carry[lane]
        for hook in self.hooks:
            for one in hook.carries(self, scaled):
                carry |= one
        operands = x, second
        m.d.comb += [
            addend.eq(second ^ subtracts.replicate(32)),
            total.eq(add(x, addend, carry)),
            takes_x.eq(subtracts & (total[32] ^ self.greater)),
        ]
        drops_total, limited = self.drops_total, scaled.limited
        for hook in self.hooks:
            drops_total, limited = hook.limit(self, scaled, total, drops_total, limited)
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
        for hook in self.hooks:
            limited = hook.widened(limited)
        result = Mux(takes_x, x, y | self.compared) | total | limited
        for hook in self.hooks:
            for other in hook.results(m, self, lane, *operands):
                result |= other
        return result


def _ports(config: Config, *, gemm: bool) -> dict[str, object]:
    """An ALU's ports; ``gemm``: it is in a pipeline with GEMM."""
    vector, op = lanes(32, config.block_out), operation_shape(config)
    return {
        "x": In(vector),
        "y": In(vector),
        "group": In(range(max(alu_groups(config), 2))),
        "op": In(op),
        "use_imm": In(1),
        "imm": In(signed(32)),
        "weight": In(signed(WEIGHT_BITS)),
        "late_op": In(op),
        "late_use_imm": In(1),
        "late_imm": In(signed(32)),
        "late_first": In(1),
        "late_valid": In(1),
        **({"late_gemm": In(1)} if gemm else {}),
        **{name: In(signed(LIMIT_BITS)) for name in ("zero", "low", "high")},
        "late_x": In(vector),
        **({"sums": In(vector), "carry": In(config.block_out)} if gemm else {}),
        "result": Out(vector),
    }
