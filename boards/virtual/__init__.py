"""Boards without the board: RTL of the whole, or of the core, which the same driver talks to."""

from vdla.boards.virtual.axi import VirtualAxiBoard
from vdla.boards.virtual.pynq import VirtualPynq
from vdla.boards.virtual.serial import VirtualSerialBoard

__all__ = ["VirtualAxiBoard", "VirtualPynq", "VirtualSerialBoard"]
