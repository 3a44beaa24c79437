"""Memories with banks: the simulator's and the bench's, which C++ has, differ in no cycle."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from random_banks import random_memory

from vdla.analysis.cases import random_case
from vdla.analysis.machines import Machines, behind, first_difference, simulate
from vdla.isa.config import load_config
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
