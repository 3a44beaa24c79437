"""Boards without the board: the RTL of a whole top level, which the same driver talks to."""

from vdla.boards.virtual.serial import VirtualSerialBoard

__all__ = ["VirtualSerialBoard"]
