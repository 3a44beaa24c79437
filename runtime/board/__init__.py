"""Boards as the host sees them: ways to reach one, and the driver that is the same for all."""

from vdla.runtime.board.driver import Driver
from vdla.runtime.board.transport import LinkError, Transport

__all__ = ["Driver", "LinkError", "Transport"]
