"""COMPUTE and VECTOR at ACC: what docs/timing.md, section 5.11, promises of their ports.

1. Their writes never meet.
2. They never read at the first port at once: VECTOR's late read meets none of GEMM's, nor does an
   early read that isn't held.
3. ``acc_taken`` says of every write that it takes place.

Instructions, micro-ops and tokens are free; the arithmetic of both is cut out.
"""

from __future__ import annotations

import pytest

from vdla.hw.compute import Compute
from vdla.hw.compute.micro_op import WRITE
from vdla.isa.config import load_config
from vdla.isa.ring import Engine

CONFIG = load_config("tiny", ["vector_engine=1", "acc_bytes=64", "inp_bytes=8", "wgt_bytes=32",
                              "uop_bytes=16"])  # fmt: skip
CLAIMS = ("reads", "will_read", "will_write")


def build(proof, state, heard):
    """Both engines; VECTOR hears of some of what GEMM claims."""
    compute, vector = Compute(CONFIG, Engine.COMPUTE), Compute(CONFIG, Engine.VECTOR)
    inner = proof.add(compute)
    gemm = inner.submodules.gemm
    proof.cut(inner, "gemm", gemm.sums, gemm.carry)
    inner = proof.add(vector, *(getattr(vector.gemm, name) for name in CLAIMS))
    proof.cut(inner, "alu", inner.submodules.alu.result)
    for name in CLAIMS:
        claim = getattr(compute.claims, name) if name in heard else 0
        proof.m.d.comb += getattr(vector.gemm, name).eq(claim)
    late, hold = (state(inner, name) for name in ("meets_late", "hold"))
    proof.check(~(compute.acc_write.enable & vector.acc_write.enable))
    proof.check(~(compute.acc_x.enable & late))
    proof.check(~(compute.acc_x.enable & vector.acc_x.enable & ~hold))
    return compute, vector, late


def test_they_never_meet(proof, state):
    compute, vector, late = build(proof, state, CLAIMS)
    for unit in (compute, vector):
        proof.check(unit.acc_taken == unit.acc_write.enable)
    writes = compute.acc_write.enable
    proof.cover(writes & proof.past(vector.acc_write.enable))
    proof.cover(vector.acc_write.enable & proof.past(writes))
    proof.cover(compute.acc_x.enable & proof.past(late))
    proof.prove(depth=WRITE + 3, reach=18)


@pytest.mark.parametrize("unheard", CLAIMS)
def test_each_claim_is_needed(proof, state, unheard):
    build(proof, state, [name for name in CLAIMS if name != unheard])
    proof.refute(depth=18)
