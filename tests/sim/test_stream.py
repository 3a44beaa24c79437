"""Programs as arrays: what is legal in rows is what is legal in instructions."""

from __future__ import annotations

import random

import pytest

from vdla.isa.config import config_names, load_config
from vdla.isa.instructions import INSTRUCTIONS, Finish, Unknown
from vdla.sim.stream import Stream


@pytest.mark.parametrize("name", config_names())
def test_rows_are_legal_where_instructions_are(name):
    """Enumerated fields with all values that their bits hold, legal in a config or not."""
    config, rng = load_config(name), random.Random(7)
    program = [Unknown(7), Finish()]
    for cls in INSTRUCTIONS:
        for _ in range(50):
            values = {f.name: rng.randrange(16) for f in cls.fields if f.names and f.name != "op"}
            program.append(cls(**values))
    legal = [each.is_legal(config) for each in program]
    assert Stream.of(config, program).legal.tolist() == legal
    assert {True, False} == set(legal)
