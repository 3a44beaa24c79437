"""Networks on designs: the cycles of ``vdla run``, a bound below them, and refusals in a line."""

from __future__ import annotations

import pickle

import pytest

from vdla import api
from vdla.api.modules import random_inputs
from vdla.compiler.models import model_path
from vdla.explore.networks import Networks
from vdla.isa.config import load_config


@pytest.fixture(scope="module")
def digits():
    return Networks({"digits": model_path("digits")})


@pytest.mark.parametrize("name", ["digits", pytest.param("patches", marks=pytest.mark.long)])
def test_cycles_are_those_that_run_counts(name):
    config = load_config("tiny")
    measured = Networks({name: model_path(name)}).exact(config)[name]
    module = api.compile(name, config, records="none")
    want = api.run(module, random_inputs(module)).cycles
    assert measured.cycles == want
    assert sum(measured.layers.values()) == want
    assert measured.refusal == ""
    assert sum(run.cycles for run in measured.runs) == want


def test_layers_share_the_cycles_out(digits):
    layers = digits.exact(load_config("tiny"))["digits"].layers
    assert list(layers) == ["conv1", "pool1", "conv2", "pool2", "fc"]
    assert min(layers.values()) > 0


@pytest.mark.parametrize(
    "settings",
    [
        "block_out=8 wgt_bytes=4096",
        "block_in=8 acc_bytes=4096 memory.latency=0",
        "inp_bytes=4096 memory.bytes_per_cycle=1 memory.latency=0",
        pytest.param("forwarding=1 window_taps=2 memory.latency=0", marks=pytest.mark.long),
        pytest.param("vector_engine=1 acc_bytes=16384", marks=pytest.mark.long),
    ],
)
def test_no_design_is_faster_than_its_bound(digits, settings):
    config = load_config("tiny", settings.split())
    cycles = digits.exact(config)["digits"].cycles
    assert cycles is not None
    assert 0 < digits.bound(config)["digits"] <= cycles


def test_the_bound_counts_whole_beats(digits):
    narrow = load_config("tiny", ["memory.bytes_per_cycle=3", "memory.latency=0"])
    moved = digits.work(narrow)["digits"].dram_bytes
    assert moved * 2 / 4 <= digits.bound(narrow)["digits"]


def test_a_layer_that_stays_on_the_host_is_a_refusal(digits):
    config = load_config("wide")
    text = "conv1 stays on the host: 9 input channels fill 28 % of the 32-lane block"
    assert digits.work(config)["digits"].refusal == text
    assert digits.bound(config)["digits"] == float("inf")
    measured = digits.exact(config)["digits"]
    assert (measured.cycles, measured.refusal, measured.runs) == (None, text, ())


def test_a_buffer_that_is_too_small_is_a_refusal(digits):
    config = load_config("tiny", ["acc_bytes=32"])
    refusal = digits.exact(config)["digits"].refusal
    assert refusal.startswith("conv1 stays on the host: ")
    assert "\n" not in refusal


def test_networks_go_to_other_processes(digits):
    config = load_config("tiny")
    other = pickle.loads(pickle.dumps(digits))
    assert other.bound(config) == digits.bound(config)
    assert other.exact(config)["digits"].cycles == digits.exact(config)["digits"].cycles
