"""The numbers of a Gowin GW2A's PLL, rPLL, for a core's clock.

    input / input_divider × feedback = the core's clock;  that × output_divider = VCO

Gowin UG286, chapter "rPLL", and the ranges of DS226 (GW2AR series), table "PLL switching
characteristics", as apycula checks them. The SDRAM's clock is CLKOUTP: the core's, so many
sixteenths of a period later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from amaranth import C, Instance

from vdla.boards.board import BoardError
from vdla.boards.wiring import Clocks, Nets

VCO_MHZ = (500, 1250)
MIDDLE_MHZ = 800  # of the VCO's range
OUTPUT_MHZ = (4, 625)
LEAST_DETECTOR_MHZ = 3
MOST_DIVIDER = 64  # of the input and of the feedback
OUTPUT_DIVIDERS = (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)
PHASES = 16  # of CLKOUTP
DEVICE = "GW2AR-18"
FEEDBACK = {"p_CLKFB_SEL": "internal", "i_CLKFB": 0}
FIXED = {  # nothing is set while it runs: delays, dividers, duty of a half, bypasses
    "p_DYN_IDIV_SEL": "false",
    "p_DYN_FBDIV_SEL": "false",
    "p_DYN_ODIV_SEL": "false",
    "p_DYN_DA_EN": "false",
    "p_DYN_SDIV_SEL": 2,
    "p_DUTYDA_SEL": "1000",
    "p_CLKOUT_FT_DIR": C(1, 1),
    "p_CLKOUTP_FT_DIR": C(1, 1),
    "p_CLKOUT_DLY_STEP": 0,
    "p_CLKOUTP_DLY_STEP": 0,
    "p_CLKOUT_BYPASS": "false",
    "p_CLKOUTP_BYPASS": "false",
    "p_CLKOUTD_BYPASS": "false",
    "p_CLKOUTD_SRC": "CLKOUT",
    "p_CLKOUTD3_SRC": "CLKOUT",
}
UNUSED = {  # inputs at 0, by their width
    "i_RESET": 1,
    "i_RESET_P": 1,
    "i_IDSEL": 6,
    "i_FBDSEL": 6,
    "i_ODSEL": 6,
    "i_PSDA": 4,
    "i_DUTYDA": 4,
    "i_FDLY": 4,
}


@dataclass(frozen=True)
class Pll:
    """Dividers for a core's clock of ``input_mhz`` × ``feedback`` / ``input_divider``."""

    input_mhz: Fraction
    input_divider: int
    feedback: int
    output_divider: int

    @property
    def clock_mhz(self) -> Fraction:
        """The core's clock."""
        return self.input_mhz * self.feedback / self.input_divider

    @property
    def vco_mhz(self) -> Fraction:
        """Frequency of the VCO."""
        return self.clock_mhz * self.output_divider

    @property
    def detector_mhz(self) -> Fraction:
        """Frequency that the phase detector compares."""
        return self.input_mhz / self.input_divider

    def phases(self, ratio: int) -> int:
        """Phases of CLKOUTP."""
        return PHASES

    def delay(self, phase: int) -> float:
        """Nanoseconds of so many sixteenths of a period."""
        return phase / PHASES * 1e3 / float(self.clock_mhz)

    def is_fine(self, phase: int) -> bool:
        """Whether a phase is to be had only by a finer step: none is, all are alike."""
        return False

    def instance(self, clocks: Clocks, nets: Nets) -> Instance:
        """The primitive: CLKOUT is the core's clock, CLKOUTP the one of the SDRAM's pin."""
        return Instance(
            "rPLL",
            p_DEVICE=DEVICE,
            p_FCLKIN=f"{float(self.input_mhz):g}",
            p_IDIV_SEL=self.input_divider - 1,
            p_FBDIV_SEL=self.feedback - 1,
            p_ODIV_SEL=self.output_divider,
            p_PSDA_SEL=f"{clocks.late:04b}",
            **FIXED,
            **FEEDBACK,
            i_CLKIN=nets.oscillator,
            **{name: C(0, width) for name, width in UNUSED.items()},
            o_CLKOUT=nets.core,
            o_CLKOUTP=nets.late,
            o_LOCK=nets.locked,
        )


def find_pll(input_mhz: float, clock_mhz: int, multiple: int = 1) -> Pll:
    """The numbers for a clock: those with the fastest phase detector, and then the VCO that is
    nearest to the middle of its range.

    Raises:
        BoardError: the PLL can't make the clock (names those nearest that it can), or twice the
            clock is asked for, which it has no phase for.
    """
    if multiple != 1:
        raise BoardError(f"memory.banks.clock_ratio: expected 1 with a rPLL, found {multiple}")
    result = _best(Fraction(input_mhz), clock_mhz)
    if result is None:
        below = _nearest(Fraction(input_mhz), range(clock_mhz - 1, 0, -1))
        above = _nearest(Fraction(input_mhz), range(clock_mhz + 1, OUTPUT_MHZ[1] + 1))
        near = " or ".join(f"{each}" for each in (below, above) if each is not None)
        raise BoardError(
            f"clock_mhz: expected a clock that the PLL makes of {input_mhz:g} MHz, "
            f"found {clock_mhz}; nearest: {near}"
        )
    return result


def _nearest(input_mhz: Fraction, clocks: range) -> int | None:
    """The first clock that can be made."""
    return next((each for each in clocks if _best(input_mhz, each)), None)


def _best(input_mhz: Fraction, clock_mhz: int) -> Pll | None:
    if not OUTPUT_MHZ[0] <= clock_mhz <= OUTPUT_MHZ[1]:
        return None
    return min(_all(input_mhz, clock_mhz), key=_order, default=None)


def _order(pll: Pll) -> tuple[int, Fraction]:
    """Rank of numbers: the fastest phase detector first, then the VCO."""
    return pll.input_divider, abs(pll.vco_mhz - MIDDLE_MHZ)


def _all(input_mhz: Fraction, clock_mhz: int) -> Iterator[Pll]:
    most = min(int(input_mhz / LEAST_DETECTOR_MHZ), MOST_DIVIDER)
    for input_divider in range(1, most + 1):
        feedback = clock_mhz * input_divider / input_mhz
        if feedback.denominator != 1 or feedback > MOST_DIVIDER:
            continue
        for output_divider in OUTPUT_DIVIDERS:
            if VCO_MHZ[0] <= clock_mhz * output_divider <= VCO_MHZ[1]:
                yield Pll(input_mhz, input_divider, int(feedback), output_divider)
