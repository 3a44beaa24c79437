"""The Colorlight i9: its clocks, its pins, its memory, and what it refuses."""

import re

import pytest

from vdla.boards import clocked, find_board, memory_of
from vdla.boards.board import BoardError
from vdla.boards.colorlight_i9 import WIRING
from vdla.boards.flows import trellis
from vdla.isa.config import load_config
from vdla.names.configs import resolve_on

BOARD = find_board("colorlight-i9")


def at(mhz, ratio=1):
    return load_config("colorlight", [f"clock_mhz={mhz}", f"memory.banks.clock_ratio={ratio}"])


@pytest.mark.parametrize(("mhz", "ratio", "least"), [
    (60, 1, 0.5), (66, 1, 1.4), (70, 1, 1.7), (75, 1, 1.3),
])  # fmt: skip
def test_every_margin_is_positive(mhz, ratio, least):
    clocks = WIRING.clocks_of(at(mhz, ratio))
    assert clocks.sdram_hz == mhz * ratio * 1e6
    assert min(WIRING.phase_margins(clocks).values()) > least


def test_the_board_is_its_configs():
    config = load_config("colorlight")
    assert (BOARD.clock_hz, BOARD.memory) == (config.clock_mhz * 1e6, config.memory)
    assert BOARD.memory_bytes == 8 << 20
    assert BOARD.device == "LFE5U-45F-6BG381C"


def test_a_word_is_a_beat():
    """32 bits of the chip are what the core takes in a cycle."""
    memory = memory_of(BOARD, load_config("colorlight"))
    assert memory.bytes_per_cycle == 4
    assert (memory.banks.read_recovery, memory.banks.write_to_read) == (1, 1)
    assert memory.banks.row_bytes == 1024  # 256 columns
    assert memory.banks.refresh_interval == 1093  # 64 ms / 4096


@pytest.mark.parametrize(("settings", "message"), [
    (("port_bytes=64", "block_in=64", "block_out=64", "wgt_bytes=65536"),
     "memory EM638325-7: expected port_bytes 4, 8, 16 or 32, found 64"),
    (("clock_mhz=3",),
     "clock_mhz: expected a clock that the PLL makes of 25 MHz, found 3; nearest: 4"),
    (("clock_mhz=40",), "baud: expected a clock of n × 3000000, found 40000000 Hz"),
    (("clock_mhz=75", "memory.banks.clock_ratio=2", "port_bytes=8"),
     "memory EM638325-7: expected a clock of at most 142.8 MHz, found 150"),
])  # fmt: skip
def test_what_the_board_cannot_have(settings, message):
    config = load_config("colorlight", settings)
    with pytest.raises(BoardError) as caught:
        clocked(BOARD, config)
    assert str(caught.value) == f"config colorlight on colorlight-i9: {message}"


def test_the_design():
    """Its clock and its pins: what the board ties to a level has none."""
    files, options = trellis.design(BOARD, resolve_on(BOARD.name, "tiny", ["clock_mhz=60"]))
    assert "--45k" in options
    constraints = files["vdla.lpf"]
    assert re.findall(r"FREQUENCY NET \"\S+\" (\d+)(?:\.0)? HZ", constraints) == ["60000000"]
    sites = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\w+)"', constraints))
    assert (sites["clk25_0__io"], sites["led_0__io"]) == ("P3", "L2")
    assert (sites["uart_0__rx__io"], sites["uart_0__tx__io"]) == ("H18", "J17")
    assert (sites["sdram_0__dq__io[31]"], sites["sdram_0__a__io[10]"]) == ("C15", "B12")
    assert len(set(sites.values())) == len(sites) == 4 + 1 + 3 + 2 + 11 + 32
    assert not [name for name in sites if "cs" in name or "dqm" in name or "clk_en" in name]
