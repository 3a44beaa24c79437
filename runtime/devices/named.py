"""A device by its name, for a module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla.isa.config import Config, parse_config
from vdla.runtime.devices.base import Device
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.rtl import RtlDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.module import Module
from vdla.runtime.plan import HOSTS

NAMES = ("sim", "rtl", *HOSTS)


def module_config(module: Module) -> Config:
    """The config and memory that a module was compiled for."""
    return parse_config(module.config, str(module.config.get("name", "module")), "module header")


def make_device(
    module: Module,
    device: str,
    config: Config | None = None,
    *,
    waves: Path | None = None,
) -> Device:
    """The device by its name; simulator and RTL take the memory of ``config``, if given.

    ``waves``: an FST file that the RTL writes.
    """
    if device in HOSTS:
        return CpuDevice(device)
    if device not in NAMES:
        raise DeviceError(f"device: expected one of {', '.join(NAMES)}, found {device}")
    own = module_config(module)
    own = replace(own, memory=config.memory) if config else own
    return RtlDevice(own, waves=waves) if device == "rtl" else SimDevice(own)
