"""Boards whose FPGA has an SDRAM at its pins and a serial line: their clocks, and what is to spare.

A board's file says what differs, in a ``Wiring``; ``top.py`` is the design of them all. A PLL makes
the core's clock; the SDRAM's, as fast or, with ``memory.banks.clock_ratio`` = 2, twice as fast, for
the registers at its pads; and that again so much later for its clock pin that the least margin of
``phase_margins`` is largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from amaranth import Instance, Signal

from vdla.boards.board import Board, BoardError
from vdla.boards.parts import Part
from vdla.boards.soc.sdram import Chip, Pads, memory
from vdla.boards.soc.sdram.numbers import words_of
from vdla.boards.soc.sdram.pads import check_pins
from vdla.boards.soc.uart import divisor_of
from vdla.isa.config import Config, load_config
from vdla.isa.memory import Memory

ENOUGH = 0.5  # ns: a margin for which no word is taken a clock later, nor a fine phase
MOST_LATE = 1  # clocks that a word may be taken later


class Nets(NamedTuple):
    """Nets of a PLL: the oscillator's clock, whether the PLL is locked, and the clocks of the core,
    of the SDRAM's pin and, where that isn't the core's, of the SDRAM's pads."""

    oscillator: Signal
    locked: Signal
    core: Signal
    late: Signal
    fast: Signal


class Pll(Protocol):
    """Numbers of a PLL, for a core's clock and a whole multiple of it."""

    def phases(self, ratio: int) -> int:
        """Number of phases that the SDRAM's clock can have at its pin, from 0."""

    def delay(self, phase: int) -> float:
        """Nanoseconds by which a phase is later than the core's clock."""

    def is_fine(self, phase: int) -> bool:
        """Whether a phase is to be had only by a finer step, and is avoided where others do."""

    def instance(self, clocks: Clocks, nets: Nets) -> Instance:
        """The primitive that makes the clocks."""


@dataclass(frozen=True)
class Clocks:
    """The core's clock, the PLL that makes it, and the SDRAM's: ``pads.ratio`` times as fast, and
    ``late`` of the PLL's phases later at its pin."""

    hz: float
    pll: Pll
    pads: Pads
    late: int

    @property
    def sdram_hz(self) -> float:
        """The SDRAM's clock."""
        return self.hz * self.pads.ratio


@dataclass(frozen=True)
class Wiring:
    """Surroundings of the core on a board, by what differs between boards.

    ``find_pll`` finds a PLL's numbers for a clock in MHz and so many times that; ``platform`` makes
    Amaranth's platform, with the resources ``sdram``, ``uart``, ``led`` and ``oscillator``. Delays
    of pads and board are assumed, in ns: of the clock to the SDRAM's pin, and the least and the
    most of words on their way out and in.
    """

    board: str
    chip: Chip
    oscillator: str
    find_pll: Callable[[int, int], Pll]
    platform: Callable[[], Any]
    clock_out: float
    data_out: tuple[float, float]
    data_in: tuple[float, float]

    def clocks_of(self, config: Config) -> Clocks:
        """The clocks of a config's design, with the phase of the SDRAM's that leaves most to spare.

        Raises:
            BoardError: the chip, the PLL or the serial line can't have the config's clock, or no
                phase of the SDRAM's leaves anything.
        """
        banks = config.memory.banks
        ratio = banks.clock_ratio if banks else 1
        hz = config.clock_mhz * 1e6
        try:
            words_of(self.chip, config.port_bytes, ratio)
            self.chip.cas(hz * ratio)
            pll = self.find_pll(config.clock_mhz, ratio)
            divisor_of(hz)
        except (BoardError, ValueError) as error:
            raise BoardError(f"config {config.name} on {self.board}: {error}") from None
        best = max(_phases(hz, pll, ratio), key=self._worth)
        if (least := self._least(best)) <= 0:
            raise BoardError(
                f"config {config.name} on {self.board}: expected a clock at which the SDRAM's "
                f"words can be taken, found {config.clock_mhz} MHz, with {-least:.2f} ns too few"
            )
        return best

    def phase_margins(self, clocks: Clocks) -> dict[str, float]:
        """Nanoseconds to spare between the clock of the pads' registers and the SDRAM's.

        ``setup`` and ``hold`` of what the SDRAM samples; ``read`` and ``read_hold`` of what the
        pads sample: the word of one edge of the SDRAM's clock, ``pads.late`` clocks after the clock
        in which that edge lies.
        """
        chip, late = self.chip, clocks.pads.late
        period = 1e9 / clocks.sdram_hz
        edge = clocks.pll.delay(clocks.late) + self.clock_out  # at the chip
        access = chip.access[chip.cas(clocks.sdram_hz)]
        return {
            "setup": edge - self.data_out[1] - chip.setup,
            "hold": self.data_out[0] + period - edge - chip.keep,
            "read": (1 + late) * period - edge - access - self.data_in[1],
            "read_hold": edge + chip.hold + self.data_in[0] - late * period,
        }

    def memory_of(self, config: Config) -> Memory:
        """Memory behind the port of a config's core: the SDRAM's controller and its chip, at the
        clocks that the config asks for.

        Raises:
            BoardError: the chip can't make the config's beats or have its clock, or isn't what the
                board's pins are for.
        """
        check_pins(self.board, self.platform(), self.chip)
        clocks = self.clocks_of(config)
        return memory(self.chip, clocks.hz, config.port_bytes, pads=clocks.pads)

    def make_board(self, title: str, part: Part, config: str, loader: str = "") -> Board:
        """The board with a bundled config, which gives it its clock."""
        default = load_config(config)
        return Board(
            name=self.board,
            title=title,
            device=part.name,
            config=config,
            clock_hz=self.clocks_of(default).hz,
            memory_bytes=self.chip.nbytes,
            transport="serial",
            toolchains=part.toolchains,
            available=part.available,
            memory=self.memory_of(default),
            loader=loader,
        )

    def _least(self, clocks: Clocks) -> float:
        """The least margin."""
        return min(self.phase_margins(clocks).values())

    def _worth(self, clocks: Clocks) -> tuple[bool, int, float]:
        """Rank of clocks: phases by whole steps that leave enough go first, of these the words
        that come soonest."""
        least = self._least(clocks)
        if not clocks.pll.is_fine(clocks.late) and least >= ENOUGH:
            return True, -clocks.pads.late, least
        return False, 0, least


def _phases(hz: float, pll: Pll, ratio: int) -> Iterator[Clocks]:
    """The SDRAM's clock at every phase, with its words taken in time and later."""
    for late_words in range(MOST_LATE + 1):
        for late in range(pll.phases(ratio)):
            yield Clocks(hz, pll, Pads(ratio, late_words), late)
