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

from amaranth import Instance

from vdla.boards.board import BoardError
from vdla.boards.wiring import Clocks, Nets
from vdla.support.numbers import divisors

VCO_MHZ = (400, 800)
MIDDLE_MHZ = 600  # of the VCO's range
OUTPUT_MHZ = (3.125, 400)
DETECTOR_MHZ = (10, 400)
LEAST_DETECTOR_MHZ = 3.125
MOST_DIVIDER = 128
EIGHTHS = 8  # steps of a phase in a period of the VCO
UNUSED = (  # inputs at 0
    "i_RST",
    "i_STDBY",
    "i_PHASESEL0",
    "i_PHASESEL1",
    "i_PHASEDIR",
    "i_PHASESTEP",
    "i_PHASELOADREG",
    "i_PLLWAKESYNC",
    "i_ENCLKOP",
)


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

    @property
    def input_mhz(self) -> Fraction:
        """Frequency of the oscillator."""
        return self.detector_mhz * self.input_divider

    def phases(self, ratio: int) -> int:
        """Eighths of a VCO period in a period of the SDRAM's clock."""
        return self.divider // ratio * EIGHTHS

    def delay(self, phase: int) -> float:
        """Nanoseconds of so many eighths of a VCO period."""
        return phase / EIGHTHS * 1e3 / float(self.vco_mhz)

    def is_fine(self, phase: int) -> bool:
        """Whether a phase isn't one of whole VCO periods."""
        return phase % EIGHTHS != 0

    def instance(self, clocks: Clocks, nets: Nets) -> Instance:
        """The primitive: CLKOP is the core's clock, CLKOS the one of the SDRAM's pin, and CLKOS2
        that of the SDRAM's pads where it isn't the core's."""
        ratio = clocks.pads.ratio
        divider = self.divider // ratio
        return Instance(
            "EHXPLLL",
            **parameters(self),
            **output("CLKOS", divider, clocks.late),
            **(output("CLKOS2", divider) if ratio > 1 else {}),
            a_FREQUENCY_PIN_CLKI=str(float(self.input_mhz)),
            a_FREQUENCY_PIN_CLKOP=str(clocks.hz / 1e6),
            a_FREQUENCY_PIN_CLKOS=str(clocks.sdram_hz / 1e6),
            i_CLKI=nets.oscillator,
            **dict.fromkeys(UNUSED, 0),
            o_CLKOP=nets.core,
            o_CLKOS=nets.late,
            **({"o_CLKOS2": nets.fast} if ratio > 1 else {}),
            o_LOCK=nets.locked,
        )


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
