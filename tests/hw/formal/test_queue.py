"""Command queues, and what they do to the token queues.

1. ``ready`` means that an instruction waits, and that every token it pops and every slot it will
   push to is there. ``room`` means that fewer wait than the queue holds.
2. ``busy`` is low exactly when everything that was put in has finished.
3. Starting pops and reserves what the instruction names, finishing pushes what the engine says.
4. With an engine that starts only when ``ready``, and finishes in order with the flags of what it
   started, rule 4 of hw/tokens.py holds: the slots reserved are those of the instructions in
   flight.

Assumed: fetch puts only into ``room``; the engine starts only when ``ready``, finishes only what
it has started, and has at most three instructions in flight.
"""

from __future__ import annotations

import pytest
from amaranth import Array, Cat, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.layout import layout
from vdla.hw.queue import MOST_STARTED, CommandQueue
from vdla.hw.tokens import TokenQueue
from vdla.isa.config import load_config
from vdla.isa.instructions import Instruction
from vdla.isa.ring import ring_of

IN_FLIGHT = 3
RINGS = {"three": 0, "four": 1}  # numbers of engines, by whether there is a vector engine


def flags_of(config, word):
    return data.View(layout(Instruction, config), word[: Instruction.bits(config)])


@pytest.fixture(params=RINGS)
def config(request):
    """A config with a ring of three engines, and one of four."""
    return load_config("tiny", ["token_queue=2", f"vector_engine={RINGS[request.param]}"])


def build(proof, config, depth):
    config = config.override([f"command_queue={depth}"])
    queue = CommandQueue(config)
    inner = proof.add(queue)
    port = queue.command
    proof.assume(~queue.put | queue.room)
    flying = proof.ghost(IN_FLIGHT, port.start, port.finish, "flying")
    proof.assume(~port.finish | (flying != 0))
    proof.assume(~port.start | (port.ready & (flying < IN_FLIGHT)))
    proof.check(flying <= IN_FLIGHT)
    return queue, inner, flying, flags_of(config, port.word)


@pytest.mark.parametrize("depth", [2, pytest.param(3, marks=pytest.mark.long)])
def test_ready_and_busy(proof, config, depth):
    queue, inner, flying, flags = build(proof, config, depth)
    port, sides = queue.command, ring_of(config).sides
    for side in sides:
        proof.check(getattr(queue, f"has_{side}"), when=port.ready & flags[f"pop_{side}"])
        proof.check(getattr(queue, f"slot_{side}"), when=port.ready & flags[f"push_{side}"])
        pops, takes = port.start & flags[f"pop_{side}"], port.start & flags[f"push_{side}"]
        proof.check(getattr(queue, f"pop_{side}") == pops)
        proof.check(getattr(queue, f"reserve_{side}") == takes)
        pushes = port.finish & getattr(port, f"push_{side}")
        proof.check(getattr(queue, f"push_{side}") == pushes)
    proof.check(port.waiting, when=port.ready)
    needed = Cat(flags[f"{verb}_{side}"] for verb in ("pop", "push") for side in sides)
    proof.check(port.ready, when=port.waiting & ~needed.any())

    unfinished = proof.ghost(depth + IN_FLIGHT, queue.put, port.finish, "unfinished_ghost")
    proof.check(queue.busy == (unfinished != 0))
    most = depth + MOST_STARTED
    proof.check(proof.count(inner, "unfinished", most) == unfinished)
    waiting = proof.count(inner, "waiting", depth)  # in the FIFO and in the register behind it
    level = proof.level(proof.open(inner, "fifo"), depth)
    proof.check(waiting == level + port.waiting)
    proof.check(unfinished == waiting + flying)
    proof.check(queue.room == (waiting != depth))
    proof.cover(unfinished == depth + IN_FLIGHT)
    proof.cover(proof.past(queue.busy) & ~queue.busy)
    proof.cover(port.waiting & ~port.ready)
    proof.prove()


def test_the_slots_reserved_are_those_of_instructions_in_flight(proof, config):
    """The queue with the token queues that its engine pushes to."""
    m, pushes = proof.m, [f"push_{side}" for side in ring_of(config).sides]
    queue, _, flying, flags = build(proof, config, 2)
    port = queue.command
    pushed = Array(Signal(len(pushes), name=f"flags_{i}") for i in range(IN_FLIGHT))  # oldest first
    new = Cat(flags[name] for name in pushes)
    for i, slot in enumerate(pushed):
        older = pushed[i + 1] if i + 1 < IN_FLIGHT else 0
        taken = port.start & (flying - port.finish == i)
        m.d.sync += slot.eq(Mux(taken, new, Mux(port.finish, older, slot)))
    proof.assume(Cat(getattr(port, name) for name in pushes) == pushed[0])
    for i, side in enumerate(ring_of(config).sides):
        tokens = TokenQueue(2)
        inside = proof.add(tokens, tokens.push, tokens.reserve)
        there, free = proof.count(inside, "tokens", 2), proof.count(inside, "free", 2)
        m.d.comb += [
            tokens.reserve.eq(getattr(queue, f"reserve_{side}")),
            tokens.push.eq(getattr(queue, f"push_{side}")),
        ]
        proof.assume(getattr(queue, f"slot_{side}") == tokens.vacant)
        proof.assume(~tokens.pop | tokens.available)
        reserved: Value = sum(Mux(n < flying, slot[i], 0) for n, slot in enumerate(pushed))
        proof.check(there + free + reserved == 2)
        proof.check(tokens.vacant, when=tokens.reserve)
        proof.check(reserved != 0, when=tokens.push)
        proof.cover(there == 2)
        proof.cover(reserved == 2)
    proof.prove()
