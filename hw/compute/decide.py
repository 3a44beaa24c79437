"""COMPUTE's F1: adds a micro-op's indices to its loops', and decides what it reads, and when.

1. An early operand is y, or x of SHR, MUL, WADD, RQ: it is read in READ. TABLE has no x.
2. A late one is the accumulator, or the bias in its place: it is read in stage 5. A micro-op of
   the ALU that starts a reduction (``first``) has none, nor has a GEMM that starts from zero.
3. A micro-op that goes beyond a buffer is marked ``beyond``. Indices only grow and never wrap.
4. What is decided fills the register ``read``, unless READ holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Array, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.compute.micro_op import MicroOps
from vdla.hw.layout import add_selected, layout, valid_register
from vdla.isa import instructions as isa
from vdla.isa.instructions import TABLE_BITS, AluOp, Init

EARLY = (AluOp.SHR, AluOp.MUL, AluOp.WADD, AluOp.RQ)  # they read x early


@dataclass(frozen=True)
class DecidePorts:
    """What F1 gets."""

    f1: data.View  # the micro-op in F1
    uop: Value  # the word of UOP that it lies in
    hold: Value  # READ holds


class Decide:
    """``read`` is the micro-op in READ, ``following`` dst and src of the one that comes next."""

    def __init__(self, m: Module, micro_ops: MicroOps, ports: DecidePorts) -> None:
        self.m, self.config, self.ports = m, micro_ops.config, ports
        bits = micro_ops.index_bits
        self.at = {name: Signal(n + 2, name=f"{name}_at") for name, n in bits.items()}
        self.read = valid_register(micro_ops.arrived(), 1, "read")
        self.following = {name: self.at[name][: bits[name]] for name in ("dst", "src")}
        self.first, self.multiplies = Signal(name="first"), Signal(name="multiplies")
        self.starts_zero, self.biased, self.reads_y = (
            Signal(name=n) for n in ("starts", "biased", "reads_y")
        )
        uop = self._uop()
        self._add(uop)
        self._decide(uop)
        self._pass_on()

    def _uop(self) -> data.View:
        """The micro-op's own fields, one of several in a word."""
        config, ports = self.config, self.ports
        bits = 8 * config.uop_entry
        words = [ports.uop.word_select(i, bits) for i in range(config.uops_per_word)]
        packed = Array(words)[ports.f1.select] if len(words) > 1 else words[0]
        return data.View(layout(isa.Uop, config), packed[: isa.Uop.bits(config)])

    def _add(self, uop: data.View) -> None:
        m, at, f1 = self.m, self.at, self.ports.f1
        for name in ("dst", "src", "wgt"):
            m.d.comb += at[name].eq(add_selected(f1[name], uop[name]))
        m.d.comb += at["bias"].eq(f1.bias)

    def _decide(self, uop: data.View) -> None:
        op = self.ports.f1.operation
        starts = Mux(op.is_alu, op.alu_init, op.init != Init.ACC)
        self.m.d.comb += [
            self.multiplies.eq(op.op.matches(*EARLY)),
            self.first.eq(uop.first & starts),
            self.starts_zero.eq(self.first & ~op.is_alu & (op.init == Init.ZERO)),
            self.biased.eq(self.first & ~op.is_alu & (op.init == Init.BIAS)),
            self.reads_y.eq(op.is_alu & (~op.use_imm | self._always_reads_y())),
        ]

    def _always_reads_y(self) -> Value:
        op = self.ports.f1.operation.op
        return (op == AluOp.WADD) | self._looks_up() if self.config.tables else op == AluOp.WADD

    def _looks_up(self) -> Value:
        """Whether the operation is TABLE; only asked where there is one."""
        return self.ports.f1.operation.op == AluOp.TABLE

    def _beyond(self) -> Value:
        """Whether the micro-op, or what it reads or writes, lies beyond its buffer."""
        config, at, f1 = self.config, self.at, self.ports.f1
        acc = config.depth("acc")
        of_alu = self.reads_y & (at["src"] >= acc)
        if config.tables:
            number = f1.operation.imm[:TABLE_BITS].as_unsigned()
            of_alu |= self._looks_up() & ~self.first & (number >= config.tables)
        of_gemm = (at["src"] >= config.depth("inp")) | (at["wgt"] >= config.depth("wgt"))
        of_gemm |= self.biased & (at["bias"] >= acc)
        of_any = f1.beyond | (at["dst"] >= acc)
        return ~f1.null & (of_any | Mux(f1.operation.is_alu, of_alu, of_gemm))

    def _pass_on(self) -> None:
        m, read, f1, at = self.m, self.read, self.ports.f1, self.at
        op, first, multiplies = f1.operation, self.first, self.multiplies
        not_late = multiplies | self._looks_up() if self.config.tables else multiplies
        with m.If(~self.ports.hold):
            m.d.sync += [
                read.valid.eq(f1.valid),
                read.null.eq(f1.null),
                read.last.eq(f1.last),
                read.beyond.eq(self._beyond()),
                read.reads_y.eq(~f1.null & self.reads_y),
                read.early.eq(~f1.null & op.is_alu & multiplies & ~first),
                read.accumulates.eq(~f1.null & ~first & ~(op.is_alu & not_late)),
                read.late.eq(~f1.null & ~(op.is_alu & (not_late | first)) & ~self.starts_zero),
                read.first.eq(first),
                read.operation.eq(op),
                *(read[name].eq(at[name]) for name in ("dst", "src", "wgt")),
                # The late read takes the bias in the accumulator's place.
                read.bias.eq(Mux(self.biased, at["bias"], at["dst"])),
            ]
