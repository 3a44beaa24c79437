"""The devices without an accelerator: every step runs on the host, or apart from it."""

from __future__ import annotations

from collections.abc import Callable

from vdla.isa.identity import Identity
from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.dram import Dram, Ranges, host_image
from vdla.runtime.errors import DeviceError


class CpuDevice:
    """Takes modules without programs for the accelerator; ``name`` is one of ``HOSTS``."""

    identity: Identity | None = None

    def __init__(self, name: str = "cpu") -> None:
        self.name = name

    def allocate(self, size: int, constants: bytes) -> Dram:
        """A DRAM image in the host's memory."""
        return host_image(size, constants)

    def load(
        self, program: bytes, dram: Dram, given: Ranges = (), wanted: Ranges = ()
    ) -> Callable[[], DeviceResult]:
        """Refuses: there is nothing here to run an accelerator program on."""
        raise DeviceError(
            f"device {self.name}: expected host steps only, found an accelerator program"
        )
