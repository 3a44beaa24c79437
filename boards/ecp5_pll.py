"""The numbers of an ECP5's PLL, EHXPLLL, for a core's clock and whole multiples of it.

    input / input_divider × feedback × feedback_divider = VCO;  VCO / divider = the core's clock

The VCO is compared through an output that is used for nothing else, so the core's divider is free:
Lattice FPGA-TN-02200, figure of the PLL. Ranges are those of the ECP5's datasheet, FPGA-DS-02012,
table "sysCLOCK PLL timing": the phase detector has at least 10 MHz. Where no numbers allow that,
it has at least 3.125 MHz, which Project Trellis's ecppll takes to be enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from vdla.boards.board import BoardError
from vdla.support.numbers import divisors

VCO_MHZ = (400, 800)
MIDDLE_MHZ = 600  # of the VCO's range
OUTPUT_MHZ = (3.125, 400)
DETECTOR_MHZ = (10, 400)
LEAST_DETECTOR_MHZ = 3.125
MOST_DIVIDER = 128
EIGHTHS = 8  # steps of a phase in a period of the VCO


@dataclass(frozen=True)
class Pll:
    """Dividers for a core's clock of VCO / ``divider``."""

    vco_mhz: Fraction
    input_divider: int
    feedback: int  # CLKFB_DIV
    feedback_divider: int  # of the output that is compared
    divider: int

    @property
    def detector_mhz(self) -> Fraction:
        """Frequency that the phase detector compares."""
        return self.vco_mhz / (self.feedback * self.feedback_divider)


def find_pll(input_mhz: float, clock_mhz: int, multiple: int = 1) -> Pll:
    """The numbers for a clock and ``multiple`` times it: those whose phase detector is in its
    range, and then whose VCO is nearest to the middle of its own.

    Raises:
        BoardError: the PLL can't make these clocks; names those nearest that it can.
    """
    result = _best(Fraction(input_mhz), clock_mhz, multiple)
    if result is None:
        below = _nearest(Fraction(input_mhz), range(clock_mhz - 1, 0, -1), multiple)
        above = _nearest(Fraction(input_mhz), range(clock_mhz + 1, OUTPUT_MHZ[1] + 1), multiple)
        near = " or ".join(f"{each}" for each in (below, above) if each is not None)
        times = f" whose {multiple}-fold it makes, too" if multiple > 1 else ""
        raise BoardError(
            f"clock_mhz: expected a clock that the PLL makes of {input_mhz:g} MHz{times}, "
            f"found {clock_mhz}; nearest: {near}"
        )
    return result


def _nearest(input_mhz: Fraction, clocks: range, multiple: int) -> int | None:
    """The first clock that can be made."""
    return next((each for each in clocks if _best(input_mhz, each, multiple)), None)


def _best(input_mhz: Fraction, clock_mhz: int, multiple: int) -> Pll | None:
    if not OUTPUT_MHZ[0] <= clock_mhz <= clock_mhz * multiple <= OUTPUT_MHZ[1]:
        return None
    return min(_all(input_mhz, clock_mhz, multiple), key=_order, default=None)


def _order(pll: Pll) -> tuple[bool, Fraction, Fraction, int]:
    """Which numbers go first; of VCOs as near, the faster one has finer phases."""
    slow = pll.detector_mhz < DETECTOR_MHZ[0]
    return slow, abs(pll.vco_mhz - MIDDLE_MHZ), -pll.vco_mhz, pll.input_divider


def _all(input_mhz: Fraction, clock_mhz: int, multiple: int) -> Iterator[Pll]:
    for divider in range(multiple, MOST_DIVIDER + 1, multiple):
        vco = Fraction(clock_mhz * divider)
        if not VCO_MHZ[0] <= vco <= VCO_MHZ[1]:
            continue
        for input_divider in range(1, int(input_mhz / Fraction(LEAST_DETECTOR_MHZ)) + 1):
            times = vco * input_divider / input_mhz
            if times.denominator == 1 and (ways := _feedback(int(times), vco)):
                yield Pll(vco, input_divider, *ways, divider)


def _feedback(times: int, vco: Fraction) -> tuple[int, int] | None:
    """CLKFB_DIV and the compared output's divider, whose product is ``times``."""
    for divider in divisors(times, MOST_DIVIDER):
        if times // divider <= MOST_DIVIDER and vco / divider <= OUTPUT_MHZ[1]:
            return times // divider, divider
    return None


def parameters(pll: Pll) -> dict[str, object]:
    """EHXPLLL's parameters of the input, the feedback and the core's clock, which is CLKOP."""
    return {
        "p_CLKI_DIV": pll.input_divider,
        "p_CLKFB_DIV": pll.feedback,
        "p_FEEDBK_PATH": "INT_OS3",
        "p_CLKOS3_ENABLE": "ENABLED",
        "p_CLKOS3_DIV": pll.feedback_divider,
        **output("CLKOP", pll.divider),
        "p_PLLRST_ENA": "DISABLED",
        "p_INTFB_WAKE": "DISABLED",
        "p_STDBY_ENABLE": "DISABLED",
        "p_DPHASE_SOURCE": "DISABLED",
        "a_ICP_CURRENT": "12",
        "a_LPF_RESISTOR": "8",
    }


def output(name: str, divider: int, late: int = 0) -> dict[str, object]:
    """An output's parameters; ``late``: eighths of a VCO period after the core's edge, from which
    outputs with dividers that divide each other have their edges in common."""
    return {
        f"p_{name}_ENABLE": "ENABLED",
        f"p_{name}_DIV": divider,
        f"p_{name}_CPHASE": divider - 1 + late // EIGHTHS,
        f"p_{name}_FPHASE": late % EIGHTHS,
    }
