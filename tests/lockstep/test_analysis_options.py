"""Options add to coverage and to the programs of lockstep; without an option nothing is there."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.analysis.case import Case
from vdla.analysis.cases import faults
from vdla.analysis.coverage.replay import Hook, Replay
from vdla.analysis.coverage.values import CORNERS, Lane, value_goals
from vdla.analysis.directed import directed
from vdla.analysis.machines import simulate
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, AluOp, Finish
from vdla.isa.program import Program
from vdla.sim.semantics import State

PLAIN = load_config("tiny")
ADDED = {  # by settings: faults, programs, and a goal of values
    ("table_bytes=1024",): (
        {"a table beyond TAB", "a LOAD beyond TAB"},
        {"a table beside another"},
        "ALU TABLE: a table but the first",
    ),
    ("table_bytes=512",): (
        {"a table beyond TAB", "a LOAD beyond TAB"},
        set(),
        "ALU TABLE: the last result",
    ),
    ("forwarding=1",): (
        {"a STORE beyond INP", "a STORE that leaves INP"},
        {"STOREs to INP beside LOADs"},
        None,
    ),
    ("window_taps=2",): (set(), set(), "GEMM's window: is full"),
    ("reciprocal_units=2",): (set(), set(), "ALU RSQRT: of 1"),
    ("vector_engine=1",): (set(), set(), None),
}


@pytest.mark.parametrize("settings", ADDED)
def test_what_options_add(settings):
    config = load_config("tiny", list(settings))
    more_faults, programs, goal = ADDED[settings]
    added = {name for name in faults(config).keys() - faults(PLAIN).keys() if "'s " not in name}
    assert added == more_faults
    assert directed(config).keys() - directed(PLAIN).keys() == programs
    goals = {*value_goals(config)} - {*value_goals(PLAIN)}
    assert goal is None if not goals else f"values: {goal}" in goals


def test_one_table_has_no_other():
    config = load_config("tiny", ["table_bytes=512"])
    assert "values: ALU TABLE: a table but the first" not in {*value_goals(config)}


def test_every_operation_has_corners():
    assert set(CORNERS) == set(AluOp)


def test_corners_name_what_their_observers_say():
    full = load_config("tiny", ["table_bytes=512", "reciprocal_units=2"])
    for op, corners in CORNERS.items():
        kinds = corners.observer(Lane(Alu(alu_op=op), 3, 5, State(full, np.zeros(64, np.uint8))))
        assert set(corners.kinds) <= set(kinds), op.name


def test_an_operand_is_cut_where_an_operation_takes_fewer_bits():
    state = State(PLAIN, np.zeros(64, np.uint8))
    assert not Lane(Alu(alu_op=AluOp.ADD), 1 << 30, 1 << 30, state).is_cut
    assert Lane(Alu(alu_op=AluOp.MUL), 0, 1 << 24, state).is_cut
    assert Lane(Alu(alu_op=AluOp.MUL), 0, 1 << 24, state).low("y") == -(1 << 24)


def test_a_hook_says_what_an_instruction_touches(monkeypatch):
    """As that of an engine does that no other instruction is like."""
    monkeypatch.setattr(Hook, "KINDS", [*Hook.KINDS])

    class Nest(Hook):
        def touched(self, each):
            return [], [("inp", 3)] if isinstance(each, Finish) else []

    case = Case.of(Program(PLAIN, [Finish()], 0))
    replay = Replay(case, simulate(case, PLAIN.memory))
    assert list(replay.writer) == [("inp", 3)]
