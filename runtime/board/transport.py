"""Interface of the driver to a way to reach a board: its registers, and memory it
shares with it.
"""

from __future__ import annotations

from typing import Protocol

from vdla.runtime.dram import Dram, whole_pages
from vdla.runtime.errors import DeviceError


class LinkError(DeviceError):
    """A board that doesn't answer, or not as it should."""


def image_bytes(name: str, size: int, most: int) -> int:
    """Bytes that an image of ``size`` bytes takes of a board's ``most``: whole pages.

    Raises:
        DeviceError: the board's memory is too small.
    """
    whole = whole_pages(size)
    if whole > most:
        raise DeviceError(
            f"{name}: expected a module of at most {most:,} bytes of DRAM, found one of {whole:,}"
        )
    return whole


class Transport(Protocol):
    """One board. Registers are named by their offset; an image is the program's DRAM."""

    @property
    def name(self) -> str:
        """For messages: how the board is reached."""
        ...

    def read(self, offset: int, count: int = ...) -> list[int]:
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

    def release(self, image: Dram, start: int, stop: int) -> None:
        """Lets the core write to these bytes: no cache of the host writes back to them later."""
        ...

    def download(self, image: Dram, start: int, stop: int) -> None:
        """Makes what the core wrote to these bytes visible to the host."""
        ...

    def close(self) -> None:
        """Lets the board go, so that another process may reach it."""
        ...
