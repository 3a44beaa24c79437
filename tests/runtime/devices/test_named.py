"""Devices by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from vdla.isa.config import load_config
from vdla.isa.memory import Memory
from vdla.runtime.devices import CpuDevice, named
from vdla.runtime.devices.named import make_device
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.module import Module

TINY = load_config("tiny")
SLOW = load_config("paper", ["memory.latency=200"])
MODULE = Module({}, [], [], 64, (), config=TINY.to_dict())


def test_the_simulator_has_the_modules_config():
    device = make_device(MODULE, "sim")
    assert isinstance(device, SimDevice)
    assert device.numerics
    assert device.config == TINY


def test_a_config_lends_its_memory_alone():
    device = make_device(MODULE, "sim", SLOW)
    assert device.config.hash == TINY.hash
    assert device.config.memory == SLOW.memory == Memory(latency=200)


def test_the_rtl_is_told_of_waves(monkeypatch):
    told = []
    monkeypatch.setattr(named, "RtlDevice", lambda config, **rest: told.append((config, rest)))
    make_device(MODULE, "rtl", waves=Path("w.fst"))
    make_device(MODULE, "rtl", SLOW)
    assert told[0] == (TINY, {"waves": Path("w.fst")})
    assert told[1][0].memory == SLOW.memory
    assert told[1][1] == {"waves": None}


def test_the_host_needs_no_config():
    assert isinstance(make_device(Module({}, [], [], 64, ()), "cpu"), CpuDevice)


def test_another_name():
    with pytest.raises(DeviceError) as caught:
        make_device(MODULE, "npu")
    assert str(caught.value) == "device: expected one of sim, rtl, cpu, gpu, found npu"


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_without_an_accelerator(name):
    """Kernels run on either: a module that has some finds its GPU itself."""
    device = make_device(MODULE, name)
    assert (device.name, device.identity) == (name, None)
    with pytest.raises(DeviceError) as caught:
        device.load(b"", device.allocate(64, b""))
    assert str(caught.value) == (
        f"device {name}: expected host steps only, found an accelerator program"
    )
