"""Resets in the middle: the driver's, which lets transfers end, and the hard one, which doesn't."""

from __future__ import annotations

import cocotb
from axi_bench import (
    CONFIG,
    EVENTS,
    PROGRAM,
    RESET,
    START,
    STOPPING,
    WIPE,
    Bench,
    Reordering,
    assert_stored,
    case_of,
)
from cocotbext.axi import AxiResp, AxiSlaveRead

from vdla.analysis.case import Case
from vdla.isa.registers import registers
from vdla.sim.random_programs import random_program

CONSTANT = ("ID", "VERSION", "ISA_HASH", "CONFIG_HASH")
CASE = case_of(PROGRAM)


@cocotb.test()
@cocotb.parametrize(name=("ar", "r", "aw", "w", "b"), seed=range(2))
async def reset_waits_for_open_bursts(dut, name, seed):
    bench = await Bench.begin(dut, seed, peer=(AxiSlaveRead, Reordering)[seed])
    await bench.run(WIPE)
    await bench.start(CASE)
    peer = bench.writes if name in ("aw", "w", "b") else bench.reads
    channel = getattr(peer, f"{name}_channel")
    await hold(bench, name, channel)
    await bench.write("CONTROL", RESET)
    for _ in range(2):  # the second time after a START, which does nothing
        assert await bench.read("STATUS") == STOPPING
        assert await bench.try_write("PROGRAM_BASE", 0) == AxiResp.SLVERR
        assert is_held(bench.monitor, name)
        await bench.write("CONTROL", START)
    channel.pause = False
    await comes_to_rest(bench, CASE)
    await bench.prove(CASE)


@cocotb.test()
@cocotb.parametrize(seed=range(9))
async def reset_at_any_time(dut, seed):
    bench = await Bench.begin(dut, seed, peer=(AxiSlaveRead, Reordering)[seed % 2])
    case = CASE if seed % 3 else Case.of(random_program(CONFIG, seed, 30))
    await bench.run(WIPE)
    bench.slow_down()
    await bench.start(case)
    await bench.pass_cycles(bench.rng.randrange(1500))
    await bench.write("CONTROL", RESET)
    await comes_to_rest(bench, case, may_end=True)
    await bench.prove(case)


@cocotb.test()
async def reset_goes_before_start(dut):
    bench = await Bench.begin(dut, 0)
    await bench.load(CASE)
    await bench.write("CONTROL", START | RESET)
    assert await bench.read("STATUS") == 0
    assert bench.monitor.cycles == 0
    await bench.prove(CASE)


@cocotb.test()
@cocotb.parametrize(seed=range(8))
async def hard_reset_is_power_up(dut, seed):
    bench = await Bench.begin(dut, seed, peer=(AxiSlaveRead, Reordering)[seed % 2])
    await is_as_after_power_up(bench)
    await bench.run(WIPE)
    bench.slow_down()
    await bench.start(CASE)
    await bench.pass_cycles(bench.rng.randrange(1000))
    reading = cocotb.start_soon(bench.driver.read(0, 4))
    await bench.pass_cycles(bench.rng.randrange(4))
    await bench.hard_reset(bench.rng.choice((3, 4, 16)))
    await reading
    await is_as_after_power_up(bench)
    await bench.run(WIPE)
    await bench.start(CASE)
    await bench.pass_cycles(bench.rng.randrange(300))
    await bench.write("CONTROL", RESET)  # nothing from before is waited for
    await comes_to_rest(bench, CASE)
    await bench.prove(CASE)


def is_held(monitor, name):
    """Whether something is under way that waits for the channel."""
    if name in ("ar", "aw"):
        return monitor.bus[name].held is not None
    if name == "w":
        middle = monitor.writes and 0 < monitor.writes[0].moved < monitor.writes[0].beats
        return bool(middle) and monitor.bus["w"].held is not None
    return any(monitor.reads.values()) if name == "r" else bool(monitor.unanswered)


async def hold(bench, name, channel):
    """Stops a channel at some time at which something waits for it."""
    await bench.pass_cycles(bench.rng.randrange(100))
    held = 0
    for _ in range(3000):
        held = held + 1 if is_held(bench.monitor, name) and channel.pause else 0
        if held == 8:
            return
        # Write data is stopped in the middle of a burst, the others at once.
        channel.pause = channel.pause if held else name != "w" or bool(bench.monitor.writes)
        await bench.pass_cycles(1)
    raise AssertionError(f"nothing waits for {name}")


async def comes_to_rest(bench, case, *, may_end=False):
    """After a RESET: nothing has happened but the stores of bursts that were opened."""
    assert await bench.settle() == 0
    if not may_end:
        assert await bench.read("INTERRUPT_STATUS") == 0
        assert not bench.dut.irq.value
    await bench.pass_cycles(50)
    assert bench.monitor.quiet
    assert_stored(case, bench.monitor.bursts["store"], bench.dram.content)
    await bench.write("INTERRUPT_STATUS", EVENTS)


async def is_as_after_power_up(bench):
    assert not bench.dut.irq.value
    values = {r.name: await bench.read(r.name) for r in registers(CONFIG)}
    assert not any(value for name, value in values.items() if name not in CONSTANT)
