"""Memories with banks: the simulator's and the bench's, which C++ has, differ in no cycle."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from random_banks import random_memory

from vdla.analysis.case import Case
from vdla.analysis.cases import random_case
from vdla.analysis.machines import Machines, behind, first_difference, simulate
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Mem, Store
from vdla.isa.program import Program
from vdla.isa.registers import Fault
from vdla.sim.timing import Clock

TINY = load_config("tiny")


def assert_equal(config, numbers):
    machines = Machines(config)
    for number in numbers:
        memory = random_memory(Random(number), config)
        case = random_case(config, number)
        assert first_difference(case, *machines.run(case, memory)) is None, (number, memory)


def test_random_programs_behind_random_banks():
    assert_equal(TINY, range(60))


@pytest.mark.long
@pytest.mark.parametrize("name", ["ulx3s", "ulx3s-wide", "paper-plus", "paper-full"])
def test_other_machines_behind_random_banks(name):
    assert_equal(load_config(name), range(100, 600))


def test_an_error_before_another_memory_stays_there():
    store = Store(memory=Mem.ACC8, dram_base=0x1000, x_size=1, y_size=1, z_size=1)
    case, machines = Case.of(Program(TINY, [store, Finish()], 0)), Machines(TINY)
    banks = random_memory(Random(0), TINY)
    for each, memory in (
        (replace(case, errors=(0x1000, 0x1004)), replace(TINY.memory, banks=None)),
        (case, banks),
        (replace(case, errors=(0x1000, 0x1004)), banks),
        (case, replace(TINY.memory, banks=None)),
    ):
        simulated, rtl = machines.run(each, memory)
        assert first_difference(each, simulated, rtl) is None
        assert rtl.fault == (Fault.BUS if each.errors[1] else Fault.NONE)


@pytest.mark.parametrize("number", range(20))
def test_cycles_that_are_passed_over_are_those_that_were_stepped(number):
    case = random_case(TINY, number)
    memory = random_memory(Random(number), TINY)
    quick = simulate(case, memory)
    stream = replace(case.stream, config=behind(TINY, memory))
    stepped = Clock(
        stream, case.dram.copy(), identity=case.identity, errors=case.errors, stepped=True
    )
    assert quick.cycles == stepped.cycles
    assert quick.finish.tolist() == stepped.finish.tolist()
