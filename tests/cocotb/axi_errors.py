"""Beats and answers that bear an error: the core stops with BUS, and runs again after a RESET."""

from __future__ import annotations

from dataclasses import replace

import cocotb
from axi_bench import (
    CONFIG,
    FAULT,
    FAULT_EVENT,
    PROGRAM,
    RESET,
    WIPE,
    Bench,
    Reordering,
    assert_stored,
    case_of,
    fail_with,
    rows,
)
from cocotbext.axi import AxiResp, AxiSlaveRead

from vdla.analysis.case import Case
from vdla.analysis.machines import simulate
from vdla.isa.instructions import Load, Store, instruction_bytes
from vdla.isa.registers import Fault
from vdla.sim.random_programs import random_program

# Bytes of PROGRAM's DRAM that somebody reads or writes.
TOUCHED = {
    "fetch": (0x2FA4, 0x2FA4 + 8 * instruction_bytes(CONFIG)),
    "load": (0x3FF4, 0x3FF4 + 640),
    "store": (0x8F04, 0x8F04 + 480),
}


@cocotb.test()
@cocotb.parametrize(
    who=tuple(TOUCHED), response=(AxiResp.SLVERR, AxiResp.DECERR), slow=(False, True)
)
async def error_stops_the_core(dut, who, response, slow):
    seed = 8 * list(TOUCHED).index(who) + 2 * response + slow
    bench = await Bench.begin(dut, seed, peer=Reordering if slow else AxiSlaveRead)
    if slow:
        bench.slow_down()
    fail_with(bench.reads.r_channel, "rresp", response)
    fail_with(bench.writes.b_channel, "bresp", response)
    at = bench.rng.randrange(*TOUCHED[who], CONFIG.port_bytes)
    case = replace(case_of(PROGRAM), errors=(at, at + 1))
    await bench.run(WIPE)
    await stops(bench, case)
    assert bench.monitor.first_error[0] == who
    await bench.prove(case_of(PROGRAM))


@cocotb.test()
@cocotb.parametrize(seed=range(8))
async def errors_anywhere(dut, seed):
    bench = await Bench.begin(dut, seed, peer=(AxiSlaveRead, Reordering)[seed % 2])
    bench.slow_down()
    sound = Case.of(random_program(CONFIG, seed, 30))
    first = bench.rng.choice((0x1000, 0x2000, sound.base)) + 64 * bench.rng.randrange(8)
    case = replace(sound, errors=(first, first + bench.rng.choice((4, 64, 1024))))
    await bench.run(WIPE)
    if simulate(case, CONFIG.memory).fault:
        await stops(bench, case)
        await bench.prove(sound)
    else:
        await bench.prove(case)


async def stops(bench, case):
    """Runs a case that meets an error, and sees to all that must follow."""
    await bench.start(case)
    await bench.wait_for_interrupt()
    assert await bench.read("INTERRUPT_STATUS") == FAULT_EVENT
    ended = await bench.end()
    assert (ended.status, ended.fault) == (FAULT, Fault.BUS)
    assert is_plausible(case, bench.monitor.first_error, ended.fault_at)
    assert ended.cycles == bench.monitor.cycles
    assert_stored(case, bench.monitor.bursts["store"], ended.dram)
    await bench.write("CONTROL", RESET)
    assert await bench.settle() == 0
    assert not bench.dut.irq.value


def is_plausible(case, error, fault_at):
    """Whether the instruction is the one that moved the bad beat, or an earlier one that its engine
    hadn't finished."""
    who, at = error
    index, rest = divmod(fault_at - case.base, instruction_bytes(CONFIG))
    if rest or not 0 <= index < len(case.stream.instructions):
        return False
    if who == "fetch":
        return index <= (at - case.base) // instruction_bytes(CONFIG)
    kind = {"load": Load, "store": Store}[who]
    movers = [
        i
        for i, each in enumerate(case.stream.instructions)
        if isinstance(each, kind)
        and any(address <= at < address + length for address, length in rows(each))
    ]
    return isinstance(case.stream.instructions[index], kind) and index <= max(movers)
