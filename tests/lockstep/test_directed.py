"""Directed programs: they end well on every bundled config, and ``numbers`` is of use."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from vdla.analysis.case import Case, Ending
from vdla.analysis.directed import RESULTS_AT, _vectors, directed
from vdla.analysis.machines import simulate
from vdla.isa.config import config_names, load_config


@pytest.mark.parametrize("name", config_names())
def test_numbers_of_every_size_give_results_that_depend_on_every_bit(name):
    config = load_config(name)
    narrow, wide = [], []
    for seed in range(8):
        outcome = simulate(
            Case.of(directed(config)["numbers"](config, Random(seed))), config.memory
        )
        assert outcome.ending == Ending.FINISH
        dram = np.frombuffer(outcome.memories["dram"], np.uint8)
        vectors = _vectors(config)
        lanes = vectors * config.block_out
        narrow += dram[RESULTS_AT : RESULTS_AT + lanes].view(np.int8).tolist()
        wide += dram[RESULTS_AT + 4096 :][: 16 * lanes].view(np.int32).tolist()
    inside = [value for value in narrow if -128 < value < 127]
    assert len(inside) > 0.6 * len(narrow)
    assert len(set(inside)) > 60
    bits = np.unpackbits(np.asarray(wide, np.int32).view(np.uint8)).reshape(-1, 32).mean(0)
    assert (bits > 0.1).all()
    assert (bits < 0.9).all()
