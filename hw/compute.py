"""COMPUTE: GEMM and ALU micro-ops, one a cycle, in order, across instruction boundaries.

    issue → F1 → READ → 1 → 2 → 3 → 4 → 5 → 6 → 7
                  |     |               |   |   write, finish
      early operands    their data      |   combine
                                        late read of ACC

1. An instruction starts when the loop nest is free or issues its last micro-op. Issue reads the
   micro-op, F1 adds its indices to the loops', READ shows addresses to the scratchpads.
2. READ, and all before it, holds while an early operand (y; x of SHR, MUL, WADD, RQ) is the dst of
   a micro-op in stages 1 to 7, while its x would meet stage 5's late read at ACC's first port, or
   while STORE takes the second one from its y. Which stages write its operands is found in F1.
3. The accumulator, or the bias in its place, is read late, and taken from stages 7 and 8 if these
   have just computed it. Stages 1 to 7 never hold.
4. A write is left out when the next cycle's micro-op accumulates into the same entry.
5. An instruction without micro-ops passes as a bubble, which reads and writes nothing.
6. A micro-op that goes beyond a buffer is a fault as soon as it stands in READ.
7. Loop indices only grow and never wrap: their top bit says that they have left their buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.alu import WEIGHED, Alu
from vdla.hw.gemm import Gemm
from vdla.hw.interfaces import Cause, Fault, activity, command, fault, read_port, write_port
from vdla.hw.layout import add_selected, layout, valid_register
from vdla.hw.loops import Loop, Nest, inner_ends
from vdla.hw.requantize import choose
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import AluOp, Init
from vdla.isa.registers import INDEX_BITS

LATE_READ = 5  # stage of the accumulator's read
COMBINE = 6
WRITE = 7
EARLY = (AluOp.SHR, AluOp.MUL, AluOp.WADD, AluOp.RQ)  # they read x early
STREAMS = ("dst", "src", "wgt", "bias")  # the index streams of a loop nest


class Accumulator(enum.Enum, shape=2):
    """Where the late x comes from: what the last two cycles computed isn't in the scratchpad."""

    SCRATCHPAD = 0
    BEFORE = 1
    LATEST = 2
    NONE = 3  # zero


class Compute(Component):
    """The engine, its loop nest and its pipeline."""

    def __init__(self, config: Config) -> None:
        self.config = config
        acc = config.depth("acc"), 8 * config.acc_entry
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "fault": Out(fault()),
                "uop": Out(read_port(config.depth("uop"), 8 * config.entry("uop"))),
                "inp": Out(read_port(config.depth("inp"), 8 * config.inp_entry)),
                "wgt": Out(read_port(config.depth("wgt"), 8 * config.wgt_entry)),
                "acc_x": Out(read_port(*acc)),
                "acc_y": Out(read_port(*acc)),
                "acc_write": Out(write_port(*acc)),
                "acc_taken": Out(1),
                "acc_y_taken": In(1),
            }
        )
        self.index_bits = {
            "dst": config.index_bits("acc"),
            "src": max(config.index_bits("inp"), config.index_bits("acc")),
            "wgt": config.index_bits("wgt"),
            "bias": config.index_bits("acc"),
        }
        self.operation = data.StructLayout(
            {
                "is_alu": 1,
                "init": isa.Gemm.init.width(config),
                "alu_init": 1,
                "op": AluOp,
                "use_imm": 1,
                **{
                    name: layout(isa.Alu, config)[name].shape
                    for name in ("imm", "weight", "zero", "low", "high")
                },
                "push_prev": 1,
                "push_next": 1,
                "index": INDEX_BITS,
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The loop nest, the stages behind it, the hazards between them, operands and results."""
        m = Module()
        hold = Signal()
        f1 = self._nest(m, hold)
        read, at = self._f1(m, hold, f1)
        stages = self._stages(m, hold, read)
        self._unwritten(m, hold, read, at, stages)
        self._operands(m, hold, read, stages)
        self._combine(m, stages)
        self._observe(m, hold, f1, read, stages)
        return m

    # Front end ---------------------------------------------------------------------------------

    def _nest(self, m: Module, hold: Value) -> data.View:
        """The loop nest; returns F1, the micro-op issued in the last cycle."""
        config, port = self.config, self.command
        word = data.View(layout(isa.Gemm, config), port.word[: isa.Gemm.bits(config)])
        # An ALU's loop fields lie where GEMM's do.
        now = Signal(layout(isa.Gemm, config), reset_less=True)
        operation = Signal(self.operation, reset_less=True)
        self.nest_active = active = Signal()
        null, advance, last = (Signal(name=n) for n in ("null", "advance", "last"))
        at = Signal(len(now.uop_begin) + 1, reset_less=True)  # micro-op address
        uops = Loop(m, "uops", now.uop_count)
        # What comes next is the next instruction's, or no longer needed; and it comes now.
        begins, moves = ~active | last, ~active | advance
        uops.go(moves, begins, word.uop_count)
        offsets, loops = self._loops(m, word, now, moves, begins, uops.end)
        m.d.comb += [
            advance.eq(active & ~hold),
            last.eq(null | Cat(loop.end for loop in (uops, *loops)).all()),
            port.start.eq(port.ready & begins & moves),
            self.uop.enable.eq(advance),
            self.uop.address.eq(at >> (config.uops_per_word - 1).bit_length()),
        ]
        extents = [word[f"extent_{i}"] for i in range(3)]
        empty = Cat(n == 0 for n in (word.uop_count, *extents)).any()
        with m.If(begins):
            m.d.sync += now.eq(word)
        with m.If(moves):
            first = Mux(begins, word.uop_begin, now.uop_begin)
            m.d.sync += at.eq(Mux(begins | uops.end, first, at + 1))
        with m.If(begins & moves):
            m.d.sync += [active.eq(port.ready), null.eq(empty), operation.eq(self._decode(m))]

        f1 = valid_register(self._issued(), 1, "f1")
        with m.If(~hold):
            m.d.sync += [
                f1.valid.eq(active),
                f1.null.eq(null),
                f1.last.eq(last),
                f1.beyond.eq(at >= config.uop_depth),
                f1.select.eq(at),
                f1.operation.eq(operation),
            ]
            m.d.sync += [f1[name].eq(offsets[name]) for name in STREAMS]
        return f1

    def _loops(
        self,
        m: Module,
        word: data.View,
        now: data.View,
        moves: Value,
        begins: Value,
        next_iteration: Value,
    ) -> tuple[dict[str, Signal], Sequence[Loop]]:
        """The loops, outermost first, and per stream what they add up to.

        ``sums[stream][i]`` is the index with loops i+1 .. 2 at their first iteration.
        """
        loops = [Loop(m, f"loop_{i}", now[f"extent_{i}"]) for i in range(3)]
        sums = {
            name: [Signal(bits + 1, name=f"{name}_sum_{i}", reset_less=True) for i in range(3)]
            for name, bits in self.index_bits.items()
        }
        inner = [next_iteration & ends for ends in reversed(inner_ends(loops[::-1]))]
        for i, (loop, ends) in enumerate(zip(loops, inner, strict=True)):
            loop.go(moves, begins, word[f"extent_{i}"], ends)
        steps = [ends & ~loop.end for ends, loop in zip(inner, loops, strict=True)]  # one, or none
        for name in STREAMS:
            pitches = [now[f"{name}_{i}"] for i in range(3)]
            following = Nest(loops[::-1], sums[name][::-1], pitches[::-1]).following()
            for i, total in enumerate(sums[name]):
                with m.If(moves & (begins | Cat(steps[: i + 1]).any())):
                    m.d.sync += total.eq(Mux(begins, word[f"{name}_base"], following))
        return {name: sums[name][2] for name in STREAMS}, loops

    def _decode(self, m: Module) -> data.View:
        """What the stages need of the instruction at the queue's head."""
        word, config = self.command.word, self.config
        gemm = data.View(layout(isa.Gemm, config), word[: isa.Gemm.bits(config)])
        alu = data.View(layout(isa.Alu, config), word[: isa.Alu.bits(config)])
        decoded = Signal(self.operation, name="decoded")
        m.d.comb += [
            decoded.is_alu.eq(gemm.op == isa.Alu.opcode),
            decoded.init.eq(gemm.init),
            decoded.alu_init.eq(alu.init),
            decoded.op.eq(alu.alu_op),
            decoded.use_imm.eq(alu.use_imm),
            decoded.push_prev.eq(gemm.push_prev),
            decoded.push_next.eq(gemm.push_next),
            decoded.index.eq(self.command.index),
        ]
        for name in ("imm", "weight", "zero", "low", "high"):
            m.d.comb += decoded[name].eq(alu[name])
        return decoded

    def _issued(self) -> data.StructLayout:
        """A micro-op in F1, if ``valid``: its loops' sums. The scratchpad gives its own fields."""
        sums = {name: bits + 1 for name, bits in self.index_bits.items()}
        select = max((self.config.uops_per_word - 1).bit_length(), 1)
        marks = {"valid": 1, "null": 1, "last": 1, "beyond": 1, "select": select}
        return data.StructLayout({**marks, **sums, "operation": self.operation})

    def _arrived(self) -> data.StructLayout:
        """A micro-op in READ, if ``valid``: what it reads and writes."""
        marks = ("valid", "null", "last", "beyond", "first")
        reads = ("reads_y", "early", "late", "accumulates")
        return data.StructLayout(
            {
                **dict.fromkeys((*marks, *reads), 1),
                **self.index_bits,
                # Bit n is for what was in stage n + 1 when it came to READ: whether that writes its
                # operand, and whether it is still to write.
                "src_unwritten": WRITE,
                "dst_unwritten": WRITE,
                "unwritten": WRITE,
                "operation": self.operation,
            }
        )

    def _f1(self, m: Module, hold: Value, f1: data.View) -> tuple[data.View, dict[str, Value]]:
        """Adds a micro-op's indices to its loops'; returns READ, and dst and src a cycle ahead."""
        config = self.config
        bits = 8 * config.uop_entry
        words = [self.uop.data.word_select(i, bits) for i in range(config.uops_per_word)]
        packed = Array(words)[f1.select] if len(words) > 1 else words[0]
        uop = data.View(layout(isa.Uop, config), packed[: isa.Uop.bits(config)])
        at = {name: Signal(bits + 2, name=f"{name}_at") for name, bits in self.index_bits.items()}
        for name in ("dst", "src", "wgt"):
            m.d.comb += at[name].eq(add_selected(f1[name], uop[name]))
        m.d.comb += at["bias"].eq(f1.bias)
        op = f1.operation
        first, multiplies = Signal(name="first"), Signal(name="multiplies")
        starts_zero, biased, reads_y = (Signal(name=n) for n in ("starts", "biased", "reads_y"))
        m.d.comb += [
            multiplies.eq(op.op.matches(*EARLY)),
            first.eq(uop.first & Mux(op.is_alu, op.alu_init, op.init != Init.ACC)),
            starts_zero.eq(first & ~op.is_alu & (op.init == Init.ZERO)),
            biased.eq(first & ~op.is_alu & (op.init == Init.BIAS)),
            reads_y.eq(op.is_alu & (~op.use_imm | (op.op == AluOp.WADD))),
        ]
        beyond = f1.beyond | (at["dst"] >= config.depth("acc"))
        of_alu = reads_y & (at["src"] >= config.depth("acc"))
        of_gemm = (at["src"] >= config.depth("inp")) | (at["wgt"] >= config.depth("wgt"))
        of_gemm |= biased & (at["bias"] >= config.depth("acc"))
        read = valid_register(self._arrived(), 1, "read")
        with m.If(~hold):
            m.d.sync += [
                read.valid.eq(f1.valid),
                read.null.eq(f1.null),
                read.last.eq(f1.last),
                read.beyond.eq(~f1.null & (beyond | Mux(op.is_alu, of_alu, of_gemm))),
                read.reads_y.eq(~f1.null & reads_y),
                read.early.eq(~f1.null & op.is_alu & multiplies & ~first),
                read.accumulates.eq(~f1.null & ~first & ~(op.is_alu & multiplies)),
                read.late.eq(~f1.null & ~(op.is_alu & (multiplies | first)) & ~starts_zero),
                read.first.eq(first),
                read.operation.eq(op),
            ]
            m.d.sync += [read[name].eq(at[name]) for name in ("dst", "src", "wgt")]
            # The late read takes the bias in the accumulator's place.
            m.d.sync += read.bias.eq(Mux(biased, at["bias"], at["dst"]))
        return read, {name: at[name][: len(read[name])] for name in ("dst", "src")}

    # Back end ----------------------------------------------------------------------------------

    def _stages(self, m: Module, hold: Value, read: data.View) -> list[data.View]:
        """Stages 1 to WRITE; ``stages[0]`` is READ as it passes."""
        passing = Signal(self._passed(), name="passing")
        m.d.comb += [
            passing[name].eq(read[name]) for name in ("last", "dst", "late", "first", "operation")
        ]
        m.d.comb += [
            passing.valid.eq(read.valid & ~hold),
            passing.writes.eq(read.valid & ~hold & ~read.null),
            passing.late_at.eq(read.bias),
        ]
        stages = [passing]
        for number in range(1, WRITE + 1):
            stage = valid_register(self._passed(), 2, f"stage_{number}")
            m.d.sync += stage.eq(stages[-1])
            stages.append(stage)
        # A chain on one accumulator writes once: the write before an accumulation is left out.
        meets = read.dst_unwritten[0] & read.unwritten[-1]  # it came a cycle after stage 1
        again = read.valid & ~hold & read.accumulates & meets
        m.d.sync += stages[2].skipped.eq(again)
        return stages

    def _unwritten(
        self,
        m: Module,
        hold: Value,
        read: data.View,
        at: dict[str, Value],
        stages: list[data.View],
    ) -> None:
        """Which stages write what READ reads: found while it is in F1 and they a stage earlier."""
        ahead = [(read.valid & ~read.null, read.dst), *((s.writes, s.dst) for s in stages[1:WRITE])]
        m.d.sync += read.unwritten.eq(Mux(hold, read.unwritten >> 1, (1 << WRITE) - 1))
        with m.If(~hold):
            for name, index in at.items():
                meets = Cat(writes & (dst == index) for writes, dst in ahead)
                m.d.sync += read[f"{name}_unwritten"].eq(meets)

    def _passed(self) -> data.StructLayout:
        """A micro-op in the back end. ``writes``: it has a result; ``skipped``: not written."""
        return data.StructLayout(
            {
                "valid": 1,
                "writes": 1,
                "skipped": 1,
                "last": 1,
                "late": 1,
                "first": 1,
                "dst": self.index_bits["dst"],
                "late_at": self.index_bits["dst"],
                "operation": self.operation,
            }
        )

    def _operands(self, m: Module, hold: Value, read: data.View, stages: list[data.View]) -> None:
        """Addresses to the scratchpads, and whether READ has to wait with them."""
        late, before = stages[LATE_READ], stages[LATE_READ - 1]
        meets_late = Signal()
        m.d.sync += meets_late.eq(before.writes & before.late)
        y_waits = (read.src_unwritten & read.unwritten).any() | self.acc_y_taken
        x_waits = (read.dst_unwritten & read.unwritten).any() | meets_late
        is_gemm = read.valid & ~read.null & ~read.operation.is_alu
        m.d.comb += [
            hold.eq(read.valid & ((read.reads_y & y_waits) | (read.early & x_waits))),
            self.inp.enable.eq(is_gemm),
            self.inp.address.eq(read.src),
            self.wgt.enable.eq(is_gemm),
            self.wgt.address.eq(read.wgt),
            self.acc_y.enable.eq(read.valid & read.reads_y),
            self.acc_y.address.eq(read.src),
            self.acc_x.enable.eq(meets_late | (read.valid & read.early)),
            self.acc_x.address.eq(Mux(meets_late, late.late_at, read.dst)),
        ]

    def _combine(self, m: Module, stages: list[data.View]) -> None:
        """The late accumulator meets the sums; the result is written a cycle later."""
        config = self.config
        early, late, now, write = (stages[n] for n in (1, COMBINE - 1, COMBINE, WRITE))
        weighed = stages[1 + WEIGHED]
        m.submodules.gemm = gemm = Gemm(config)
        m.submodules.alu = alu = Alu(config)
        latest = alu.result.as_value()
        before = Signal(8 * config.acc_entry, reset_less=True)
        # Which accumulator a micro-op takes is known, and kept, a cycle before it comes.
        source = Signal(Accumulator, reset_less=True)
        m.d.sync += [before.eq(latest), source.eq(Accumulator.SCRATCHPAD)]
        with m.If(~late.late):
            m.d.sync += source.eq(Accumulator.NONE)
        with m.Elif(now.writes & (now.dst == late.late_at)):
            m.d.sync += source.eq(Accumulator.LATEST)
        with m.Elif(write.writes & (write.dst == late.late_at)):
            m.d.sync += source.eq(Accumulator.BEFORE)
        accumulators = [self.acc_x.data, before, latest, Const(0)]
        m.d.comb += [
            gemm.inp.eq(self.inp.data),
            gemm.wgt.eq(self.wgt.data),
            gemm.clear.eq(late.operation.is_alu),
            alu.x.eq(self.acc_x.data),
            alu.y.eq(self.acc_y.data),
            *(getattr(alu, n).eq(early.operation[n]) for n in ("op", "use_imm", "imm", "weight")),
            *(getattr(alu, f"late_{n}").eq(late.operation[n]) for n in ("op", "use_imm", "imm")),
            alu.unweighed.eq(weighed.first | (weighed.operation.op != AluOp.WADD)),
            alu.y_weight.eq(weighed.operation.imm),
            alu.late_first.eq(late.first),
            alu.late_gemm.eq(~late.operation.is_alu),
            *(getattr(alu, n).eq(late.operation[n]) for n in ("zero", "low", "high")),
            alu.late_x.eq(choose(source.as_value(), accumulators)),
            alu.sums.eq(gemm.sums),
            alu.carry.eq(gemm.carry),
        ]
        enable = Signal()  # the same as ``acc_taken``, but with so many sinks that it is late
        m.d.sync += enable.eq(now.writes & ~now.skipped)
        m.d.comb += [
            self.acc_taken.eq(write.writes & ~write.skipped),
            self.acc_write.enable.eq(enable),
            self.acc_write.address.eq(write.dst),
            self.acc_write.data.eq(latest),
            self.command.finish.eq(write.valid & write.last),
            self.command.push_prev.eq(write.operation.push_prev),
            self.command.push_next.eq(write.operation.push_next),
        ]

    # What the core sees ------------------------------------------------------------------------

    def _observe(
        self,
        m: Module,
        hold: Value,
        f1: data.View,
        read: data.View,
        stages: list[data.View],
    ) -> None:
        ahead = Cat(s.valid & s.last for s in stages[1:WRITE]).any()
        under_way = self.nest_active | f1.valid | ahead
        m.d.comb += [
            # Where nothing is under way, what is ready starts.
            self.activity.idle.eq(~read.valid & ~under_way & ~self.command.ready),
            self.activity.cause.eq(Mux(hold, Cause.BANK, Mux(read.valid, Cause.BUSY, Cause.DRAIN))),
            self.fault.valid.eq(read.valid & read.beyond),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(read.operation.index),
        ]
