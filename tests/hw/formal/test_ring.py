"""The ring in RTL (hw/core/ring.py), of three engines and of four: whose tokens an engine pops.

1. A token that an engine pushes at a side can be popped by the engine that stands there, at the
   side where the first one stands, and by no other: each engine has at each side the tokens that
   the engine there has pushed to it and that it hasn't popped.
2. What is reserved for a push is reserved in the queue to the engine that it goes to: no queue has
   more tokens than it holds.
3. Fetch puts an instruction into the queue of one engine alone.

Instructions are free, and so is when engines start and finish. Assumed: an engine starts only when
``ready``, and pushes only where an instruction that it started has a slot; fetch puts only into
``room``.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import data
from planting import plant

from vdla.hw.core import ring as ring_file
from vdla.hw.core.ring import Ring
from vdla.hw.interfaces import command
from vdla.hw.layout import instruction_bits, layout
from vdla.isa.config import load_config
from vdla.isa.instructions import Instruction
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import numbered, ring_of

DEPTH = 2
SIZES = ["command_queue=2", f"token_queue={DEPTH}"]
CONFIGS = {count: load_config("tiny", [*SIZES, f"vector_engine={four}"])
           for count, four in (("three", 0), ("four", 1))}  # fmt: skip


class Ends:
    """The ends of a ring, free: fetch, and the engines' sides of their commands."""

    def __init__(self, proof, config):
        self.put, self.room = (
            proof.free(len(numbered(config)), "put"),
            Signal(len(numbered(config))),
        )
        word, index = proof.free(instruction_bits(config), "word"), proof.free(INDEX_BITS, "index")
        self.fetch = SimpleNamespace(
            busy=Signal(), word=word, index=index, put=self.put, room=self.room
        )
        self.engines = {e: SimpleNamespace(command=self._command(proof, config, e))
                        for e in numbered(config)}  # fmt: skip
        proof.assume((self.put & ~self.room) == 0)

    def _command(self, proof, config, engine):
        port = command(config).flip().create(path=(engine.name.lower(),))
        acts = ["start", "finish", *(f"push_{side}" for side in ring_of(config).sides)]
        for name in acts:
            free = proof.free(name=f"{engine.name.lower()}_{name}_free")
            proof.m.d.comb += getattr(port, name).eq(free)
        proof.assume(~port.start | port.ready)
        return port


def build(proof, config):
    """The ring; the tokens that each queue has by what happens at its ends."""
    ends, inner, held = Ends(proof, config), Module(), []
    built = Ring(inner, config, ends, lambda queue: queue)
    proof.m.submodules += inner
    flags = layout(Instruction, config)
    for queue in ring_of(config).token_queues:
        name = f"{queue.giver.name.lower()}_to_{queue.side}"
        giver, taker = (ends.engines[each].command for each in (queue.giver, queue.taker))
        starts, pops = (
            port.start & getattr(data.View(flags, port.word[: Instruction.bits(config)]), flag)
            for port, flag in ((giver, queue.push), (taker, queue.pop))
        )
        pushes = giver.finish & getattr(giver, queue.push)
        tokens = proof.ghost(DEPTH, pushes, pops, f"{name}_tokens")
        reserved = proof.ghost(DEPTH, starts, pushes, f"{name}_reserved")
        proof.assume(~pushes | (reserved != 0))
        opened = proof.open(inner, name)
        there, free = proof.count(opened, "tokens", DEPTH), proof.count(opened, "free", DEPTH)
        proof.check(there == tokens)
        proof.check(tokens + free + reserved == DEPTH)
        has, slot = (
            getattr(built.queues[engine], f"{what}_{side}")
            for engine, what, side in (
                (queue.taker, "has", queue.back), (queue.giver, "slot", queue.side),
            )
        )  # fmt: skip
        proof.check((has == (tokens != 0)) & (slot == (free != 0)))
        proof.check(tokens != 0, when=pops)
        held.append(tokens)
    puts = [built.queues[engine].put for engine in numbered(config)]
    proof.check(Cat(puts) == ends.put)
    return held


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_each_token_has_one_taker(proof, config):
    held = build(proof, config)
    proof.cover(Cat(tokens != 0 for tokens in held).all())
    proof.cover(held[0] == DEPTH)
    proof.prove(reach=10)


@pytest.mark.parametrize(
    ("count", "old", "new"),
    [("three", "taker, queue.pop)", 'taker, f"pop_{queue.side}")'),
     ("four", 'f"reserve_{queue.side}"', 'f"reserve_{queue.back}"')],
    ids=["pop", "reserve"],
)  # fmt: skip
def test_sides_that_are_mixed_up_are_found(proof, count, old, new, monkeypatch, tmp_path):
    plant((ring_file, "Ring", "_pass_tokens", old, new), monkeypatch, tmp_path)
    build(proof, CONFIGS[count])
    proof.refute(depth=6)
