"""What the driver needs of a way to reach a board: its registers, and memory it shares with it."""

from __future__ import annotations

from typing import Protocol

from vdla.runtime.devices.base import Dram
from vdla.runtime.errors import DeviceError


class LinkError(DeviceError):
    """A board that doesn't answer, or not as it should."""


class Transport(Protocol):
    """One board. Registers are named by their offset; an image is the program's DRAM."""

    @property
    def name(self) -> str:
        """For messages: how the board is reached."""
        ...

    def read(self, offset: int, count: int = 1) -> list[int]:
        """Registers one behind the other.

        Raises:
            LinkError: the board doesn't answer.
        """
        ...

    def write(self, offset: int, value: int) -> None:
        """Writes a register, once.

        Raises:
            LinkError: the board doesn't answer.
        """
        ...

    def allocate(self, size: int) -> tuple[Dram, int]:
        """An image of ``size`` bytes for the host to work on, and the address the core has it at.

        Raises:
            DeviceError: the board's memory is too small.
        """
        ...

    def upload(self, image: Dram, start: int, stop: int) -> None:
        """Makes what the host wrote to these bytes of the image visible to the core."""
        ...

    def download(self, image: Dram, start: int, stop: int) -> None:
        """Makes what the core wrote to these bytes visible to the host."""
        ...
