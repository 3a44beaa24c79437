"""COMPUTE and VECTOR at ACC: what docs/timing.md, section 5.11, promises of their ports.

1. Their writes never meet.
2. They never read at the first port at once: VECTOR's late read meets none of GEMM's, nor does an
   early read that counts. That is the one in the last cycle in which READ waits for nothing that
   concerns it: with it the micro-op passes, or stays for its groups of lanes (section 5.13).
3. ``acc_taken`` says of every write that it takes place.

Instructions, micro-ops and tokens are free; the arithmetic of both is cut out.
"""

from __future__ import annotations

import pytest
from amaranth import Cat, Const
from amaranth.lib import data
from planting import plant

from vdla.hw.compute import Compute
from vdla.hw.compute.micro_op import WRITE
from vdla.hw.options import lanes
from vdla.isa.config import load_config
from vdla.isa.options.lanes import alu_groups
from vdla.isa.ring import Engine

CONFIG = load_config("tiny", ["vector_engine=1", "acc_bytes=64", "inp_bytes=8", "wgt_bytes=32",
                              "uop_bytes=16"])  # fmt: skip
CLAIMS = ("reads", "will_read", "will_write")


def build(proof, state, heard, config=CONFIG):
    """Both engines; VECTOR hears of some of what GEMM claims."""
    compute, vector = Compute(config, Engine.COMPUTE), Compute(config, Engine.VECTOR)
    inner = proof.add(compute)
    gemm = inner.submodules.gemm
    proof.cut(inner, "gemm", gemm.sums, gemm.carry)
    inner = proof.add(vector, *(getattr(vector.gemm, name) for name in CLAIMS))
    proof.cut(inner, "alu", inner.submodules.alu.result)
    for name in CLAIMS:
        claim = getattr(compute.claims, name) if name in heard else 0
        proof.m.d.comb += getattr(vector.gemm, name).eq(claim)
    late, hold, waits = (state(inner, name) for name in ("meets_late", "hold", "read_waits"))
    begun = state(inner, "begun") if alu_groups(config) > 1 else Const(0)
    counts = vector.acc_x.enable & ~late & ~begun & ~waits
    if alu_groups(config) > 1:
        register = Cat(state(inner, "read_marks"), state(inner, "read", of=2))
        read = data.View(vector.micro_ops.arrived(), register)
        proof.check(read.in_groups == read.early, when=read.valid)
        proof.check(read.valid & read.in_groups & proof.past(counts | begun), when=begun)
    proof.check(waits == hold, when=alu_groups(config) == 1)
    proof.check(~(compute.acc_write.enable & vector.acc_write.enable))
    proof.check(~(compute.acc_x.enable & late))
    proof.check(~(compute.acc_x.enable & counts))
    return compute, vector, late, counts & hold


@pytest.mark.parametrize("groups", [1, 2])
def test_they_never_meet(proof, state, groups):
    config = CONFIG.override([f"alu_groups={groups}"])
    compute, vector, late, stays = build(proof, state, CLAIMS, config)
    for unit in (compute, vector):
        proof.check(unit.acc_taken == unit.acc_write.enable)
    writes = compute.acc_write.enable
    proof.cover(writes & proof.past(vector.acc_write.enable))
    proof.cover(vector.acc_write.enable & proof.past(writes))
    proof.cover(compute.acc_x.enable & proof.past(late))
    if groups > 1:
        proof.cover(compute.acc_x.enable & proof.past(stays))
    proof.prove(depth=WRITE + 3, reach=18)


@pytest.mark.parametrize("unheard", CLAIMS)
def test_each_claim_is_needed(proof, state, unheard):
    build(proof, state, [name for name in CLAIMS if name != unheard])
    proof.refute(depth=18)


def test_groups_begin_with_the_read(proof, state, monkeypatch, tmp_path):
    fault = lanes, "LanesMicroOps", "read", "self.more & ~reading.waits", "self.more"
    plant(fault, monkeypatch, tmp_path)
    build(proof, state, CLAIMS, CONFIG.override(["alu_groups=2"]))
    proof.refute(depth=18)
