"""Token queues.

1. Tokens there + slots free + slots reserved = depth, in every cycle: none is negative, and none
   exceeds the depth.
2. What is pushed can be popped exactly once: tokens there = pushed − popped, and ``available`` says
   whether there are any.
3. ``vacant`` says whether a slot is free, so that no queue overflows.

Assumed is rule 4 of hw/tokens.py: who pops has seen ``available``, who reserves has seen
``vacant``, and a push follows its reservation. Without it, the first property falls.
"""

from __future__ import annotations

import pytest
from amaranth import Signal

from vdla.hw.tokens import TokenQueue


def build(proof, depth, *, careful=True):
    queue = TokenQueue(depth)
    inner = proof.add(queue)
    tokens, free = proof.count(inner, "tokens", depth), proof.count(inner, "free", depth)
    reserved = proof.ghost(depth, queue.reserve, queue.push, "reserved")
    if careful:
        proof.assume(~queue.reserve | queue.vacant)
    proof.assume(~queue.pop | queue.available)
    proof.assume(~queue.push | (reserved != 0))
    proof.check(tokens + free + reserved == depth)
    return queue, reserved, tokens, free


@pytest.mark.parametrize("depth", [1, 2, pytest.param(64, marks=pytest.mark.long)])
def test_slots_are_never_lost(proof, depth):
    queue, reserved, tokens, free = build(proof, depth)
    pushed, popped = Signal(16), Signal(16)
    proof.m.d.sync += [pushed.eq(pushed + queue.push), popped.eq(popped + queue.pop)]
    proof.check(tokens == (pushed - popped)[:16])
    proof.check(queue.available == (tokens != 0))
    proof.check(queue.vacant == (free != 0))
    few = min(depth, 2)
    proof.cover(tokens == few)
    proof.cover(reserved == few)
    proof.cover((popped == few + 1) & (free == depth))
    proof.prove()


@pytest.mark.parametrize("depth", [1, 2])
def test_reserving_what_is_not_vacant_breaks_it(proof, depth):
    queue = build(proof, depth, careful=False)[0]
    proof.assume(queue.reserve)
    proof.refute(depth=depth + 3)
