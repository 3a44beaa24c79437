"""Boards with a Zynq: how they are made, and what their memory port can carry.

Amaranth is needed only when a design is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.boards.board import Board, BoardError
from vdla.boards.ddr3 import MT41K256M16, hp_memory
from vdla.boards.parts import Part, processor_of
from vdla.isa.config import Config
from vdla.isa.memory import Memory

if TYPE_CHECKING:
    from amaranth.vendor import XilinxPlatform

    from vdla.boards.soc.zynq import Top

CLOCK_HZ = 100e6


def make_board(name: str, title: str, part: Part, memory: Memory | None = None) -> Board:
    """A board under PYNQ's Linux, whose image keeps 128 MiB to be allocated in one piece."""
    return Board(
        name=name,
        title=title,
        device=part.name,
        config="paper",
        clock_hz=CLOCK_HZ,
        memory_bytes=128 << 20,
        transport="axi",
        toolchains=part.toolchains,
        available=part.available,
        host=part.host,
        memory=memory,
    )


def ddr3_memory() -> Memory:
    """Memory behind S_AXI_HP0 of boards with one MT41K256M16 or its equal."""
    return hp_memory(MT41K256M16, CLOCK_HZ)


def memory_of(board: Board, config: Config) -> Memory:
    """Memory behind the memory port of a config's core: the config's own, if the board says
    nothing.

    Raises:
        BoardError: the port can't carry what the core sends.
    """
    check(board, config)
    return board.memory or config.memory


def make_top(board: Board, config: Config) -> Top:
    """The board's design."""
    from vdla.boards.soc.zynq import Top

    return Top(config, processor_of(board), board.clock_hz)


def make_platform(part: Part, leds: str, toolchain: str = "Vivado") -> XilinxPlatform:
    """Amaranth's platform of a board that uses nothing but LEDs, at these pins."""
    from vdla.boards.soc.zynq import platform

    return platform(part, leds, toolchain)


def check(board: Board, config: Config) -> None:
    """Whether the memory port can carry what the config's core sends.

    Raises:
        BoardError: it can't.
    """
    processor = processor_of(board)
    where = f"config {config.name} on {board.name} ({processor.memory_port})"
    if config.port_bytes not in processor.widths:
        expected = " or ".join(str(n) for n in sorted(processor.widths))
        raise BoardError(f"{where}: expected port_bytes {expected}, found {config.port_bytes}")
    if config.burst_beats > processor.burst_beats:
        raise BoardError(
            f"{where}: expected burst_beats ≤ {processor.burst_beats}, found {config.burst_beats}"
        )
