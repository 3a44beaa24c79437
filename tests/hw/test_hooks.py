"""Options of a config in hw: their files are found, and a config has the hooks of its own ones."""

from __future__ import annotations

import pytest

from vdla.hw.alu import AluHooks
from vdla.hw.compute.seams import MicroOpHooks
from vdla.hw.core.memories import MemoryHooks
from vdla.hw.core.units import EngineHooks
from vdla.hw.gemm import GemmHooks
from vdla.hw.hooks import Hooks, hooks_of
from vdla.hw.load.memory_ports import FormHooks
from vdla.hw.options import option_files
from vdla.hw.store.destination import DestinationHooks
from vdla.isa.config import load_config
from vdla.isa.options import OPTIONS
from vdla.isa.options import option_files as declared

SEAMS = (AluHooks, MicroOpHooks, MemoryHooks, EngineHooks, GemmHooks, DestinationHooks,
         FormHooks)  # fmt: skip
EVERY = load_config(
    "tiny",
    ["block_in=8", "table_bytes=512", "forwarding=1", "window_taps=2", "window_rows=2",
     "vector_engine=1", "reciprocal_units=1", "fabric_lanes=2", "alu_groups=2",
     "weights4=1"],
)  # fmt: skip


def hooks(config):
    return [hook for seams in SEAMS for hook in hooks_of(seams, config)]


def test_a_file_has_the_hooks_of_its_namesake_in_isa():
    options = {file.__name__.split(".")[-1]: file.OPTIONS for file in declared()}
    for file in option_files():
        name = file.__name__.split(".")[-1]
        classes = [each for each in vars(file).values() if isinstance(each, type)]
        own = [
            each for each in classes if issubclass(each, Hooks) and each.__module__ == file.__name__
        ]
        assert all(each.option in options[name] for each in own)


def test_every_option_has_hooks():
    assert {hook.option for hook in hooks(EVERY)} == {o for o in OPTIONS if o.is_on(EVERY)}


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_a_config_without_options_has_none(name):
    assert hooks(load_config(name)) == []


def test_they_come_by_rank():
    for seams in SEAMS:
        ranks = [hook.option.rank for hook in hooks_of(seams, EVERY)]
        assert ranks == sorted(ranks)
