"""The ULX3S's clocks: the config's, with margins at the SDRAM's pins, at both ratios."""

import re
from dataclasses import replace

import pytest

from vdla.boards import clocked, find_board, memory_of
from vdla.boards.board import BoardError
from vdla.boards.flows import trellis
from vdla.boards.soc.sdram import Pads
from vdla.boards.ulx3s import WIRING, clocks_of
from vdla.isa.config import config_names, load_config
from vdla.names.configs import resolve_on

BOARD = find_board("ulx3s")
phase_margins = WIRING.phase_margins
FAST = resolve_on("ulx3s", "tiny", ["clock_mhz=60", "memory.banks.clock_ratio=2"])


def at(mhz, ratio=1, name="ulx3s"):
    return load_config(name, [f"clock_mhz={mhz}", f"memory.banks.clock_ratio={ratio}"])


def test_60_mhz_are_as_they_were():
    clocks = clocks_of(at(60))
    assert (clocks.hz, clocks.late, clocks.pads) == (60e6, 2 * 8, Pads())
    assert (clocks.pll.vco_mhz, clocks.pll.divider) == (600, 10)
    assert min(phase_margins(clocks).values()) > 0.8
    for late in (0, 5 * 8):
        assert min(phase_margins(replace(clocks, late=late)).values()) < 0


@pytest.mark.parametrize(("mhz", "ratio", "least"), [
    (60, 1, 0.8), (66, 1, 1.9), (70, 1, 2.2), (75, 1, 1.5), (80, 1, 1.9), (85, 1, 1.7),
    (60, 2, 0.8), (66, 2, 0.5), (70, 2, 0.1),
])  # fmt: skip
def test_every_margin_is_positive(mhz, ratio, least):
    """At clocks that a design may ship with; at 140 MHz of the chip there is the least to spare."""
    clocks = clocks_of(at(mhz, ratio))
    assert clocks.sdram_hz == mhz * ratio * 1e6
    assert min(phase_margins(clocks).values()) > least


def test_bundled_configs_have_margins():
    for name in (each for each in config_names() if each.startswith("ulx3s")):
        assert min(phase_margins(clocks_of(load_config(name))).values()) > 0, name


def test_a_phase_that_is_missed_has_none():
    clocks = clocks_of(at(70, 2))
    for other in (replace(clocks, late=clocks.late + 3), replace(clocks, pads=Pads(2))):
        assert min(phase_margins(other).values()) < 0


@pytest.mark.parametrize(("mhz", "ratio", "message"), [
    (75, 2, "memory AS4C16M16SA-7: expected a clock of at most 142.8 MHz, found 150"),
    (200, 1, "memory AS4C16M16SA-7: expected a clock of at most 142.8 MHz, found 200"),
    (40, 1, "baud: expected a clock of n × 3000000, found 40000000 Hz"),
    (3, 1, "clock_mhz: expected a clock that the PLL makes of 25 MHz, found 3; nearest: 4"),
])  # fmt: skip
def test_a_clock_that_the_board_cannot_have(mhz, ratio, message):
    for call in (clocks_of, lambda config: clocked(BOARD, config)):
        with pytest.raises(BoardError) as caught:
            call(at(mhz, ratio))
        assert str(caught.value) == f"config ulx3s on ulx3s: {message}"


def test_a_clock_without_a_margin():
    with pytest.raises(BoardError) as caught:
        replace(WIRING, data_in=(0.5, 4)).clocks_of(at(70, 2))
    assert re.fullmatch(
        r"config ulx3s on ulx3s: expected a clock at which the SDRAM's words can be taken, found "
        r"70 MHz, with 0\.\d\d ns too few",
        str(caught.value),
    )


def test_the_board_and_its_memory_follow_the_config():
    board = clocked(BOARD, at(70, 2))
    assert board.clock_hz == 70e6
    assert board.memory == memory_of(BOARD, at(70, 2))
    assert (board.memory.bytes_per_cycle, board.memory.banks.clock_ratio) == (4, 2)
    assert clocked(BOARD, load_config("ulx3s")) == BOARD
    pynq = find_board("pynq-z2")
    assert clocked(pynq, load_config("paper")) is pynq


def test_the_table_of_a_new_config_is_printed(vdla):
    """`vdla configs` computes it for the clock and the ratio, for configs without banks, too."""
    done = vdla("configs", "ulx3s", "--board", "ulx3s", "--as", "fast", "--set", "clock_mhz=70",
                "--set", "memory.banks.clock_ratio=2")  # fmt: skip
    assert done.code == 0, done.err
    for line in ("clock_mhz = 70 ", "bytes_per_cycle = 4 ", "row_cycle = 5 ", "clock_ratio = 2 "):
        assert f"\n{line}" in done.out
    fast = resolve_on("ulx3s", "tiny", ["clock_mhz=60", "memory.banks.clock_ratio=2"])
    settings = ["clock_mhz=60", "memory.banks.clock_ratio=2"]
    assert fast.memory == resolve_on("ulx3s", "ulx3s", settings).memory
    slow = resolve_on("ulx3s", fast, ["clock_mhz=80", "memory.banks.clock_ratio=1"])
    assert slow.memory == memory_of(BOARD, at(80))


def test_a_board_whose_memory_has_a_clock_of_its_own():
    with pytest.raises(BoardError) as caught:
        resolve_on("pynq-z2", "ulx3s", ["memory.banks.clock_ratio=2"])
    assert str(caught.value) == ("board pynq-z2: expected memory.banks.clock_ratio = 1, found 2")


@pytest.mark.long
@pytest.mark.parametrize(("ratio", "clocks"), [(1, ("60000000",)), (2, ("60000000", "120000000"))])
def test_the_design(ratio, clocks):
    """Its clocks, and whether pads are on the core's or on the SDRAM's."""
    files, _ = trellis.design(BOARD, load_config("tiny", ["clock_mhz=60"]) if ratio == 1 else FAST)
    constraints = re.findall(r"FREQUENCY NET \"\S+\" (\d+)(?:\.0)? HZ", files["vdla.lpf"])
    assert tuple(constraints) == clocks
    design = files["vdla.il"]
    assert ("CLKOS2_DIV" in design) == ("half_rate" in design) == (ratio == 2)
