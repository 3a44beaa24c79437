"""Token queues against a counter, with pops, pushes and reservations in any mixture."""

from __future__ import annotations

from random import Random

import pytest
from amaranth.sim import Simulator

from vdla.hw.tokens import TokenQueue


@pytest.mark.parametrize("depth", [1, 2, 3, 64])
def test_against_a_counter(depth):
    queue, random = TokenQueue(depth), Random(depth)
    seen = set()

    async def drive(ctx):
        tokens, free, reserved = 0, depth, 0
        eager = 0.5
        for cycle in range(2000):
            if cycle % 200 == 0:  # phases in which it fills, and in which it drains
                eager = random.choice([0.1, 0.5, 0.9])
            assert ctx.get(queue.available) == (tokens > 0)
            assert ctx.get(queue.vacant) == (free > 0)
            pop = tokens > 0 and random.random() > eager
            reserve = free > 0 and random.random() < eager
            push = reserved > 0 and random.random() < 0.5
            for port, value in ((queue.pop, pop), (queue.reserve, reserve), (queue.push, push)):
                ctx.set(port, value)
            await ctx.tick()
            tokens += push - pop
            free += pop - reserve
            reserved += reserve - push
            seen.add((tokens, free, reserved))

    simulate(queue, drive)
    assert {(depth, 0, 0), (0, depth, 0)} <= seen
    assert any(reserved for _, _, reserved in seen)


def test_a_token_can_be_popped_in_the_cycle_after_its_push():
    queue = TokenQueue(2)

    async def drive(ctx):
        ctx.set(queue.reserve, 1)
        await ctx.tick()
        ctx.set(queue.reserve, 0)
        ctx.set(queue.push, 1)
        assert not ctx.get(queue.available)
        await ctx.tick()
        ctx.set(queue.push, 0)
        assert ctx.get(queue.available)

    simulate(queue, drive)


def simulate(dut, testbench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
