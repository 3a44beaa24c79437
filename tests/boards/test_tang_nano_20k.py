"""The Tang Nano 20K: its clocks, the places of its SDRAM's pads, and what it refuses."""

import re
from pathlib import Path

import pytest
from amaranth.build import Pins

from vdla.boards import clocked, find_board, memory_of
from vdla.boards.board import BoardError
from vdla.boards.flows import gowin
from vdla.boards.tang_nano_20k import DIE, WIRING, Platform
from vdla.isa.config import load_config
from vdla.names.configs import resolve_on

BOARD = find_board("tang-nano-20k")
PORTS = {  # the names that Gowin's tools know the pads by
    "clk": "O_sdram_clk", "clk_en": "O_sdram_cke", "cs": "O_sdram_cs_n", "ras": "O_sdram_ras_n",
    "cas": "O_sdram_cas_n", "we": "O_sdram_wen_n", "dqm": "O_sdram_dqm", "a": "O_sdram_addr",
    "ba": "O_sdram_ba", "dq": "IO_sdram_dq",
}  # fmt: skip


@pytest.mark.parametrize("mhz", [36, 45, 48, 54, 60])
def test_every_margin_is_positive(mhz):
    clocks = WIRING.clocks_of(load_config("nano", [f"clock_mhz={mhz}"]))
    assert clocks.hz == clocks.sdram_hz == mhz * 1e6
    assert min(WIRING.phase_margins(clocks).values()) > 1


def test_the_board_is_its_configs():
    config = load_config("nano")
    assert (BOARD.clock_hz, BOARD.memory) == (config.clock_mhz * 1e6, config.memory)
    assert config.macs_per_cycle == 32
    assert (BOARD.device, BOARD.memory_bytes) == ("GW2AR-LV18QN88C8/I7", 8 << 20)
    assert memory_of(BOARD, config).bytes_per_cycle == 4


@pytest.mark.parametrize(("settings", "message"), [
    (("port_bytes=64", "block_in=64", "block_out=64", "wgt_bytes=65536"),
     "memory EM638325-7: expected port_bytes 4, 8, 16 or 32, found 64"),
    (("clock_mhz=50",),
     "clock_mhz: expected a clock that the PLL makes of 27 MHz, found 50; nearest: 48 or 51"),
    (("memory.banks.clock_ratio=2", "block_out=8", "port_bytes=8"),
     "memory.banks.clock_ratio: expected 1 with a rPLL, found 2"),
])  # fmt: skip
def test_what_the_board_cannot_have(settings, message):
    with pytest.raises(BoardError) as caught:
        clocked(BOARD, load_config("nano", settings))
    assert str(caught.value) == f"config nano on tang-nano-20k: {message}"


def test_pads_are_where_apycula_has_them():
    """IOL13A is the first pad of row 12, from 0, of the left side."""
    chipdb = pytest.importorskip("apycula.chipdb")
    database = chipdb.load_chipdb(str(Path(chipdb.__file__).parent / f"{DIE}.msgpack.xz"))
    known = {
        name: f"IO{'R' if column else 'L'}{row + 1}{pad}"
        for name, row, column, pad, _ in database.sip_cst["GW2AR-18C"]["QFN88"]
    }
    resource = next(each for each in Platform.resources if each.name == "sdram")
    ours = {}
    for part in resource.ios:
        names = part.ios[0].names if isinstance(part.ios[0], Pins) else ()
        if part.name in PORTS:
            port = PORTS[part.name]
            ours |= {port if len(names) == 1 else f"{port}[{n}]": p for n, p in enumerate(names)}
    assert ours == known


def test_the_design():
    """Its clock, its pins, and the numbers of its PLL."""
    files, options = gowin.design(BOARD, resolve_on(BOARD.name, "tiny", ["clock_mhz=36"]))
    assert options == ["--device", BOARD.device, "--freq", "36", "--vopt", "family=GW2A-18C",
                       "--vopt", "cst=vdla.cst"]  # fmt: skip
    places = dict(re.findall(r'IO_LOC "(\S+)" (\w+);', files["vdla.cst"]))
    assert (places["clk27_0__io"], places["led_5__io"]) == ("4", "20")
    assert (places["uart_0__rx__io"], places["uart_0__tx__io"]) == ("70", "69")
    assert len(set(places.values())) == len(places) == 1 + 6 + 2 + 55
    numbers = dict(re.findall(r"parameter \\(\w+_SEL) (\S+)", files["vdla.il"]))
    assert (numbers["IDIV_SEL"], numbers["FBDIV_SEL"], numbers["ODIV_SEL"]) == ("2", "3", "16")
    assert numbers["PSDA_SEL"] == f'"{WIRING.clocks_of(load_config("nano")).late:04b}"'
