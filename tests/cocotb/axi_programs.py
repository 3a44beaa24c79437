"""Random programs in front of a memory that delays and reorders as it likes: same DRAM as ever."""

from __future__ import annotations

import cocotb
from axi_bench import CONFIG, Bench, Reordering
from cocotbext.axi import AxiSlaveRead

from vdla.analysis.case import Case
from vdla.sim.random_programs import random_program

SIZES = (12, 30, 60)


@cocotb.test()
@cocotb.parametrize(seed=range(14))
async def random_programs_do_what_the_simulator_does(dut, seed):
    bench = await Bench.begin(dut, seed, peer=(AxiSlaveRead, Reordering)[seed % 2])
    bench.slow_down()
    await bench.prove(Case.of(random_program(CONFIG, seed, SIZES[seed % 3])))
