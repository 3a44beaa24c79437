"""Numbers of an ECP5's PLL: in every range, the clock that was asked for, or one near it."""

from fractions import Fraction

import pytest

from vdla.boards.board import BoardError
from vdla.boards.ecp5_pll import Pll, find_pll, output, parameters

CLOCKS = (25, 33, 48, 60, 61, 66, 70, 75, 80, 85, 100)


@pytest.mark.parametrize("multiple", [1, 2])
@pytest.mark.parametrize("mhz", CLOCKS)
def test_a_clock_and_its_double_are_made(mhz, multiple):
    pll = find_pll(25, mhz, multiple)
    assert pll.vco_mhz / pll.divider == mhz
    assert pll.divider % multiple == 0
    assert 400 <= pll.vco_mhz <= 800
    detector = Fraction(25, pll.input_divider)
    assert detector == pll.detector_mhz >= Fraction(3.125)
    assert pll.vco_mhz / pll.feedback_divider <= 400
    assert max(pll.feedback, pll.feedback_divider, pll.input_divider) <= 128


def test_the_phase_detector_is_in_its_range_where_it_can_be():
    assert find_pll(25, 60) == Pll(Fraction(600), 1, 12, 2, 10)
    slow = [mhz for mhz in CLOCKS if find_pll(25, mhz).detector_mhz < 10]
    assert slow == [33, 48, 61, 66]


@pytest.mark.parametrize(("mhz", "multiple", "message"), [
    (81, 2, "clock_mhz: expected a clock that the PLL makes of 25 MHz whose 2-fold it makes, too, "
     "found 81; nearest: 80 or 85"),
    (401, 1, "clock_mhz: expected a clock that the PLL makes of 25 MHz, found 401; nearest: 400"),
    (3, 1, "clock_mhz: expected a clock that the PLL makes of 25 MHz, found 3; nearest: 4"),
])  # fmt: skip
def test_a_clock_that_cannot_be_made(mhz, multiple, message):
    with pytest.raises(BoardError) as caught:
        find_pll(25, mhz, multiple)
    assert str(caught.value) == message


def test_outputs_have_their_edges_in_common():
    """CPHASE counts VCO periods from the start of all outputs; FPHASE, eighths of one."""
    pll = find_pll(25, 70, 2)
    core, fast = parameters(pll), output("CLKOS2", pll.divider // 2)
    assert (core["p_CLKOP_CPHASE"] - fast["p_CLKOS2_CPHASE"]) % fast["p_CLKOS2_DIV"] == 0
    late = output("CLKOS", pll.divider // 2, late=15)
    assert late["p_CLKOS_CPHASE"] - fast["p_CLKOS2_CPHASE"] == 1
    assert late["p_CLKOS_FPHASE"] == 7
