"""Numbers of a Gowin GW2A's PLL: in every range, the clock that was asked for, or one near it."""

import pytest

from vdla.boards.board import BoardError
from vdla.boards.gowin_pll import find_pll


@pytest.mark.parametrize("mhz", [27, 45, 48, 51, 54, 60, 66, 72, 108])
def test_a_clock_is_made(mhz):
    pll = find_pll(27, mhz)
    assert pll.clock_mhz == mhz
    assert 500 <= pll.vco_mhz <= 1250
    assert pll.detector_mhz >= 3
    assert max(pll.feedback, pll.input_divider) <= 64


def test_the_phase_detector_is_as_fast_as_it_can_be():
    dividers = {mhz: find_pll(27, mhz).input_divider for mhz in (27, 48, 54, 72)}
    assert dividers == {27: 1, 48: 9, 54: 1, 72: 3}


def test_phases_are_sixteenths_of_a_period():
    pll = find_pll(27, 54)
    assert pll.phases(1) == 16
    assert pll.delay(8) == pytest.approx(1e3 / 54 / 2)


@pytest.mark.parametrize(("mhz", "multiple", "message"), [
    (50, 1, "clock_mhz: expected a clock that the PLL makes of 27 MHz, found 50; nearest: 48 or "
     "51"),
    (3, 1, "clock_mhz: expected a clock that the PLL makes of 27 MHz, found 3; nearest: 6"),
    (48, 2, "memory.banks.clock_ratio: expected 1 with a rPLL, found 2"),
])  # fmt: skip
def test_a_clock_that_cannot_be_made(mhz, multiple, message):
    with pytest.raises(BoardError) as caught:
        find_pll(27, mhz, multiple)
    assert str(caught.value) == message
