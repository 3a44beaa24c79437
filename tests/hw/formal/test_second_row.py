"""The second row of GEMM's window at INP: docs/timing.md, sections 5.2 and 9.

1. A micro-op of a GEMM with the flag ``window`` reads INP at its second port, too, in the cycle in
   which it reads its src: as far behind that as its own instruction's pitch says. Others don't.
2. Where that lies beyond INP, READ has a fault.

Instructions, micro-ops and tokens are free; the arithmetic is cut out. Of any one instruction
number, all instructions that have it have one pitch.
"""

from __future__ import annotations

import pytest
from amaranth import Cat
from amaranth.lib import data
from planting import plant

from vdla.hw.compute import Compute
from vdla.hw.layout import layout
from vdla.hw.options import window
from vdla.isa.config import load_config
from vdla.isa.instructions import Gemm
from vdla.isa.registers import INDEX_BITS

CONFIG = load_config("tiny", ["block_in=8", "inp_bytes=40", "wgt_bytes=64", "acc_bytes=64",
                              "uop_bytes=16", "window_taps=2", "window_rows=2"])  # fmt: skip


def build(proof, state, config):
    """COMPUTE, and what is known of a pitch in each stage up to READ; whether READ reads with it.

    INP has five entries.
    """
    unit = Compute(config)
    kinds, inner = unit.micro_ops, proof.add(unit)
    gemm = inner.submodules.gemm
    proof.cut(inner, "gemm", gemm.sums, gemm.carry)
    if kinds.alu:
        proof.cut(inner, "alu", inner.submodules.alu.result)

    def stage(name, shape):
        named = (
            {"of": 2} if name == "read" else {}
        )  # the accumulator that was read has that name too
        return data.View(shape, Cat(state(inner, f"{name}_marks"), state(inner, name, **named)))

    number, pitch = proof.constant(INDEX_BITS, "number"), proof.constant(3, "number_pitch")
    word = data.View(layout(Gemm, config), unit.command.word[: Gemm.bits(config)])
    is_it = unit.command.start & (unit.command.index == number)
    proof.assume(~is_it | (word.pitch == pitch))
    operation = data.View(kinds.operation, state(inner, "operation"))
    issued = state(inner, "nest_active") & (operation.index == number)
    proof.check(state(inner, "pitch") == pitch, when=issued)
    for name in ("f1", "f2"):
        at = stage(name, kinds.issued())
        proof.check(at.second == at.src + pitch, when=at.valid & (at.operation.index == number))
    for name in ("look", "read") if kinds.looks else ("read",):
        at = stage(name, kinds.arrived())
        reads = at.valid & ~at.null & ~kinds.is_alu(at.operation) & at.operation.window
        sound = reads & ~at.beyond & (at.operation.index == number)
        proof.check((at.second == at.src + pitch) & (at.second < 5), when=sound)
    proof.check(unit.inp_second.enable == reads)
    proof.check(unit.inp.enable, when=reads)
    proof.check(unit.fault.valid == (at.valid & at.beyond))
    apart = unit.inp_second.address - unit.inp.address
    proof.check(apart == pitch, when=sound)
    return sound & (pitch > 0), unit.fault.valid & reads


@pytest.mark.parametrize("settings", [[], ["vector_engine=1"]], ids=["beside ALU", "alone"])
def test_a_micro_op_reads_with_its_own_pitch(proof, state, settings):
    sound, faulty = build(proof, state, CONFIG.override(settings))
    proof.cover(sound & proof.past(sound))
    proof.cover(faulty)
    proof.prove(depth=3, reach=14)


def test_the_pitch_at_the_queue_s_head_may_be_the_next_one_s(proof, state, monkeypatch, tmp_path):
    fault = (
        window, "SecondRowMicroOps", "take", "m.d.sync += self.pitch.eq(word.pitch)",
        "kept, self.pitch = self.pitch, word.pitch; m.d.sync += kept.eq(word.pitch)",
    )  # fmt: skip
    plant(fault, monkeypatch, tmp_path)
    build(proof, state, CONFIG)
    proof.refute(depth=18)
