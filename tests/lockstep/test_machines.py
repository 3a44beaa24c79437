"""The simulator's memories have the names of the RTL's, options' among them."""

from __future__ import annotations

import pytest

from vdla.analysis.case import Case
from vdla.analysis.machines import simulate
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish
from vdla.isa.program import Program
from vdla.runtime.rtl.build import scratchpads


@pytest.mark.parametrize("settings", [(), ("table_bytes=1024",), ("window_taps=2",)])
def test_memories_have_the_names_of_the_rtl(settings):
    config = load_config("tiny", list(settings))
    outcome = simulate(Case.of(Program(config, [Finish()], 0)), config.memory)
    assert set(outcome.memories) == {"dram", *scratchpads(config)}
