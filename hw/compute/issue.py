"""The front: issues the micro-ops of one instruction after the other, one a cycle.

1. An instruction starts when the loop nest is free or issues its last micro-op.
2. Micro-ops go in the order of their addresses, in each iteration of the loops (``indices.py``).
3. Issue shows the micro-op's address to UOP. In the next cycle, in F1, the scratchpad shows the
   micro-op, and the register ``f1`` what its loops have added up to.
4. An instruction without micro-ops issues one that is ``null``.
5. Nothing moves on while READ holds.
6. In front of a hold, ``now`` is the next instruction already. What is needed on the way to F1 is
   kept beside it, as ``operation`` is, and what options ``take``.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.compute.indices import Advance, Indices
from vdla.hw.compute.micro_op import ALU_FIELDS, MicroOps
from vdla.hw.interfaces import Port, pushes
from vdla.hw.layout import layout, valid_register
from vdla.hw.loops import Loop
from vdla.isa import instructions as isa


@dataclass(frozen=True)
class IssuePorts:
    """Ports that issue is connected to. It drives ``command.start`` and ``uop``."""

    command: Port  # interfaces.command
    uop: Port  # interfaces.read_port
    hold: Value  # READ holds


class Issue:
    """``f1`` is the micro-op issued in the last cycle, ``active``: the loop nest is at work."""

    def __init__(self, m: Module, micro_ops: MicroOps, ports: IssuePorts) -> None:
        self.m, self.config, self.ports = m, micro_ops.config, ports
        self.micro_ops = micro_ops
        kind = isa.Gemm if micro_ops.gemm else isa.Alu  # their loop fields lie in the same places
        fields = layout(kind, self.config)
        self.word = data.View(fields, ports.command.word[: kind.bits(self.config)])
        self.now = Signal(fields, reset_less=True)  # the instruction in the nest
        self.operation = Signal(micro_ops.operation, reset_less=True)
        self.active = Signal(name="nest_active")
        self.null, self.advance, self.last = (Signal(name=n) for n in ("null", "advance", "last"))
        self.at = Signal(len(self.now.uop_begin) + 1, reset_less=True)  # micro-op address
        self.uops = Loop(m, "uops", self.now.uop_count)
        self.indices = Indices(m, micro_ops.index_bits, self.now)
        # What comes next is the next instruction's, or no longer needed; and it comes now.
        self.begins, self.moves = ~self.active | self.last, ~self.active | self.advance
        self._issue()
        self._take()
        self.f1 = valid_register(micro_ops.issued(), 1, "f1")
        self._pass_on()

    def _issue(self) -> None:
        m, uops, command, uop = self.m, self.uops, self.ports.command, self.ports.uop
        uops.go(self.moves, self.begins, self.word.uop_count)
        self.indices.go_on(Advance(self.moves, self.begins, uops.end), self.word)
        ends = Cat(loop.end for loop in (uops, *self.indices.loops)).all()
        m.d.comb += [
            self.advance.eq(self.active & ~self.ports.hold),
            self.last.eq(self.null | ends),
            command.start.eq(command.ready & self.begins & self.moves),
            uop.enable.eq(self.advance),
            uop.address.eq(self.at >> (self.config.uops_per_word - 1).bit_length()),
        ]

    def _take(self) -> None:
        """Takes over the next micro-op's address, and the next instruction if it begins."""
        m, word = self.m, self.word
        begins, moves = self.begins, self.moves
        extents = [word[f"extent_{i}"] for i in range(3)]
        empty = Cat(n == 0 for n in (word.uop_count, *extents)).any()
        with m.If(begins):
            m.d.sync += self.now.eq(word)
        with m.If(moves):
            first = Mux(begins, word.uop_begin, self.now.uop_begin)
            m.d.sync += self.at.eq(Mux(begins | self.uops.end, first, self.at + 1))
        with m.If(begins & moves):
            m.d.sync += [
                self.active.eq(self.ports.command.ready),
                self.null.eq(empty),
                self.operation.eq(self._decode()),
            ]
            for hook in self.micro_ops.hooks:
                hook.take(m, word)

    def _decode(self) -> data.View:
        """Fields that the stages need of the instruction at the queue's head."""
        command, config, word = self.ports.command, self.config, self.word
        kept = self.micro_ops.kept
        decoded = Signal(self.operation.shape(), name="decoded")
        fields: dict[str, Value] = {}
        if self.micro_ops.gemm and self.micro_ops.alu:
            fields["is_alu"] = word.op == isa.Alu.opcode
        if self.micro_ops.gemm:
            fields["init"] = word.init
            # Of an ALU they mean nothing.
            fields |= {name: word[name] for name in kept[isa.Gemm]}
        if self.micro_ops.alu:
            alu = data.View(layout(isa.Alu, config), command.word[: isa.Alu.bits(config)])
            fields |= {"alu_init": alu.init, "op": alu.alu_op, "use_imm": alu.use_imm}
        fields |= {flag: word[flag] for flag in pushes(config)}
        fields["index"] = command.index
        if self.micro_ops.alu:
            fields |= {name: alu[name] for name in (*ALU_FIELDS, *kept[isa.Alu])}
        self.m.d.comb += [decoded[name].eq(value) for name, value in fields.items()]
        return decoded

    def _pass_on(self) -> None:
        m, f1, sums = self.m, self.f1, self.indices.innermost
        with m.If(~self.ports.hold):
            m.d.sync += [
                f1.valid.eq(self.active),
                f1.null.eq(self.null),
                f1.last.eq(self.last),
                f1.beyond.eq(self.at >= self.config.uop_depth),
                f1.select.eq(self.at),
                f1.operation.eq(self.operation),
                *(f1[name].eq(total) for name, total in sums.items()),
            ]
            for hook in self.micro_ops.hooks:
                hook.pass_on(m, f1, sums)
