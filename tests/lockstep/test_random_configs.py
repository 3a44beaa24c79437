"""Lockstep's programs on random configs: legal, sound, and ending as they were made to."""

from __future__ import annotations

from random import Random

import pytest
from random_configs import random_options, random_settings

from vdla.analysis import lockstep
from vdla.analysis.case import Ending
from vdla.analysis.cases import DIRECTED, random_case, recipes
from vdla.analysis.lockstep import memory_models
from vdla.analysis.machines import Machines, simulate
from vdla.isa.config import engine_options, load_config
from vdla.runtime.rtl.build import verilog
from vdla.runtime.rtl.verilate import verilate
from vdla.sim.checker import check

MINIMAL = ("block_in=36", "inp_bytes=144", "wgt_bytes=432", "acc_bytes=96", "uop_bytes=64")


def assert_ends_as_made(config, number):
    case = random_case(config, number)
    outcome = simulate(case, memory_models(config)[number % 3])
    assert case.purpose in (None, outcome.ending), (number, case.goal)
    if case.purpose == Ending.FAULT:
        assert outcome.fault == recipes(config)[case.goal].fault, (number, case.goal)
    if not case.mistake:
        assert check(config, case.stream.instructions, case.dram, case.base) == [], number


def config_of(seed):
    """A config with options that are drawn, too, where the seed is odd."""
    rng = Random(seed)
    settings = random_settings(rng)
    return load_config("tiny", random_options(rng, settings) if seed % 2 else settings)


def test_options_meet_blocks_of_every_ratio():
    """Forwarding too, where an entry of INP is longer or shorter than one of ACC."""
    drawn = {name: set() for name in ("forwarding", "window_taps", *engine_options())}
    for seed in range(1, 2001, 2):
        config = config_of(seed)
        for name, ratios in drawn.items():
            if getattr(config, name):
                ratios.add(config.block_in / config.block_out)
    for name, ratios in drawn.items():
        assert {1 / 16, 1 / 8, 1 / 4, 1, 4, 8, 16} <= ratios, (name, ratios)


@pytest.mark.parametrize("seed", range(10))
def test_every_recipe_and_chance(seed):
    config = config_of(seed)
    for number in range(len(recipes(config))):
        assert_ends_as_made(config, DIRECTED * number)
    for number in range(1000 * seed + 1, 1000 * seed + 20, 2):
        assert_ends_as_made(config, number)


@pytest.mark.parametrize("number", [*range(5551, 5591), *range(777001, 777041)])
def test_small_buffers_have_narrow_fields(number):
    """One past the end is more than an address of four entries can say."""
    assert_ends_as_made(load_config("tiny", MINIMAL), number)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_every_recipe_and_chance_on_more_configs(part):
    for seed in range(100 + 20 * part, 120 + 20 * part):
        test_every_recipe_and_chance(seed)


SINGLE = ("burst_beats=1", "read_buffer_beats=1", "reads_in_flight=1", "writes_in_flight=1",
          "token_queue=1", "command_queue=2")  # fmt: skip


def test_verilator_takes_bursts_of_one_beat(tmp_path):
    """Comparisons that such a config makes constant are warnings to it, and no model is built."""
    (tmp_path / "vdla.v").write_text(verilog(load_config("tiny", SINGLE)))
    verilate(tmp_path, "vdla", ("vdla.v",))
    assert (tmp_path / "model" / "Vvdla.h").exists()


@pytest.mark.long
def test_simulator_and_rtl_with_one_of_everything():
    *_, tally = lockstep.lockstep(Machines(load_config("tiny", SINGLE)), 200, 0)
    assert not tally.failed, (tally.differences, tally.unexpected)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_simulator_and_rtl_on_random_configs(seed):
    *_, tally = lockstep.lockstep(Machines(config_of(seed)), 100, 1000 * seed)
    assert not tally.failed, (tally.differences, tally.unexpected)
    assert tally.programs == 100
