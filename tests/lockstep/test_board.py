"""A whole board with its SDRAM takes the cycles of the simulator behind the board's memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vdla import api
from vdla.analysis import lockstep
from vdla.analysis.cases import random_case
from vdla.analysis.lockstep import LockstepDevice
from vdla.analysis.machines import Machines, first_difference, simulate
from vdla.api.modules import random_inputs
from vdla.compiler.models import model_paths
from vdla.compiler.models.builder import Builder, images
from vdla.compiler.models.networks import _basic_block
from vdla.compiler.models.quantizer import quantize_model
from vdla.isa.config import load_config
from vdla.names.configs import resolve_on
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
CONFIGS = {
    "ulx3s-wide": ("ulx3s-wide", ()),
    "tight": ("tiny", (
        "block_in=16", "block_out=8", "port_bytes=8", "inp_bytes=2048", "wgt_bytes=4096",
        "acc_bytes=4096", "command_queue=2", "token_queue=1", "burst_beats=5",
        "reads_in_flight=2", "read_buffer_beats=9", "writes_in_flight=1",
    )),
    "long bursts": ("tiny", ("burst_beats=256", "read_buffer_beats=300", "reads_in_flight=3")),
    "eight words": ("tiny", (
        "block_in=16", "block_out=16", "port_bytes=16", "inp_bytes=4096", "wgt_bytes=8192",
        "acc_bytes=8192", "uop_bytes=4096",
    )),
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny():
    return Machines(TINY, board="ulx3s")


def assert_equal(machines, programs, seed=0):
    *_, tally = lockstep.lockstep(machines, programs, seed)
    assert (tally.mismatches, tally.max_cycle_error) == (0, 0), tally.differences
    assert (tally.programs, tally.unexpected_endings) == (programs, 0)


def test_the_command_runs_random_programs(vdla):
    done = vdla("lockstep", "--board", "ulx3s", "-c", "tiny", "--programs", 60, "--json")
    assert (done.code, done.json["board"], done.json["config"]) == (0, "ulx3s", "tiny")
    assert (done.json["programs"], done.json["unexpected_endings"]) == (60, 0)
    assert (done.json["mismatches"], done.json["max_cycle_error"]) == (0, 0)
    assert done.json["ended"] < 60  # some end in a fault, or stand still


@pytest.mark.parametrize(("options", "message"), [
    (("--board", "pynq-z1"), "board pynq-z1: expected a board whose design has the memory's "
     "controller, found one that reaches memory through its processor"),
    (("--board", "nowhere"), "board: expected one of ulx3s, colorlight-i9, tang-nano-20k, "
     "pynq-z1, pynq-z2, arty-z7-20, ultra96-v2, found nowhere; docs/my-board.md says what another "
     "takes"),
    (("--board", "ulx3s", "--memories", "2"), "--memories: expected no --board, found both"),
])  # fmt: skip
def test_what_it_cannot_run(vdla, options, message):
    done = vdla("lockstep", *options, "--programs", 1)
    assert (done.code, done.err.strip()) == (2, f"vdla: {message}")


def test_another_memory_is_noticed(tiny):
    """Each number that a program of some length meets, a cycle more."""
    case = tiny.possible(random_case(TINY, 7))
    ours = tiny.run_rtl(case, tiny.memory)
    assert first_difference(case, simulate(case, tiny.memory), ours) is None
    for name in ("activate", "read_cycles", "write_cycles", "start_cycles", "read_to_write"):
        banks = replace(tiny.memory.banks, **{name: getattr(tiny.memory.banks, name) + 1})
        other = simulate(case, replace(tiny.memory, banks=banks))
        assert first_difference(case, other, ours) is not None, name


def test_bus_errors_are_left_out(tiny):
    faulty = next(c for n in range(200) if (c := random_case(TINY, n)).errors[1])
    assert tiny.possible(faulty).errors == (0, 0)
    with pytest.raises(DeviceError, match="expected no bus errors: its SDRAM has none"):
        tiny.run_rtl(faulty, tiny.memory)


@pytest.mark.long
def test_ulx3s():
    assert_equal(Machines(load_config("ulx3s"), board="ulx3s"), 500)


@pytest.mark.long
@pytest.mark.parametrize(("board", "name"), [
    ("colorlight-i9", "colorlight"), ("tang-nano-20k", "nano"),
])  # fmt: skip
def test_an_sdram_of_32_bits(board, name):
    """A beat is one word of the chip; random programs, and a network."""
    config = load_config(name)
    machines = Machines(config, board=board)
    assert_equal(machines, 300)
    device = LockstepDevice(machines)
    module = api.compile("digits", config)
    Executor(module, device).run(random_inputs(module))
    assert (device.tally.programs, device.tally.mismatches) == (1, 0)
    assert device.tally.max_cycle_error == 0


@pytest.mark.long
@pytest.mark.parametrize("name", CONFIGS)
def test_other_configs(name):
    base, settings = CONFIGS[name]
    assert_equal(Machines(load_config(base, settings), board="ulx3s"), 100)


@pytest.mark.long
@pytest.mark.parametrize(("name", "mhz", "port"), [
    ("tiny", 30, 4), ("tiny", 60, 4), ("tiny", 70, 4), ("tiny", 66, 8), ("ulx3s", 60, 4),
])  # fmt: skip
def test_an_sdram_at_twice_the_clock(name, mhz, port):
    """CAS latencies 2 and 3, words that come in time and later, beats of one and two cycles."""
    wide = [] if port == 4 else [f"port_bytes={port}", "block_in=16", "block_out=8",
                                 "inp_bytes=4096", "wgt_bytes=8192", "acc_bytes=8192"]  # fmt: skip
    settings = [f"clock_mhz={mhz}", "memory.banks.clock_ratio=2", *wide]
    assert_equal(Machines(resolve_on("ulx3s", name, settings), board="ulx3s"), 100)


@pytest.mark.long
def test_in_processes(vdla):
    done = vdla(
        "lockstep", "--board", "ulx3s", "-c", "tiny", "--programs", 120, "--workers", 2, "--json"
    )
    assert (done.code, done.json["programs"], done.json["mismatches"]) == (0, 120, 0)


@pytest.mark.long
@pytest.mark.parametrize("name", ["digits", "C11", "C2", "residual block"])
def test_models(name, tmp_path):
    config = load_config("ulx3s")
    machines = Machines(config, board="ulx3s")
    device = LockstepDevice(machines)
    module = api.compile(_model(name, tmp_path), config)
    Executor(module, device).run(random_inputs(module))
    assert (device.tally.programs, device.tally.mismatches) == (1, 0)
    assert device.tally.max_cycle_error == 0


def _model(name, folder):
    if name == "digits":
        return name
    if name != "residual block":
        return model_paths("resnet18-convs")[name]
    pictures = images((1, 16, 14, 14), 2, 3)
    b = Builder("block", 1, pictures)
    path = folder / "block.onnx"
    block = b.model(_basic_block(b, "block", "input", 16))
    quantize_model(block, path, [{"input": x[None]} for x in pictures])
    return path
