"""The interrupt: a level, high while an event is set that the driver wants to hear of."""

from __future__ import annotations

from dataclasses import replace

import cocotb
from axi_bench import (
    DONE,
    DONE_EVENT,
    EVENTS,
    FAULT,
    FAULT_EVENT,
    RESET,
    START,
    Bench,
    case_of,
)
from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from vdla.isa.identity import Identity
from vdla.isa.registers import Fault

ENDS = case_of("FINISH", 4096)
FAILS = replace(ENDS, identity=Identity("01234567", "89abcdef"))
CASES = {DONE_EVENT: (ENDS, DONE, Fault.NONE), FAULT_EVENT: (FAILS, FAULT, Fault.PROGRAM_ISA)}


@cocotb.test()
@cocotb.parametrize(event=tuple(CASES), enable=range(4), slow=(False, True))
async def interrupt_is_a_level(dut, event, enable, slow):
    bench = await Bench.begin(dut, enable)
    if slow:
        bench.slow_down()
    case, status, fault = CASES[event]
    await bench.start(case, enable=enable)
    assert await bench.settle() == status
    assert await bench.read("FAULT_CAUSE") == fault
    await level(bench, enable & event)
    for other in (0, EVENTS - event):  # clears nothing
        await bench.write("INTERRUPT_STATUS", other)
        assert await bench.read("INTERRUPT_STATUS") == event
        await level(bench, enable & event)
    for mask in (EVENTS, EVENTS - event, event):
        await bench.write("INTERRUPT_ENABLE", mask)
        await level(bench, mask & event)
    await bench.write("INTERRUPT_STATUS", event)
    await level(bench, 0)
    assert (await bench.read("INTERRUPT_STATUS"), await bench.read("STATUS")) == (0, status)


@cocotb.test()
async def events_are_kept_apart(dut):
    bench = await Bench.begin(dut, 0)
    await bench.load(ENDS, enable=0)
    await start_unseen(bench)
    assert await bench.read("INTERRUPT_STATUS") == DONE_EVENT
    await bench.write("PROGRAM_ISA", 0)
    await start_unseen(bench)
    assert await bench.read("INTERRUPT_STATUS") == EVENTS
    await bench.write("INTERRUPT_ENABLE", EVENTS)
    await bench.write("CONTROL", RESET)
    await level(bench, 1)
    for clear, left in ((DONE_EVENT, FAULT_EVENT), (FAULT_EVENT, 0)):
        await bench.write("INTERRUPT_STATUS", clear)
        assert await bench.read("INTERRUPT_STATUS") == left
        await level(bench, left)
    assert await bench.read("STATUS") == 0


@cocotb.test()
async def interrupt_comes_once_per_program(dut):
    bench = await Bench.begin(dut, 0)
    for case in (ENDS, FAILS, ENDS, ENDS, FAILS):
        await bench.run(case)
        await level(bench, 0)


async def start_unseen(bench):
    """Runs what is loaded to its end, without an interrupt."""
    await bench.write("CONTROL", START)
    await bench.settle()
    await level(bench, 0)


async def level(bench, high):
    """The interrupt is so, and stays so."""
    assert bool(bench.dut.irq.value) == bool(high)
    irq = bench.dut.irq
    change = FallingEdge(irq) if high else RisingEdge(irq)
    timer = Timer(400, "ns")
    assert await First(change, timer) is timer
