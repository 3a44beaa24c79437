"""Bursts at page ends, and addresses that no burst may have."""

from __future__ import annotations

import cocotb
import numpy as np
from axi_bench import CONFIG, FAULT, PROGRAM, WIPE, Bench, Reordering, case_of, cut

from vdla.analysis.machines import simulate
from vdla.isa.config import PAGE_BYTES
from vdla.isa.registers import Fault

# The first of two is sound.
FIRST = (0x1FE0, 160)
STORE_THEN = """
.base 0x40
STORE memory=ACC dram_base=0x1fe0 x_size=10 y_size=1 z_size=1
STORE memory=ACC dram_base={} x_size=4 y_size=1 z_size=1
FINISH
"""
LOAD_THEN = """
.base 0x40
LOAD memory=INP dram_base=0x1fe0 x_size=40 y_size=1 z_size=1
LOAD memory=WGT dram_base={} x_size=4 y_size=1 z_size=1
FINISH
"""
SIZE = 1 << 14
BAD = ("0x2001", "0x2002", "0x2003", hex(SIZE), "0xfffffff8")


@cocotb.test()
@cocotb.parametrize(seed=range(6))
async def no_burst_crosses_a_page(dut, seed):
    bench = await Bench.begin(dut, seed, peer=Reordering)
    bench.slow_down(registers=False)
    # The seed moves every address, so that runs and entries meet the page's end elsewhere.
    shift = CONFIG.port_bytes * seed
    await bench.prove(case_of(_shifted(PROGRAM, shift)))
    for whose, bursts in bench.monitor.bursts.items():
        ends = {address + beats * CONFIG.port_bytes for address, beats in bursts}
        starts = {address for address, _ in bursts}
        assert any(at % PAGE_BYTES == 0 for at in ends & starts), f"{whose} crossed no page"


@cocotb.test()
@cocotb.parametrize(text=(STORE_THEN, LOAD_THEN), address=BAD)
async def bad_address_is_a_fault(dut, text, address):
    bench = await Bench.begin(dut, 0)
    case = case_of(text.format(address), SIZE)
    await bench.run(WIPE)
    ended = await bench.run(case)
    simulated = simulate(case, CONFIG.memory)
    assert (ended.status, ended.fault) == (FAULT, Fault.ADDRESS)
    assert (simulated.fault, simulated.fault_at) == (ended.fault, ended.fault_at)
    moved, untouched = ("load", "store") if text == LOAD_THEN else ("store", "load")
    sent = bench.monitor.bursts[moved]
    between_beats = int(address, 16) % CONFIG.port_bytes != 0  # found at once, before all are sent
    assert sent == (cut(*FIRST)[: len(sent)] if between_beats else cut(*FIRST))
    assert not bench.monitor.bursts[untouched]
    if moved == "store":  # zeros: the buffers were cleared
        for at, beats in sent:
            case.dram[at : at + beats * CONFIG.port_bytes] = 0
    np.testing.assert_array_equal(ended.dram, case.dram)
    await bench.prove(case_of(PROGRAM))


@cocotb.test()
@cocotb.parametrize(base=(0x41, 0x42, 0x43, SIZE, SIZE + 64, 0xFFFF_FFE0))
async def bad_program_base_is_a_fault(dut, base):
    bench = await Bench.begin(dut, 0)
    case = case_of(LOAD_THEN.format("0x3000"), SIZE)
    ended = await bench.run(case, base=base)
    assert (ended.status, ended.fault, ended.fault_at) == (FAULT, Fault.ADDRESS, base)
    assert not any(bench.monitor.bursts.values())
    np.testing.assert_array_equal(ended.dram, case.dram)
    await bench.prove(case)


def _shifted(text, bytes_):
    """The program with all its addresses moved."""
    words = []
    for word in text.split(" "):
        name, equals, value = word.partition("=")
        if name == "dram_base":
            word = f"{name}{equals}{int(value, 16) + bytes_:#x}"
        words.append(word)
    return " ".join(words).replace(".base 0x2fa4", f".base {0x2FA4 + bytes_:#x}")
