"""Work beside GEMM, in runs of which it is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.analysis import hiding
from vdla.analysis.hiding import Work
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Finish, Gemm, Load, Mem, Store
from vdla.sim.machine import Run

THREE, FOUR = load_config("tiny"), load_config("tiny", ["vector_engine=1"])


def run(config, *spans):
    """A run of instructions, each with its first and last cycle."""
    instructions, start, finish = zip(*spans, (Finish(), 39, 39), strict=True)
    return Run(config, instructions, 40, np.array(start), np.array(finish), {})


def test_cycles_count_once_however_many_instructions_are_in_flight():
    result = hiding.work(
        run(THREE, (Load(), 0, 9), (Load(), 5, 14), (Gemm(), 10, 12), (Gemm(), 12, 19),
            (Store(memory=Mem.ACC8), 20, 29))
    )  # fmt: skip
    assert result == {"LOAD": Work(15, 5), "STORE": Work(10, 0)}


@pytest.mark.parametrize(
    ("config", "expected"),
    [(THREE, {"LOAD": Work(), "STORE": Work()}),
     (FOUR, {"LOAD": Work(), "VECTOR": Work(8, 3), "STORE": Work()})],
    ids=["three", "four"],
)  # fmt: skip
def test_alu_is_work_beside_gemm_where_it_has_an_engine(config, expected):
    result = hiding.work(run(config, (Gemm(), 0, 4), (Alu(), 2, 9)))
    assert result == expected
    assert list(result) == list(expected)  # in ring order


def test_a_share_needs_work():
    assert (Work(8, 3).text, Work(8, 0).text, Work().text) == ("37.5 %", "0.0 %", "–")
    assert hiding.total([Work(8, 3), Work(), Work(2, 1)]) == Work(10, 4)
