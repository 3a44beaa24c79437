"""What lockstep reaches: every case ends as its recipe says, and goals are ticked off rightly."""

from __future__ import annotations

from random import Random

import pytest

from vdla.analysis.case import Case, Ending
from vdla.analysis.cases import faults, random_case, recipes
from vdla.analysis.coverage import Coverage, goals
from vdla.analysis.coverage.fields import kind, kinds
from vdla.analysis.lockstep import memory_models
from vdla.analysis.machines import simulate
from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Mem, instruction_set
from vdla.isa.registers import Fault
from vdla.sim.checker import check

TINY = load_config("tiny")
CONFIGS = {
    "tiny": TINY,
    "paper": load_config("paper"),
    "tight": load_config("tiny", ["token_queue=1", "command_queue=2", "burst_beats=5",
                                  "reads_in_flight=2", "writes_in_flight=1"]),
    "tables": load_config("tiny", ["table_bytes=1024"]),
    "one table": load_config("tiny", ["table_bytes=512"]),
    "forwarding": load_config("narrow", ["forwarding=1", "writes_in_flight=1"]),
    "a window": load_config("tiny", ["block_in=8", "wgt_bytes=4096", "window_taps=3"]),
    "two rows": load_config("tiny", ["block_in=8", "wgt_bytes=4096", "window_taps=2",
                                     "window_rows=2"]),
    "roomy": load_config("narrow", ["token_queue=1000", "memory.latency=500"]),
}  # fmt: skip


def run(case, memory=TINY.memory):
    coverage = Coverage(case.config)
    coverage.add(case, simulate(case, memory))
    return coverage.reached


def of(text, base=0x1000):
    program = assemble(f".base {base:#x}\n{text}\nFINISH", TINY)
    return Case.of(program)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_recipes_end_as_they_say(config):
    """Faults where they must, everything else sound, in front of any memory."""
    known = recipes(config)
    for number in range(len(known)):
        case = random_case(config, 4 * number)
        memory = memory_models(config)[number % 3]
        outcome = simulate(case, memory)
        assert outcome.ending == case.purpose == known[case.goal].purpose, case.goal
        assert outcome.fault == known[case.goal].fault, case.goal
        if case.purpose == Ending.FINISH:
            assert not check(config, case.stream.instructions, case.dram, case.base), case.goal
    assert {each.fault for each in faults(config).values()} == {*Fault} - {Fault.NONE}


@pytest.mark.parametrize("goal", ["a src beyond INP", "an x beyond ACC", "a micro-op beyond UOP"])
def test_no_micro_op_is_loaded_while_it_is_read(goal):
    """Beside an instruction more that reads micro-ops, no LOAD writes any."""
    loads = [
        each
        for seed in range(30)
        for each in recipes(TINY)[goal].make(TINY, Random(seed)).stream.instructions
        if getattr(each, "memory", None) == Mem.UOP
    ]
    assert loads
    for each in loads:
        assert each.x_size + each.pad_x0 + each.pad_x1 == 0


def test_random_programs_are_sound():
    for seed in range(1, 200):
        case = random_case(TINY, seed)
        if not case.mistake:
            assert not check(TINY, case.stream.instructions, case.dram, case.base), seed


@pytest.mark.parametrize("config", [TINY, CONFIGS["a window"]], ids=["tiny", "a window"])
def test_every_value_of_a_field_is_of_a_known_kind(config):
    for cls in instruction_set(config):
        for f, _, _ in cls.layout(config)[1:] if cls is not Finish else ():
            low, high = f.bounds(config)
            legal = f.legal(config)
            for value in {low, low + 1, 0, 1, 2, high - 1, high, *legal}:
                if low <= value <= high and (not legal or value in legal):
                    assert kind(f, cls(**{f.name: value}), config) in kinds(f, config)
            ends = {kind(f, cls(**{f.name: value}), config) for value in (low, high)}
            assert len(ends) > 1 or legal, f.name


def test_goals_are_distinct_and_nothing_is_reached_at_first():
    assert len(set(goals(TINY))) == len(list(goals(TINY)))
    coverage = Coverage(TINY)
    assert coverage.missing == sorted(coverage.goals)
    assert sum(goals for _, goals in coverage.by_group().values()) == len(coverage.goals)
    coverage.reached.add("no goal at all")
    assert all(reached == 0 for reached, _ in coverage.by_group().values())


ONE = "x_size=1 y_size=1 z_size=1"


def test_what_one_program_reaches():
    reached = run(of(
        f"LOAD memory=ACC {ONE} push_next\n"
        "ALU pop_prev push_next alu_op=MAX use_imm imm=7 uop_count=1\n"
        f"STORE pop_prev memory=ACC {ONE} dram_base=0x2000"
    ))  # fmt: skip
    groups = {group: {g for g in reached if g.startswith(group)} for group in
              ("hazards", "values", "tokens", "endings", "bursts")}  # fmt: skip
    assert groups == {
        "hazards": {"hazards: read after write: acc LOAD → COMPUTE",
                    "hazards: read after write: acc COMPUTE → STORE",
                    "hazards: write after write: acc LOAD → COMPUTE"},
        "values": {"values: ALU MAX: takes y", "values: ALU starts: from x"},
        "tokens": {f"tokens: {edge}: {what}" for edge in ("LOAD → COMPUTE", "COMPUTE → STORE")
                   for what in ("one", "waits for a token")},
        "endings": {"endings: FINISH"},
        "bursts": {f"bursts: {unit} {what}" for unit in ("LOAD", "STORE")
                   for what in ("of some beats", "ends with its run", "of a row")},
    }  # fmt: skip
    assert "fields: ALU imm positive" in reached
    assert "fields: STORE dram_base at a page" in reached
    assert "fields: GEMM init ACC" not in reached


def test_bursts_are_cut_as_the_machine_cuts_them():
    load = "LOAD dram_base=0x1fc0 x_size=40 y_size=1 z_size=1"
    assert {g for g in run(of(load)) if g.startswith("bursts")} == {
        f"bursts: LOAD {what}"
        for what in ("of a row", "as long as it may be", "of some beats", "ends at a page",
                     "ends at its longest", "ends with its run")
    }  # fmt: skip
    apart = "LOAD dram_base=0x1ffc x_size=2 y_size=1 z_size=1 x_stride=2"
    assert {g for g in run(of(apart)) if g.startswith("bursts")} == {
        f"bursts: LOAD {what}" for what in ("of an entry", "of one beat", "ends with its run")
    }


@pytest.mark.parametrize(("x", "scale", "kinds"), [
    (3, "0x01000001", {"a tie goes up"}),
    (5, "0x01000001", {"a tie goes down"}),
    (-3, "0x01000001", {"a tie goes down", "a tie of a negative"}),
    (4, "0x01000001", {"no tie"}),
    (4, "1", {"no tie", "a shift of 0"}),
    (4, "0", {"no tie", "a shift of 0", "a mantissa of 0"}),
    (4, "0x3f000001", {"no tie", "the largest shift"}),
    (1 << 20, "0x00ffffff", {"no tie", "a shift of 0", "the largest mantissa",
                             "the product saturates high", "limited high"}),
    (-(1 << 20), "0x00ffffff", {"no tie", "a shift of 0", "the largest mantissa",
                                "the product saturates low", "limited low"}),
    (100, "0x01000003", {"no tie", "limited high"}),
])  # fmt: skip
def test_values_of_requantization(x, scale, kinds):
    """x comes by MUL from a one, since nothing else loads a number of one's choice."""
    text = f".data 0 {(x & 0xFFFFFFFF).to_bytes(4, 'little').hex() * 4}\n"
    text += f"LOAD memory=ACC {ONE} push_next\n"
    text += f"ALU pop_prev alu_op=RQ use_imm imm={int(scale, 0)} uop_count=1 low=-100 high=90"
    limited = kinds & {"limited high", "limited low"} or {"within its limits"}
    found = {g.rpartition(": ")[2] for g in run(of(text)) if g.startswith("values: ALU RQ")}
    assert found == kinds | limited


def test_a_spoilt_program_reaches_no_values():
    """What it does isn't defined."""
    case = random_case(TINY, 4 * list(recipes(TINY)).index("an early FINISH"))
    groups = {goal.partition(":")[0] for goal in run(case)}
    assert "endings" in groups
    assert not groups & {"values", "hazards", "bursts"}
