"""Command queues: order, room, what an instruction waits for, and when all is done."""

from __future__ import annotations

from random import Random

import pytest
from amaranth.sim import Simulator

from vdla.hw.queue import CommandQueue
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Gemm
from vdla.isa.ring import ring_of

FOUR = load_config("tiny", ["vector_engine=1"])  # a ring with an engine on each side
SIDES = ring_of(FOUR).sides
WAITS_FOR = {f"pop_{side}": f"has_{side}" for side in SIDES} | {
    f"push_{side}": f"slot_{side}" for side in SIDES
}


@pytest.mark.parametrize("depth", [2, 3, 16])
def test_instructions_wait_and_start_in_order(depth):
    """Random programs, tokens that come and go, an engine of three instructions."""
    config = FOUR.override([f"command_queue={depth}"])
    queue, random = CommandQueue(config), Random(depth)
    port = queue.command
    program = [
        random.choice([Gemm, Alu])(
            dst_base=random.randrange(100), **{f: random.randrange(2) for f in WAITS_FOR}
        )
        for _ in range(150)
    ]
    most = []

    async def drive(ctx):
        put = started = finished = shown = 0
        while finished < len(program):
            put_now = put < len(program) and put - started < depth and random.random() < 0.7
            assert ctx.get(queue.room) == (put - started < depth)
            assert ctx.get(queue.busy) == (put != finished)
            assert ctx.get(port.waiting) == (shown != started)
            ctx.set(queue.put, put_now)
            if put_now:
                ctx.set(queue.word, program[put].pack(config))
                ctx.set(queue.index, put)
            there = {name: random.random() < 0.7 for name in WAITS_FOR.values()}
            for name, value in there.items():
                ctx.set(getattr(queue, name), value)
            ready = False
            if shown != started:
                head = program[started]
                ready = all(there[name] or not getattr(head, f) for f, name in WAITS_FOR.items())
                assert ctx.get(port.word) == head.pack(config)
                assert ctx.get(port.index) == started
            assert ctx.get(port.ready) == ready
            start = ready and started - finished < 3 and random.random() < 0.8
            finish = started != finished and random.random() < 0.5
            ctx.set(port.start, start)
            ctx.set(port.finish, finish)
            done = program[finished]
            for side in SIDES:
                ctx.set(getattr(port, f"push_{side}"), getattr(done, f"push_{side}"))
                push = finish and getattr(done, f"push_{side}")
                assert ctx.get(getattr(queue, f"push_{side}")) == push
                for act, flag in (("pop", "pop"), ("reserve", "push")):
                    wanted = start and getattr(program[started], f"{flag}_{side}")
                    assert ctx.get(getattr(queue, f"{act}_{side}")) == wanted
            most.append(put - started)
            await ctx.tick()
            shown = put  # what was put in has left the queue's memory a cycle later
            put, started, finished = put + put_now, started + start, finished + finish
        assert not ctx.get(queue.busy)

    simulator = Simulator(queue)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert max(most) == depth
