"""F1 and F2: a micro-op's own fields are added to its loops' sums; what it reads, and when.

1. An early operand is y, or x where the operation's row says so, as of SHR: it is read in READ.
   Operations that have no x at all always have a y of ACC.
2. A late one is the accumulator, or the bias in its place: it is read in stage 6. A micro-op of
   the ALU that starts a reduction (``first``) has none, nor has a GEMM that starts from zero.
3. A micro-op that goes beyond a buffer is marked ``beyond``. Indices only grow and never wrap. An
   option's further place counts where the micro-op reads it, and options have faults of their own.
4. F1 keeps the micro-op's own fields, which the scratchpad shows, and F2 decides. That fills the
   register ``arrived``: the micro-op in READ, or in LOOK where GEMM is alone. Nothing of it moves
   on while READ holds.
5. Where GEMM is alone, a micro-op that accumulates into the dst of the one a cycle before is marked
   ``chained``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amaranth import Array, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.compute.micro_op import MicroOps
from vdla.hw.layout import add_selected, is_at_least, is_operation, layout, valid_register
from vdla.isa import instructions as isa
from vdla.isa.instructions import AluOp, Init
from vdla.isa.operations import X


@dataclass(frozen=True)
class DecidePorts:
    """Inputs of F1 and F2."""

    f1: data.View  # the micro-op in F1
    uop: Value  # the word of UOP that it lies in
    hold: Value  # READ holds


class Decide:
    """``arrived`` is the micro-op behind F2, ``following`` dst and src of the one in F2, ``f2``."""

    def __init__(self, m: Module, micro_ops: MicroOps, ports: DecidePorts) -> None:
        self.m, self.config, self.ports = m, micro_ops.config, ports
        self.micro_ops, self.operations = micro_ops, isa.operations(self.config)
        bits = micro_ops.index_bits
        self.at = {name: Signal(n + 2, name=f"{name}_at") for name, n in bits.items()}
        for name, place in micro_ops.places.items():
            self.at[name] = Signal(bits[place.beside] + 3, name=f"{name}_at")
        name = "look" if micro_ops.looks else "read"
        self.arrived = valid_register(micro_ops.arrived(), 1, name)
        self.following = {name: self.at[name][: bits[name]] for name in ("dst", "src")}
        self.first, self.multiplies = Signal(name="first"), Signal(name="multiplies")
        self.starts_zero, self.biased, self.reads_y = (
            Signal(name=n) for n in ("starts", "biased", "reads_y")
        )
        self.f2 = valid_register(micro_ops.issued(), 1, "f2")
        uop = self._keep()
        self._add(uop)
        self._decide(uop)
        self._pass_on()

    def _keep(self) -> data.View:
        """Keeps the micro-op of F1, for F2; returns its own fields, one of several in a word."""
        config, ports = self.config, self.ports
        bits = 8 * config.uop_entry
        words = [ports.uop.word_select(i, bits) for i in range(config.uops_per_word)]
        packed = Array(words)[ports.f1.select] if len(words) > 1 else words[0]
        uop = Signal(layout(isa.Uop, config), name="own", reset_less=True)
        with self.m.If(~ports.hold):
            self.m.d.sync += [self.f2.eq(ports.f1), uop.eq(packed[: isa.Uop.bits(config)])]
        return uop

    def _add(self, uop: data.View) -> None:
        m, at, f2, places = self.m, self.at, self.f2, self.micro_ops.places
        for name in at:
            field = places[name].beside if name in places else name
            own = f2.bias if name == "bias" else add_selected(f2[name], uop[field])
            m.d.comb += at[name].eq(own)

    def _decide(self, uop: data.View) -> None:
        m, op, kinds = self.m, self.f2.operation, self.micro_ops
        is_alu = kinds.is_alu(op)
        if kinds.alu:
            m.d.comb += self.multiplies.eq(self._is_one_of(lambda op: op.x is X.EARLY))
        m.d.comb += self.first.eq(uop.first & self._starts())
        if kinds.gemm:
            m.d.comb += [
                self.starts_zero.eq(self.first & ~is_alu & (op.init == Init.ZERO)),
                self.biased.eq(self.first & ~is_alu & (op.init == Init.BIAS)),
            ]
        if kinds.alu:
            always = self._or_lacks_x(
                self._is_one_of(lambda op: op.y_from_acc and op.x is not X.NONE)
            )
            m.d.comb += self.reads_y.eq(is_alu & (~op.use_imm | always))

    def _starts(self) -> Value:
        """Whether the instruction lets a micro-op start a reduction."""
        op, kinds = self.f2.operation, self.micro_ops
        if not kinds.gemm:
            return op.alu_init
        of_gemm = op.init != Init.ACC
        return Mux(op.is_alu, op.alu_init, of_gemm) if kinds.alu else of_gemm

    def _is_one_of(self, wanted: Callable[[AluOp], bool]) -> Value:
        """Whether the operation is one of the wanted ones, of which the config has some."""
        return is_operation(self.f2.operation.op, *filter(wanted, self.operations))

    def _or_lacks_x(self, value: Value) -> Value:
        """Whether something holds, or the operation has no x: such a one's y is never immediate."""
        some = any(op.x is X.NONE for op in self.operations)
        return value | self._is_one_of(lambda op: op.x is X.NONE) if some else value

    def _beyond(self) -> Value:
        """Whether the micro-op, or what it reads or writes, lies beyond its buffer."""
        at, f2, kinds = self.at, self.f2, self.micro_ops
        of_any = f2.beyond | is_at_least(at["dst"], self.config.depth("acc"))
        if not kinds.gemm:
            of_kind = self._alu_beyond()
        elif not kinds.alu:
            of_kind = self._gemm_beyond()
        else:
            of_kind = Mux(f2.operation.is_alu, self._alu_beyond(), self._gemm_beyond())
        return ~f2.null & (of_any | of_kind)

    def _alu_beyond(self) -> Value:
        beyond = self.reads_y & is_at_least(self.at["src"], self.config.depth("acc"))
        for hook in self.micro_ops.hooks:
            for condition in hook.beyond(self.f2, self.first):
                beyond |= condition
        return beyond

    def _gemm_beyond(self) -> Value:
        config, at = self.config, self.at
        beyond = is_at_least(at["src"], config.depth("inp")) | is_at_least(
            at["wgt"], config.depth("wgt")
        )
        for name, place in self.micro_ops.places.items():
            outside = is_at_least(at[name], config.depth(place.memory))
            beyond |= place.when(self.f2.operation) & outside
        return beyond | (self.biased & is_at_least(at["bias"], config.depth("acc")))

    def _pass_on(self) -> None:
        m, arrived, f2, at = self.m, self.arrived, self.f2, self.at
        marks: dict[str, Value] = {
            "valid": f2.valid,
            "null": f2.null,
            "last": f2.last,
            "beyond": self._beyond(),
            **self._reads(),
            "first": self.first,
            "operation": f2.operation,
        }
        with m.If(~self.ports.hold):
            m.d.sync += [arrived[name].eq(value) for name, value in marks.items()]
            m.d.sync += [arrived[name].eq(at[name]) for name in at if name != "bias"]
            if self.micro_ops.gemm:  # the late read takes the bias in the accumulator's place
                m.d.sync += arrived.bias.eq(Mux(self.biased, at["bias"], at["dst"]))

    def _reads(self) -> dict[str, Value]:
        """Reads of ACC by the micro-op, by the time at which they come."""
        f2, first, multiplies = self.f2, self.first, self.multiplies
        if not self.micro_ops.alu:
            return {"late": ~f2.null & ~self.starts_zero, "chained": self._chained()}
        is_alu = self.micro_ops.is_alu(f2.operation)
        not_late = self._or_lacks_x(multiplies)
        late = ~f2.null & ~(is_alu & (not_late | first))
        added: dict[str, Value] = {}
        for hook in self.micro_ops.hooks:
            added |= hook.decide(f2, first)
        return {
            **added,
            "reads_y": ~f2.null & self.reads_y,
            "early": ~f2.null & is_alu & multiplies & ~first,
            "accumulates": ~f2.null & ~first & ~(is_alu & not_late),
            "late": late & ~self.starts_zero if self.micro_ops.gemm else late,
        }

    def _chained(self) -> Value:
        """Whether the micro-op in F2 accumulates into what the one in front of it writes."""
        f2, before = self.f2, self.arrived
        meets = before.valid & ~before.null & (self.following["dst"] == before.dst)
        return f2.valid & ~f2.null & ~self.first & meets
