"""The serial line's two ends."""

from itertools import pairwise
from random import Random

import pytest
from amaranth import Module
from amaranth.sim import Simulator

from vdla.boards.soc.uart import Receiver, Transmitter


def bits(byte):
    return [0, *(byte >> i & 1 for i in range(8)), 1]


def received(divisor, line):
    """What the receiver makes of line levels, one a clock."""
    receiver, found = Receiver(divisor), []

    async def test(ctx):
        for level in line:
            ctx.set(receiver.rx, level)
            await ctx.tick()
            if ctx.get(receiver.valid):
                found.append(ctx.get(receiver.data))

    simulator = Simulator(receiver)
    simulator.add_clock(1e-6)
    simulator.add_testbench(test)
    simulator.run()
    return found


@pytest.mark.parametrize("divisor", [4, 5, 20])
@pytest.mark.parametrize("gap", [0, 3])
def test_what_is_sent_is_received(divisor, gap):
    message = Random(divisor).randbytes(20)
    m = Module()
    m.submodules.transmitter = transmitter = Transmitter(divisor)
    m.submodules.receiver = receiver = Receiver(divisor)
    m.d.comb += receiver.rx.eq(transmitter.tx)
    found = []

    async def send(ctx):
        for byte in message:
            for _ in range(gap):
                await ctx.tick()
            ctx.set(transmitter.data, byte)
            ctx.set(transmitter.valid, 1)
            while not ctx.get(transmitter.ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(transmitter.valid, 0)
        for _ in range(14 * divisor):
            await ctx.tick()

    async def receive(ctx):
        async for _, _, valid, data in ctx.tick().sample(receiver.valid, receiver.data):
            if valid:
                found.append(data)

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(send)
    simulator.add_process(receive)
    simulator.run()
    assert bytes(found) == message


@pytest.mark.parametrize("skew", [0.96, 1.04])
def test_a_sender_whose_clock_is_off_by_four_percent(skew):
    divisor, message = 20, [0x00, 0xFF, 0x5A, 0x81]
    levels = [1] * 30
    for byte in message:
        edges = [round(i * divisor * skew) for i in range(11)]
        for bit, (start, end) in zip(bits(byte), pairwise(edges), strict=True):
            levels += [bit] * (end - start)
    assert received(divisor, levels + [1] * 40) == message


def test_a_glitch_is_no_start_and_a_missing_stop_no_byte():
    divisor = 20
    good = [level for bit in bits(0x3C) for level in [bit] * divisor]
    broken = [level for bit in [*bits(0x3C)[:-1], 0] for level in [bit] * divisor]
    idle = [1] * 3 * divisor
    glitch = [0] * (divisor // 4)
    assert received(divisor, idle + glitch + idle + good + idle) == [0x3C]
    assert received(divisor, idle + broken + idle + good + idle) == [0x3C]
