"""Where modules run."""

from vdla.runtime.devices.base import Device, DeviceResult, Dram
from vdla.runtime.devices.cpu import CpuDevice

__all__ = ["CpuDevice", "Device", "DeviceResult", "Dram"]
