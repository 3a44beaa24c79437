"""Devices that modules run on."""

from vdla.runtime.devices.base import Device, DeviceResult
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.dram import Dram

__all__ = ["CpuDevice", "Device", "DeviceResult", "Dram"]
