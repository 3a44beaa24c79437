"""Clock of a design that is looked at: a model's for the part, or one that is asked for.

A search holds designs against each other that nobody has routed, so all of them have the model's
clock, the bundled ones among them. A space may ask for a clock instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from vdla.explore.clock.model import estimate_clock
from vdla.isa.clock import ASKED, Clock, at_clock, clock_text
from vdla.isa.config import Config


@dataclass(frozen=True)
class DesignClock:
    """A clock in MHz, and where it comes from."""

    mhz: float
    origin: Clock

    @property
    def source(self) -> str:
        """The origin in a word: "estimated" or "asked"."""
        return self.origin.source

    @property
    def text(self) -> str:
        """The clock in words: ``93.4 MHz (estimated)``."""
        return clock_text(self.mhz, self.source)

    @property
    def at(self) -> str:
        """The phrase behind a time: ``at 93.4 MHz (estimated)``."""
        return at_clock(self.mhz, self.source)

    def milliseconds(self, cycles: float) -> float:
        """Time of so many cycles in ms."""
        return cycles / self.mhz / 1e3


def design_clock(config: Config, family: str, asked_mhz: int | None = None) -> DesignClock:
    """A design's clock on a part of a family: the model's, or what is asked for."""
    if asked_mhz is not None:
        return DesignClock(asked_mhz, Clock(ASKED))
    estimate = estimate_clock(config, family)
    return DesignClock(round(estimate.mhz, 2), estimate.clock)
