"""The ring: neighbours, token queues, executors; and declarations that are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import pytest

from vdla.isa.asm import AsmError, assemble
from vdla.isa.config import config_names, load_config
from vdla.isa.encoding import decode
from vdla.isa.fields import EncodingError
from vdla.isa.instructions import (
    BY_OPCODE,
    INSTRUCTIONS,
    Alu,
    Finish,
    Gemm,
    Instruction,
    Load,
    Store,
    Unknown,
    instruction_set,
    kind_of,
)
from vdla.isa.parameters import ConfigError
from vdla.isa.ring import Engine, Ring, engines, numbered, ring_of
from vdla.sim.checker import single
from vdla.sim.stream import POPS, PUSHES, Stream, token_queues

CONFIGS = (load_config("paper"), load_config("paper", ["vector_engine=1"]))
PLAIN, FOUR = map(ring_of, CONFIGS)
LOAD, COMPUTE, STORE = PLAIN.roles


def test_any_two_engines_are_neighbours():
    for ring in (PLAIN, FOUR):
        for queue in ring.token_queues:
            assert ring.neighbours(queue.giver)[queue.side] == queue.taker
            assert ring.neighbours(queue.taker)[queue.back] == queue.giver
            assert ring.token_queue(queue.giver, queue.taker) is queue
        ends = [(queue.giver, queue.taker) for queue in ring.token_queues]
        assert set(ends) == set(permutations(ring.engines, 2))
        assert len(ends) == len(ring.engines) * len(ring.sides)


def test_the_ring_of_three():
    assert engines(load_config("tiny")) == (Engine.LOAD, Engine.COMPUTE, Engine.STORE)
    assert PLAIN.neighbours(Engine.STORE) == {"prev": Engine.COMPUTE, "next": Engine.LOAD}
    queue = PLAIN.token_queue(Engine.STORE, Engine.LOAD)
    assert (queue.push, queue.pop) == ("push_next", "pop_prev")


def test_the_ring_of_four():
    load, compute, vector, store = FOUR.engines
    assert (load, compute, vector, store) == (0, 1, 3, 2)
    assert numbered(CONFIGS[1]) == (load, compute, store, vector)
    assert FOUR.neighbours(vector) == {"prev": compute, "next": store, "across": load}
    assert FOUR.neighbours(store) == {"prev": vector, "next": load, "across": compute}
    queue = FOUR.token_queue(compute, store)
    assert (queue.push, queue.pop) == ("push_across", "pop_across")
    assert FOUR.engine_of(Alu()) == vector
    assert PLAIN.engine_of(Alu()) == FOUR.engine_of(Gemm()) == compute


def test_the_flags_across_exist_in_a_ring_of_four_alone():
    plain, four = CONFIGS
    assert Load.bits(four) == Load.bits(plain) + 2
    assert assemble("LOAD push_across x_size=1", four).instructions[0].push_across == 1
    with pytest.raises(AsmError, match="expected a field of LOAD, found push_across"):
        assemble("LOAD push_across", plain)
    with pytest.raises(EncodingError, match=r"LOAD.push_across: expected 0..0 \(0 bits"):
        Load(push_across=1).pack(plain)
    word = Load(push_across=1, pop_across=1, x_size=3).encode(four)
    assert decode(word, four) == Load(push_across=1, pop_across=1, x_size=3)
    assert [f.name for f, _, _ in Load.layout(four)][:7] == [
        "op", "pop_prev", "pop_next", "pop_across", "push_prev", "push_next", "push_across",
    ]  # fmt: skip


def test_an_instruction_of_an_option(monkeypatch):
    """A config without the option doesn't know it, whoever reads its bits."""
    monkeypatch.setitem(BY_OPCODE, 6, Instruction)  # which takes it out in the end

    class Mark(Instruction):
        opcode, option = 6, "vector_engine"

    plain, four = CONFIGS
    assert kind_of(6, four) is Mark
    assert kind_of(6, plain) is None
    assert decode(Mark().encode(four), four) == Mark()
    with pytest.raises(EncodingError, match=r"expected an opcode in \[0, 1, 2, 3, 4\], found 6"):
        decode(Mark().encode(plain), plain)
    for config in CONFIGS:
        assert Mark().is_legal(config) == (config is four)
        assert Stream.of_bytes(config, Mark().encode(config)).legal.tolist() == [config is four]
    every = (*INSTRUCTIONS, Mark)
    monkeypatch.setattr(single, "instruction_set", lambda c: [k for k in every if k.exists(c)])
    (finding,) = single.check_opcodes(plain, [Mark(), Finish()])
    assert finding.text == "MARK 0: expected a config with vector_engine, found paper"
    assert single.check_opcodes(four, [Mark(), Finish()]) == []
    assert single.check_fields(Stream.of(four, [Mark(), Finish()])) == []


def test_who_writes_a_memory():
    assert PLAIN.writers("inp") == (Engine.LOAD,)
    assert FOUR.writers("acc") == (Engine.LOAD, Engine.COMPUTE, Engine.VECTOR)
    forwarding = ring_of(load_config("paper", ["forwarding=1"]))
    assert forwarding.writers("inp") == (Engine.LOAD, Engine.STORE)


def test_every_instruction_has_an_engine_that_the_config_has():
    for name in config_names():
        config = load_config(name)
        executor = ring_of(config).executor
        assert set(executor) == {*instruction_set(config), Unknown}
        assert set(executor.values()) <= set(engines(config))
        assert ring_of(config).engine_of(Gemm()) == ring_of(config).engine_of(Finish())


def test_flags_are_fields_and_arrays_follow_them():
    names = [f.name for f in Instruction.fields]
    for config, (verb, columns) in product(CONFIGS, (("pop", POPS), ("push", PUSHES))):
        ring, numbers = ring_of(config), token_queues(config, verb)
        count = len(ring.sides)
        used = numbers[list(numbered(config)), :count]
        assert sorted(used.flat) == list(range(len(ring.token_queues)))
        for engine in engines(config):
            for side, at in enumerate(columns[:count]):
                queue = ring.token_queues[numbers[engine, side]]
                end = queue.taker if verb == "pop" else queue.giver
                assert (end, getattr(queue, verb)) == (engine, names[at])


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ((), "ring: expected 3 or 4 different engines, found none"),
        ((COMPUTE,), "ring: expected 3 or 4 different engines, found COMPUTE"),
        ((LOAD, COMPUTE, LOAD),
         "ring: expected 3 or 4 different engines, found LOAD, COMPUTE, LOAD"),
        ((LOAD, replace(COMPUTE, executes=(Gemm, Finish)), STORE),
         "ring: expected one engine that executes ALU, found 0"),
        ((LOAD, COMPUTE, replace(STORE, executes=(Store, Alu))),
         "ring: expected one engine that executes ALU, found 2"),
    ],
)  # fmt: skip
def test_a_ring_that_cannot_be(roles, message):
    with pytest.raises(ConfigError) as caught:
        Ring(roles, INSTRUCTIONS)
    assert str(caught.value) == message
