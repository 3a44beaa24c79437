"""The ring: neighbours, token queues, executors; and declarations that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vdla.isa.config import ConfigError, config_names, load_config
from vdla.isa.instructions import INSTRUCTIONS, Alu, Finish, Gemm, Instruction, Store, Unknown
from vdla.isa.ring import Engine, Ring, engines, numbered, ring_of
from vdla.sim.stream import POPS, PUSHES, token_queues

PLAIN = ring_of(load_config("paper"))
LOAD, COMPUTE, STORE = PLAIN.roles


def test_neighbours_know_each_other():
    for ring in (PLAIN,):
        for queue in ring.token_queues:
            assert ring.neighbours(queue.giver)[queue.side] == queue.taker
            assert ring.neighbours(queue.taker)[queue.back] == queue.giver
            assert ring.token_queue(queue.giver, queue.taker) is queue
        ends = [(queue.giver, queue.taker) for queue in ring.token_queues]
        assert len(set(ends)) == len(ends) == len(ring.engines) * len(ring.sides)


def test_the_ring_of_three():
    assert engines(load_config("tiny")) == (Engine.LOAD, Engine.COMPUTE, Engine.STORE)
    assert PLAIN.neighbours(Engine.STORE) == {"prev": Engine.COMPUTE, "next": Engine.LOAD}
    queue = PLAIN.token_queue(Engine.STORE, Engine.LOAD)
    assert (queue.push, queue.pop) == ("push_next", "pop_prev")


def test_every_instruction_has_an_engine_that_the_config_has():
    for name in config_names():
        config = load_config(name)
        executor = ring_of(config).executor
        assert set(executor) == {*INSTRUCTIONS, Unknown}
        assert set(executor.values()) <= set(engines(config))
        assert ring_of(config).engine_of(Gemm()) == ring_of(config).engine_of(Finish())


def test_flags_are_fields_and_arrays_follow_them():
    config = load_config("tiny")
    names = [f.name for f in Instruction.fields]
    for queue in PLAIN.token_queues:
        assert {queue.push, queue.pop} <= set(names)
    for verb, columns in (("pop", POPS), ("push", PUSHES)):
        numbers = token_queues(config, verb)
        assert sorted(numbers[list(numbered(config))].flat) == list(range(6))
        for engine in engines(config):
            for side, at in enumerate(columns):
                queue = PLAIN.token_queues[numbers[engine, side]]
                end = queue.taker if verb == "pop" else queue.giver
                assert (end, getattr(queue, verb)) == (engine, names[at])


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ((), "ring: expected at least 3 different engines, found none"),
        ((COMPUTE,), "ring: expected at least 3 different engines, found COMPUTE"),
        ((LOAD, COMPUTE, LOAD),
         "ring: expected at least 3 different engines, found LOAD, COMPUTE, LOAD"),
        ((LOAD, replace(COMPUTE, executes=(Gemm, Finish)), STORE),
         "ring: expected one engine that executes ALU, found 0"),
        ((LOAD, COMPUTE, replace(STORE, executes=(Store, Alu))),
         "ring: expected one engine that executes ALU, found 2"),
    ],
)  # fmt: skip
def test_a_ring_that_cannot_be(roles, message):
    with pytest.raises(ConfigError) as caught:
        Ring(roles)
    assert str(caught.value) == message
