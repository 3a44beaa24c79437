"""Simulator and RTL agree on every cycle and every byte; and when they don't, it is noticed."""

from __future__ import annotations

import re
from dataclasses import replace
from multiprocessing import active_children

import numpy as np
import pytest
from amaranth import Signal
from planting import plant

from vdla import api
from vdla.analysis import lockstep
from vdla.analysis.case import Ending, Outcome
from vdla.analysis.cases import random_case
from vdla.analysis.coverage import Coverage
from vdla.analysis.lockstep import LockstepDevice, Tally, memory_models
from vdla.analysis.machines import (
    SPARE_CYCLES,
    Difference,
    Machines,
    first_difference,
    limit_of,
    simulate,
    standing,
)
from vdla.analysis.shrink import shrink
from vdla.farm.processes import ProcessPool
from vdla.hw import gemm, requantize, scratchpad, tokens
from vdla.hw.compute import compute
from vdla.hw.core import faults
from vdla.hw.load import request
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Gemm, Load
from vdla.isa.registers import Fault
from vdla.runtime.executor import Executor
from vdla.sim.machine import SimulationError
from vdla.sim.stream import Stream
from vdla.support.errors import CheckError

TINY = load_config("tiny")
SHAPES = {
    # 8 × 4 lanes; an ACC8 entry is one beat, a WGT tile eight; buffers of odd depths
    "not square": ("block_in=8", "inp_bytes=2008", "acc_bytes=1616", "uop_bytes=1000"),
}  # fmt: skip
MORE_SHAPES = {
    # 16 × 8 behind 64 bits; small queues and credits, so that they run full
    "tight": (
        "block_in=16", "block_out=8", "port_bytes=8", "inp_bytes=2048", "wgt_bytes=4096",
        "acc_bytes=4096", "command_queue=2", "token_queue=1", "burst_beats=5",
        "reads_in_flight=2", "read_buffer_beats=9", "writes_in_flight=1",
    ),
    # entries of three beats
    "threes": ("block_in=12", "block_out=12", "inp_bytes=3072", "wgt_bytes=4608", "acc_bytes=6144"),
    "wide port": (
        "block_in=16", "block_out=16", "port_bytes=16", "inp_bytes=4096", "wgt_bytes=8192",
        "acc_bytes=8192", "uop_bytes=4096", "memory.bytes_per_cycle=16",
    ),
    "long bursts": ("burst_beats=256", "read_buffer_beats=300", "reads_in_flight=3"),
    # instructions of six beats, the fetch buffer's size by its bursts
    "bursts end within an instruction": (
        "inp_bytes=256", "burst_beats=256", "read_buffer_beats=300", "command_queue=2",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny():
    return Machines(TINY)


def assert_equal(
    machines: Machines, programs: int, seed: int = 0, coverage: Coverage | None = None
) -> None:
    *_, tally = lockstep.lockstep(machines, programs, seed, coverage=coverage)
    assert tally.programs == programs
    assert tally.instructions > programs
    assert (tally.mismatches, tally.max_cycle_error) == (0, 0), tally.differences
    assert tally.unexpected_endings == 0, tally.unexpected
    assert tally.ended + tally.faulted + tally.deadlocked == programs
    assert tally.ended > programs // 2


def test_tiny(tiny):
    assert_equal(tiny, 60)


@pytest.mark.long
def test_more_of_tiny(tiny):
    """These programs reach every goal, too."""
    coverage = Coverage(TINY)
    assert_equal(tiny, 300, coverage=coverage)
    assert coverage.missing == []


def test_the_command_reports_coverage(vdla):
    done = vdla("lockstep", "-c", "tiny", "--programs", 8, "--coverage", "--json")
    found = done.json["coverage"]
    assert (done.code, done.json["programs"], done.json["mismatches"]) == (0, 8, 0)
    assert found["goals"] - found["reached"] == len(found["missing"]) > 0
    assert sum(each["reached"] for each in found["groups"].values()) == found["reached"]
    text = vdla("lockstep", "-c", "tiny", "--programs", 8, "--coverage").out
    assert f"{found['reached']} of {found['goals']}" in text
    assert f"not reached: {found['missing'][0]}" in text
    wrong = vdla("lockstep", "-c", "tiny", "--model", "digits", "--coverage")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == "vdla: --coverage: expected no --model, found both\n"


@pytest.mark.long
def test_processes_see_what_one_sees(vdla):
    options = ("lockstep", "-c", "tiny", "--programs", 60, "--memories", 1, "--coverage", "--json")
    one, two = (vdla(*options, "--workers", workers).json for workers in (1, 2))
    for name in ("programs", "instructions", "mismatches", "max_cycle_error", "coverage"):
        assert one[name] == two[name]


@pytest.mark.long
@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_other_shapes(settings):
    assert_equal(Machines(load_config("tiny", settings)), 60, seed=1000)


@pytest.mark.long
@pytest.mark.parametrize("settings", MORE_SHAPES.values(), ids=MORE_SHAPES)
def test_more_shapes(settings):
    assert_equal(Machines(load_config("tiny", settings)), 300, seed=2000)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("tiny", ()),
        ("narrow", ()),
        ("paper", ()),
        ("paper", ("port_bytes=16", "memory.bytes_per_cycle=16")),
    ],
)
def test_five_thousand_programs(name, settings):
    assert_equal(Machines(load_config(name, settings)), 5000)


@pytest.mark.long
def test_resnet18():
    """The whole network: every instruction's cycles, every byte of every memory."""
    config = load_config("paper")
    module = api.compile("resnet18", config)
    device = LockstepDevice(Machines(config))
    Executor(module, device).run(api.random_inputs(module))
    tally = device.tally
    assert tally.cycles > 7_000_000
    assert (tally.mismatches, tally.max_cycle_error, tally.ended) == (0, 0, 1)


def test_a_network(tiny):
    module = api.compile("digits", TINY)
    device = LockstepDevice(tiny)
    Executor(module, device).run(api.random_inputs(module))
    assert (device.tally.programs, device.tally.ended, device.tally.failed) == (1, 1, False)


# Programs that end badly ----------------------------------------------------------------------


def test_spoilt_programs_end_alike(tiny):
    """Every kind of fault and deadlock turns up, at the same cycle and instruction."""
    ends = set()
    for seed in range(400):
        case = random_case(TINY, seed)
        if case.mistake:
            memory = memory_models(TINY)[seed % 3]
            simulated, rtl = tiny.run(case, memory)
            assert first_difference(case, simulated, rtl) is None, (seed, case.mistake)
            ends.add("deadlock" if simulated.cycles < 0 else simulated.fault)
    assert ends >= {*Fault, "deadlock"} - {Fault.NONE}


def test_a_fault_leaves_nothing_behind(tiny):
    """After each fault the next program runs as on a new core."""
    memory = memory_models(TINY)[2]
    wrong = [c for c in (random_case(TINY, seed) for seed in range(200)) if c.mistake]
    sound = next(c for c in (random_case(TINY, seed) for seed in range(200)) if not c.mistake)
    for case in wrong[:12]:
        tiny.run_rtl(case, memory)
        assert first_difference(sound, *tiny.run(sound, memory)) is None


# How programs end -----------------------------------------------------------------------------


def test_the_command_says_how_programs_ended(vdla):
    """Most are made to end; of 60 one is the recipe of the deadlock, and 14 those of faults."""
    found = vdla("lockstep", "-c", "tiny", "--programs", 60, "--seed", 156, "--json").json
    assert found["ended"] + found["faulted"] + found["deadlocked"] == found["programs"] == 60
    assert (found["unexpected_endings"], found["deadlocked"] > 0) == (0, True)
    text = vdla("lockstep", "-c", "tiny", "--programs", 60, "--seed", 156).out
    rows = {cells[1].strip(): cells[2].strip() for line in text.splitlines()
            if len(cells := line.split("│")) == 4}  # fmt: skip
    for name in ("ended", "faulted", "deadlocked", "unexpected_endings"):
        assert rows[name.replace("_", " ")] == str(found[name])


def stuck(config, seed):
    """Program 3 waits for a token that nobody gives; it was made to end."""
    case = random_case(config, seed)
    if seed != 3:
        return case
    first, *others = case.stream.instructions
    return case.with_instructions([first.replace(pop_prev=1), *others])


def test_machines_that_stand_still_alike_are_no_success(vdla, monkeypatch):
    monkeypatch.setattr(lockstep, "random_case", stuck)
    done = vdla("lockstep", "-c", "tiny", "--programs", 4, "--seed", 1)
    assert done.code == 1
    assert done.err.splitlines()[-1] == (
        "program --seed 3, with memory 0 cycles, 4 B/cycle: expected it to end with its FINISH, "
        "found a deadlock"
    )
    assert (
        "tiny: equal in every cycle and byte; programs that ended otherwise than made to: 1"
        in done.out
    )


def test_a_fault_that_does_not_come_is_no_success(tiny, monkeypatch):
    sound = next(c for c in (random_case(TINY, s) for s in range(50)) if not c.mistake)
    case = replace(sound, goal="no FINISH", purpose=Ending.FAULT)
    monkeypatch.setattr(lockstep, "random_case", lambda config, seed: case)
    *_, tally = lockstep.lockstep(tiny, 7, 0)
    assert (tally.ended, tally.mismatches, tally.unexpected_endings) == (7, 0, 7)
    assert tally.failed
    assert len(tally.unexpected) == lockstep.NAMED
    assert {(e.goal, e.purpose, e.ending) for e in tally.unexpected} == {
        ("no FINISH", Ending.FAULT, Ending.FINISH)
    }


def test_tallies_of_processes_add_up():
    """The endings of all, and the first programs of those that are named."""
    unexpected = [lockstep.UnexpectedEnding(n, "", TINY.memory, Ending(0), Ending(2)) for n in (1,)]
    one, two = Tally(), Tally()
    one.end([Ending.FINISH, Ending.DEADLOCK], unexpected)
    two.end([Ending.FINISH, Ending.FAULT], [])
    two.end([Ending.FINISH, Ending.FINISH], [])
    one.merge(two)
    assert (one.programs, one.ended, one.faulted, one.deadlocked) == (3, 1, 1, 1)
    assert (one.unexpected_endings, one.unexpected, one.failed) == (1, unexpected, True)


def test_a_model_that_stands_still_on_both_machines_fails(vdla, monkeypatch):
    def deadlock(case, memory):
        simulated = simulate(case, memory)
        return replace(simulated, cycles=-1), replace(simulated, cycles=-1)

    monkeypatch.setattr(Machines, "run", lambda self, case, memory: deadlock(case, memory))
    done = vdla("lockstep", "-c", "tiny", "--model", "digits", "--json")
    assert (done.code, done.json["deadlocked"], done.json["mismatches"]) == (1, 1, 0)
    assert done.err.splitlines()[-1] == (
        "the model's program, with memory 64 cycles, 4 B/cycle: expected it to end with its "
        "FINISH, found a deadlock"
    )


# The check can fail ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("room", "constant", "value", "first", "most"),
    [
        # One more register in GEMM's adder tree: sums come a cycle late.
        pytest.param(gemm, "TREE_STAGES", gemm.TREE_STAGES + 1, "byte", 7, marks=pytest.mark.long),
        # Eight LOADs show that the eighth waits, and FINISH ends them.
        pytest.param(request, "IN_FLIGHT", 7, "instruction", 9, marks=pytest.mark.long),
    ],
)
def test_a_change_of_the_rtl_is_caught(
    vdla, monkeypatch, tmp_path, room, constant, value, first, most
):
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    monkeypatch.setattr(room, constant, value)
    done = vdla("lockstep", "-c", "tiny", "--programs", 200)
    assert done.code == 1
    assert "they differ" in done.out
    assert f"first difference: {first}" in done.err
    assert "number | start sim/rtl | finish sim/rtl" in done.err
    listed = [line for line in done.err.splitlines() if line[:1].isdigit()]
    assert 1 < len(listed) <= most  # shrunk to a handful of instructions
    assert "FINISH" in listed[-1]


FAULTS = {
    "ties go the other way": (
        requantize, "Requantize", "elaborate", "(rest | quotient[0])", "(rest | ~quotient[0])",
    ),
    "a token is lost in a queue that is nearly full": (
        tokens, "TokenQueue", "elaborate", "tokens.move(self.push, self.pop)",
        "tokens.move(self.push & (tokens.value != self.depth - 2), self.pop)",
    ),
    "a bus error of LOAD is called an address": (
        faults, "Faults", "_in_order", "(of_load, Fault.BUS", "(of_load, Fault.ADDRESS",
    ),
    "a program for another config is called one of another ISA": (
        faults, "Faults", "_refused", "Fault.PROGRAM_CONFIG", "Fault.PROGRAM_ISA",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_faults_that_chance_does_not_find(name, monkeypatch, tmp_path):
    """Each within 300 programs, at the default depth of the queues."""
    plant(FAULTS[name], monkeypatch, tmp_path)
    tallies = lockstep.lockstep(Machines(TINY), 300, 0, keep=0)
    found = next((t.programs for t in tallies if t.mismatches), None)
    assert found is not None
    print(f"{name}: found by program {found}")


NEVER = (compute, "Compute", "_write", "(write.valid & write.last)", "(write.valid & 0)")


@pytest.mark.long
def test_an_instruction_that_never_finishes(vdla, monkeypatch, tmp_path):
    """The bench doesn't wait for ever: after some more cycles than the simulator took it says what
    stands still."""
    plant(NEVER, monkeypatch, tmp_path)
    done = vdla("lockstep", "-c", "tiny", "--programs", 3)
    assert done.code == 1
    (line,) = (each for each in done.err.splitlines() if "expected the RTL to end" in each)
    assert re.fullmatch(
        r"expected the RTL to end within [\d,]+ cycles, found COMPUTE at instruction (\d+) "
        r"unfinished since cycle \d+: (GEMM|ALU).*", line
    )  # fmt: skip
    number = line.split("instruction ")[1].split()[0]
    assert f"first difference: instruction {number}," in done.err


def test_how_long_the_rtl_may_take():
    ended, stuck = outcome(cycles=500), outcome(cycles=-1)
    assert limit_of(ended) == 1000 + SPARE_CYCLES
    assert limit_of(stuck) == 20 + SPARE_CYCLES


def test_what_stands_still():
    stream = Stream.of(TINY, [Load(), Gemm(uop_count=2), Load(), Finish()])
    start, finish = np.array([5, 9, 7, -1]), np.array([6, -1, -1, -1])
    assert standing(stream, start, finish, 1234) == (
        "expected the RTL to end within 1,234 cycles, found LOAD at instruction 2 unfinished since "
        "cycle 7: LOAD"
    )
    finish[1:3] = 12
    assert "found that no instruction is under way" in standing(stream, start, finish, 1234)


@pytest.mark.long
def test_nobody_reads_what_is_being_written(vdla, monkeypatch, tmp_path):
    """Block RAM of an ECP5 gives anything then: here, what it gives is wrong."""
    true = scratchpad.Scratchpad.elaborate

    def collides(self, platform):
        m = true(self, platform)
        for i, inner in enumerate(m.submodules.mem.read_ports):
            outer, hit = getattr(self, f"read_{i}"), Signal(name=f"hit_{i}")
            with m.If(outer.enable):
                at_once = self.write.enable.any() & (self.write.address == outer.address)
                m.d.sync += hit.eq(at_once)
            with m.If(hit):
                m.d.comb += outer.data.eq(~inner.data)
        return m

    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    monkeypatch.setattr(scratchpad.Scratchpad, "elaborate", collides)
    done = vdla("lockstep", "-c", "tiny", "--programs", 150)
    assert done.code == 0, done.err


@pytest.mark.long
def test_a_killed_process_is_named(tiny):
    """With how far it came."""
    with ProcessPool(resources=[{"rtl": ""}] * 2) as pool:
        running = lockstep.lockstep_in_parallel(TINY, 5000, 700, pool=pool, memories=1)
        next(running)
        for worker in active_children():
            worker.kill()
        with pytest.raises(CheckError) as failed:
            list(running)
    found = re.fullmatch(
        r"workers: expected processes that run their programs, found one that doesn't: the process "
        r"ended with exit code -9 \(out of memory\?\); every program before --seed (\d+) has been "
        "run",
        str(failed.value),
    )
    assert 700 <= int(found[1]) < 5700
    assert int(found[1]) % lockstep.CHUNK == 0


class Pretended:
    """Machines of which the RTL takes one cycle more for every STORE."""

    config = TINY

    def renew(self):
        self.renewed = True

    def run(self, case, memory):
        simulated = simulate(case, memory)
        stores = case.stream.engine(2)
        finish = simulated.finish.copy()
        finish[stores] += 1
        return simulated, replace(simulated, finish=finish)


def test_shrinking_keeps_what_differs():
    memory = TINY.memory
    machines = Pretended()
    case = next(
        c for c in (random_case(TINY, s) for s in range(50)) if not c.mistake and len(c.raw) > 640
    )
    seen = Difference(case, memory, *machines.run(case, memory), "instruction 0", 0)
    found = shrink(machines, seen)
    mnemonics = [each.mnemonic for each in found.case.stream.instructions]
    assert mnemonics == ["STORE", "FINISH"]
    assert (found.where, found.instruction) == ("instruction 0", 0)


def test_what_is_not_defined_is_no_smaller_case():
    """Leaving something out, a program may come to read micro-ops while they are loaded."""

    class Undefined(Pretended):
        def run(self, case, memory):
            if len(case.stream.instructions) < size:
                raise SimulationError("micro-ops that lead beyond a memory")
            return super().run(case, memory)

    seeds = (random_case(TINY, s) for s in range(100))
    case = next(c for c in seeds if c.mistake == "token" and len(c.stream.engine(2)) > 1)
    size, machines = len(case.stream.instructions), Undefined()
    seen = Difference(case, TINY.memory, *machines.run(case, TINY.memory), "instruction 0", 0)
    assert len(shrink(machines, seen).case.stream.instructions) == size


def test_a_difference_that_hangs_on_the_past_is_given_back(tiny):
    case = next(c for c in (random_case(TINY, s) for s in range(50)) if not c.mistake)
    simulated, rtl = tiny.run(case, TINY.memory)
    seen = Difference(case, TINY.memory, simulated, rtl, "instruction 3", 3)
    found = shrink(tiny, seen)
    assert found.case is case
    assert found.where == "instruction 3, only after the programs before it"


def outcome(**changes) -> Outcome:
    """Of a program of two instructions."""
    two = np.array([3, 9], np.int64)
    base = Outcome(10, two, two + 1, {"LOAD_BUSY": 4}, Fault.NONE, 0, {"dram": np.zeros(4)}, 0.1)
    return replace(base, **changes)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({}, None),
        ({"start": np.array([3, 8])}, "instruction 1"),
        ({"finish": np.array([5, 10])}, "instruction 0"),
        ({"fault": Fault.BUS, "fault_at": 64}, "the fault"),
        ({"cycles": 11}, "the cycles"),
        ({"overdue": "expected the RTL to end"}, "the end"),
        ({"causes": {"LOAD_BUSY": 5}}, "counter LOAD_BUSY"),
        ({"memories": {"dram": np.array([0, 0, 7, 0])}}, "byte 0x2 of dram"),
    ],
)
def test_differences_are_named(changes, where):
    case = random_case(TINY, 1)
    found = first_difference(replace(case, mistake=""), outcome(), outcome(**changes))
    assert (found and found[0]) == where
