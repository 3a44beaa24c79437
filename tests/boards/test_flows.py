"""Projects for AMD's devices: complete, the same twice, and run with the right arguments."""

import json
import re
import shutil
import stat
import subprocess
import tomllib
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from vdla import api
from vdla.boards import find_board
from vdla.boards.board import Bitstream, BoardError
from vdla.boards.flows import find_flow, vivado, xray, yosys
from vdla.boards.flows.files import digest, write
from vdla.boards.flows.fit import check_fit
from vdla.boards.flows.ipxact import SPIRIT, fusesoc
from vdla.boards.flows.project import c_header
from vdla.isa.clock import Clock
from vdla.isa.config import load_config, parse_config
from vdla.isa.manual import systemrdl
from vdla.isa.registers import registers

BOARD, CONFIG = find_board("pynq-z2"), load_config("tiny")
COMMON = {
    "vdla.dtso", "vdla.bif", "vdla.hwh", "vdla.rdl", "vdla_regs.h", "vdla.svd", "vdla_isa.h",
    "vdla.core", "ip/vdla.v", "ip/component.xml",
}  # fmt: skip
SYNC = bytes.fromhex("aa995566")
BIT = b"\0\x01\0\0\x01e" + (8).to_bytes(4, "big") + SYNC + b"\0\0\0\x01"
TIMING = """
    WNS(ns)      TNS(ns)  TNS Failing Endpoints
    -------      -------  ---------------------
      {slack}        0.000                      0
"""
UTILIZATION = """
| Slice LUTs                 | 30123 |     0 |          0 |     53200 | 56.62 |
|   LUT as Logic             | 29000 |     0 |          0 |     53200 | 54.51 |
| Slice Registers            | 15000 |     0 |          0 |    106400 | 14.10 |
| Block RAM Tile    | 104.5 |     0 |          0 |       140 | 74.64 |
| DSPs           |  {dsp} |     0 |          0 |       220 | 80.00 |
"""


@pytest.fixture(autouse=True)
def no_tools(monkeypatch):
    """Nothing but what a test puts there."""
    for name in ("VIVADO", "YOSYS", *xray.TOOLS, *xray.FOLDERS):
        monkeypatch.delenv(name, raising=False)
    which = shutil.which
    vendors = {"vivado", *xray.TOOLS.values()}
    monkeypatch.setattr(shutil, "which", lambda name: None if name in vendors else which(name))


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Makes a program that notes its arguments and then does as told; the path of its notes."""

    def make(variable, body):
        path = tmp_path / variable.lower()
        path.write_text(f'#!/bin/sh\necho "$@" >> "$0.args"\n{body}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(variable, str(path))
        return path.with_name(f"{path.name}.args")

    return make


@pytest.fixture(scope="module")
def project():
    """The project for Vivado, as it would be written."""
    return vivado.project(BOARD, CONFIG)


@pytest.fixture
def written(monkeypatch):
    """Little is written, so that running the tools is what takes the time."""
    for flow in (vivado, xray):
        monkeypatch.setattr(flow, "project", lambda board, config: {"vdla.dtso": ""})
    monkeypatch.setattr(yosys, "design", lambda board, config, toolchain: {"vdla.il": ""})


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def copy(tmp_path, name, content):
    """A shell command that makes a file."""
    source = tmp_path / f"{name}.source"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"cp {source} {name}"


# Vivado -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_without_vivado_the_project_is_written_and_says_where_vivado_is_from(tmp_path, project):
    made = find_flow(BOARD, None)(BOARD, CONFIG, tmp_path / "a")
    assert set(made.hashed) == set(project)
    assert contents(tmp_path / "a") == project  # the same, twice
    assert set(project) == {"vdla.v", "vdla.xdc", "vdla.tcl", *COMMON}
    assert (made.bitstream, made.fmax_mhz, made.used) == (None, None, {})
    assert made.notes[0].startswith("vivado: expected it, found none; it comes with AMD's Vivado")
    assert made.notes[1].endswith("-source vdla.tcl")


@pytest.mark.long
def test_the_project_holds_no_date_and_no_path(project):
    for name, text in project.items():
        assert "/tmp" not in text, name
        assert not re.search(r"\b20[2-9]\d-\d\d-\d\d\b|\d\d:\d\d:\d\d", text), name
        assert not re.search(r"\(\* src *=", text), name


@pytest.mark.long
def test_tcl_reads_exactly_the_projects_sources(project):
    tcl = project["vdla.tcl"]
    assert re.findall(r"^(?:add_files|read_xdc) (\S+)$", tcl, re.MULTILINE) == [
        "vdla.v",
        "vdla.xdc",
    ]
    assert "-part xc7z020clg400-1" in tcl
    assert "synth_design -top vdla" in tcl
    for report in (vivado.TIMING, vivado.UTILIZATION):
        assert report in tcl


def test_the_constraints_name_nets_and_ports_of_the_design(project):
    xdc, text = project["vdla.xdc"], project["vdla.v"]
    assert 'create_clock -name fclk0 -period 10.0 [get_nets "system/ps/fclk0"]' in xdc
    assert re.search(r'\(\* keep = "TRUE" \*\)\n +wire fclk0;', text)
    ports = re.findall(r'LOC (\w+) \[get_ports "(\w+)"\]', xdc)
    assert [pin for pin, _ in ports] == ["R14", "P14", "N16", "M14"]
    top = re.search(r"^module vdla\((.*?)\);", text, re.MULTILINE)[1]
    assert {port for _, port in ports} == set(top.split(", "))


def test_vivado_is_run_and_its_reports_are_read(tmp_path, tool, written):
    out = tmp_path / "a"
    args = tool(
        "VIVADO",
        "\n".join(
            (
                copy(tmp_path, "vdla.bit", BIT),
                copy(tmp_path, vivado.TIMING, TIMING.format(slack="0.500")),
                copy(tmp_path, vivado.UTILIZATION, UTILIZATION.format(dsp=176)),
            )
        ),
    )
    made = vivado.synthesize(BOARD, CONFIG, out)
    assert made.hashed == ("vdla.bit.bin",)  # the other one holds the hour
    expected = "-mode batch -nojournal -log vivado.log -source vdla.tcl\n"
    assert args.read_text() == expected
    assert made.bitstream == str(out / "vdla.bit")
    assert (out / "vdla.bit.bin").read_bytes() == bytes.fromhex("665599aa01000000")
    assert made.fmax_mhz == pytest.approx(1000 / 9.5)
    assert made.used == {"lut": 30123, "ff": 15000, "dsp": 176, "bram": 104.5}
    assert "bootgen -image vdla.bif -arch zynq" in made.notes[1]


@pytest.mark.parametrize(
    ("slack", "dsp", "body", "message"),
    [
        ("-1.000", 176, "", r"pynq-z2: expected 100 MHz, found 90.9 MHz for config tiny \(paths: "),
        ("0.1", 221, "", r"found dsp 221 of 220 \(1 too many\); nearest that fits: none$"),
        ("0.1", 1, "echo ERROR: no licence; exit 1", r"^vivado: .*exit 1: ERROR: no licence \("),
        ("0.1", 1, "rm vdla.bit", r"vdla\.bit: expected Vivado to write it, found none"),
        ("none", 1, "", r"expected a worst negative slack, found none$"),
    ],
)
def test_vivado_that_fails_gives_one_line(tmp_path, tool, written, slack, dsp, body, message):
    tool(
        "VIVADO",
        "\n".join(
            (
                copy(tmp_path, "vdla.bit", BIT),
                copy(tmp_path, vivado.TIMING, TIMING.format(slack=slack)),
                copy(tmp_path, vivado.UTILIZATION, UTILIZATION.format(dsp=dsp)),
                body,
            )
        ),
    )
    with pytest.raises(BoardError, match=message) as error:
        vivado.synthesize(BOARD, CONFIG, tmp_path / "a")
    assert "\n" not in str(error.value)


def test_a_digest_is_what_sha256sum_says(tmp_path):
    write(tmp_path, {"b": "2", "a/c": "1"})
    for names, command in (
        (["b"], "sha256sum b"),
        (["b", "a/c"], "sha256sum a/c b | sha256sum"),
    ):
        said = subprocess.check_output(command, shell=True, cwd=tmp_path, text=True)
        assert digest(tmp_path, names) == said.split()[0]


def test_synth_says_what_to_compare(tmp_path, written, vdla):
    args = ("synth", "--board", "pynq-z2", "-c", "tiny", "--out", tmp_path)
    folder = tmp_path / "pynq-z2-tiny"
    printed, found = vdla(*args).out, vdla(*args, "--json").json
    assert (found["bitstream"], found["sha256"]) == (None, digest(folder, ["vdla.dtso"]))
    assert f"SHA-256 {found['sha256']} of vdla.dtso\n" in printed


def test_synth_prints_what_the_config_s_file_may_say(tmp_path, vdla, monkeypatch):
    write(tmp_path, {"b": "2"})
    clock = Clock("routed", "nextpnr-xilinx 0.8", BOARD.name, 1, 104.2)
    made = Bitstream(BOARD, "xray", "tiny", str(tmp_path), "b", ("b",), 104.2, {}, (), clock)
    monkeypatch.setattr(api, "synth", lambda board, options: made)
    printed = vdla("synth", "--board", "pynq-z2", "-c", "tiny").out
    table = printed.partition("the config's file may say so:\n")[2].partition("SHA-256")[0]
    assert table.startswith("clock_mhz = 100\n[clock]\n")
    assert parse_config({**CONFIG.to_dict(), **tomllib.loads(table)}, "", "").clock == clock


def test_nothing_of_an_earlier_run_is_left(tmp_path, written):
    for name in ("vdla.bit", "vdla.bit.bin", vivado.TIMING):
        (tmp_path / name).write_text("earlier")
    vivado.synthesize(BOARD, CONFIG, tmp_path)
    assert contents(tmp_path) == {"vdla.dtso": ""}


def test_a_variable_that_names_no_program(tmp_path, monkeypatch):
    monkeypatch.setenv("VIVADO", "no-such-vivado")
    with pytest.raises(BoardError, match=r"^VIVADO: expected a program, found no-such-vivado$"):
        vivado.synthesize(BOARD, CONFIG, tmp_path)


# The packaged core ------------------------------------------------------------------------------


def test_the_component_maps_ports_that_the_verilog_has(project):
    root = ElementTree.fromstring(project["ip/component.xml"])
    space = {"s": SPIRIT}
    assert root.tag == f"{{{SPIRIT}}}component"
    order = [child.tag.split("}")[1] for child in root]
    assert order == [
        "vendor", "library", "name", "version", "busInterfaces", "addressSpaces", "memoryMaps",
        "model", "fileSets", "description",
    ]  # fmt: skip
    verilog = project["ip/vdla.v"]
    top = re.findall(r"\w+", re.search(r"^module vdla\(([^)]*)\);", verilog, re.MULTILINE)[1])
    listed = [
        port.findtext("s:name", namespaces=space) for port in root.iterfind(".//s:port", space)
    ]
    assert set(listed) == set(top)
    kinds, mapped = {}, []
    for bus in root.iterfind(".//s:busInterface", space):
        name = bus.findtext("s:name", namespaces=space)
        kinds[name] = bus.find("s:busType", space).get(f"{{{SPIRIT}}}name")
        physical = [
            p.findtext("s:name", namespaces=space) for p in bus.iterfind(".//s:physicalPort", space)
        ]
        assert set(physical) <= set(top)
        mapped += physical
    assert kinds == {
        "m_axi": "aximm", "s_axi": "aximm", "aclk": "clock", "aresetn": "reset", "irq": "interrupt"
    }  # fmt: skip
    left = set(top) - set(mapped)
    assert all(name.startswith("trace_") or name == "status" for name in left), left
    spaces = {e.get(f"{{{SPIRIT}}}{tag}") for tag in ("addressSpaceRef", "memoryMapRef")
              for e in root.iter(f"{{{SPIRIT}}}{tag}")}  # fmt: skip
    assert spaces == {"m_axi", "s_axi"}


def test_the_components_registers_are_the_cores(project):
    root = ElementTree.fromstring(project["ip/component.xml"])
    found = {
        e.findtext(f"{{{SPIRIT}}}name"): int(e.findtext(f"{{{SPIRIT}}}addressOffset"), 16)
        for e in root.iter(f"{{{SPIRIT}}}register")
    }
    assert found == {register.name: register.offset for register in registers(CONFIG)}


def test_the_fusesoc_core_names_files_of_the_project(project):
    named = re.findall(r"[\w/]+\.(?:v|xdc)\b", fusesoc(BOARD))
    assert named
    assert set(named) <= set(project)
    assert project["vdla.core"].startswith("CAPI=2:\n")


def test_peakrdls_header_has_the_same_registers_as_ours(project):
    theirs, ours = project["vdla_regs.h"], project["vdla_isa.h"]
    assert theirs == c_header(systemrdl(CONFIG))
    for register in registers(CONFIG):
        assert f"#define VDLA_REG_{register.name} {register.offset:#05x}" in ours
        for bits in register.bits:
            prefix = f"VDLA__{register.name}__{bits.name}"
            assert f"#define {prefix}_bm {bits.mask:#x}\n" in theirs
            assert f"#define {prefix}_bp {bits.low}\n" in theirs


# openXC7 ----------------------------------------------------------------------------------------


def test_without_openxc7_the_project_is_written(tmp_path, project, monkeypatch):
    common = {name: project[name] for name in COMMON}
    monkeypatch.setattr(xray, "common", lambda board, config: common)
    made = find_flow(BOARD, "xray")(BOARD, CONFIG, tmp_path / "a")
    found = contents(tmp_path / "a")
    assert set(found) == {"vdla.il", "vdla.ys", "vdla.xdc", "build.sh", *COMMON}
    assert made.bitstream is None
    assert set(made.hashed) == set(found)
    assert made.notes[0] == (
        "nextpnr-xilinx, fasm2frames, xc7frames2bit, CHIPDB, PRJXRAY_DB_DIR: expected them, found "
        "none; they come with openXC7: https://github.com/openXC7/toolchain-nix"
    )
    assert "src" not in re.findall(r"attribute \\(\w+)", found["vdla.il"])


@pytest.fixture
def openxc7(tmp_path, tool, monkeypatch, written):
    """All tools, which make what the next one takes; ``mhz`` as nextpnr says."""

    def make(mhz="104.20", cells=None, nextpnr=""):
        monkeypatch.setenv("CHIPDB", "/chips")
        monkeypatch.setenv("PRJXRAY_DB_DIR", "/xray")
        said = "\n".join(
            f"Info: Max frequency for clock 'sync': {n} MHz (PASS at 100.00 MHz)"
            for n in ("80.00", mhz)
        )
        return {
            "yosys": tool("YOSYS", copy(tmp_path, "vdla.json", netlist(cells or {"LUT6": 3}))),
            "nextpnr": tool("NEXTPNR_XILINX", f"cat <<'E'\n{said}\nE\n{nextpnr}"),
            "frames": tool("FASM2FRAMES", "true"),
            "bits": tool("XC7FRAMES2BIT", copy(tmp_path, "vdla.bit", BIT)),
        }

    return make


def netlist(cells):
    """What yosys writes of a design with so many cells, which nothing connects."""
    return json.dumps(
        {
            "modules": {
                "vdla": {
                    "ports": {},
                    "cells": {
                        f"{kind}_{n}": {
                            "type": kind,
                            "port_directions": {"O": "output"},
                            "connections": {"O": ["x"]},
                            "parameters": {},
                        }
                        for kind, count in cells.items()
                        for n in range(count)
                    },
                }
            }
        }
    )


def test_openxc7_is_run_step_by_step(tmp_path, openxc7):
    args = openxc7()
    made = xray.synthesize(BOARD, CONFIG, tmp_path / "a")
    assert args["yosys"].read_text() == "-q vdla.ys\n"
    assert args["nextpnr"].read_text() == (
        "--version\n"
        "--chipdb /chips/xc7z020clg400.bin --xdc vdla.xdc --json vdla.json --fasm vdla.fasm "
        "--freq 100 --seed 1 --timing-allow-fail\n"
    )
    assert args["frames"].read_text() == (
        "--part xc7z020clg400-1 --db-root /xray/zynq7 vdla.fasm vdla.frames\n"
    )
    assert args["bits"].read_text() == (
        "--part_file /xray/zynq7/xc7z020clg400-1/part.yaml --part_name xc7z020clg400-1 "
        "--frm_file vdla.frames --output_file vdla.bit\n"
    )
    assert (made.fmax_mhz, made.used) == (104.2, {"lut": 3})
    assert made.clock == Clock("routed", "nextpnr-xilinx", BOARD.name, 1, 104.2)
    assert (tmp_path / "a/vdla.bit.bin").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mhz": "70.5"}, r"pynq-z2: expected 100 MHz, found 70.5 MHz for config tiny"),
        ({"cells": {"DSP48E1": 230}}, r"found dsp 230 of 220 \(10 too many\); nearest that"),
        ({"nextpnr": "echo ERROR: no BEL; exit 1"}, r"^nextpnr_xilinx: .*ERROR: no BEL \("),
    ],
)
def test_openxc7_that_fails_gives_one_line(tmp_path, openxc7, given, message):
    openxc7(**given)
    with pytest.raises(BoardError, match=message):
        xray.synthesize(BOARD, CONFIG, tmp_path / "a")


# yosys ------------------------------------------------------------------------------------------


def test_yosys_reports_area_and_a_verdict(tmp_path, tool, written):
    cells = {"LUT6": 5, "INV": 1, "RAM32M": 2, "FDRE": 7, "DSP48E1": 3, "RAMB18E1": 3}
    args = tool("YOSYS", copy(tmp_path, "vdla.json", netlist(cells)))
    made = find_flow(BOARD, "yosys")(BOARD, CONFIG, tmp_path / "a")
    assert args.read_text() == "-q vdla.ys\n"
    assert made.used == {"lut": 14, "ff": 7, "dsp": 3, "bram": 1.5}
    assert (made.bitstream, made.fmax_mhz) == (None, None)
    report = json.loads((tmp_path / "a/area.json").read_text())
    assert report["sha256"] == digest(tmp_path / "a", ("vdla.json", "vdla.il", "vdla.ys"))
    assert made.notes[0].startswith("fits xc7z020clg400-1: lut 14 of 53,200, ff 7 of 106,400, ")
    assert "| **total** | 14 | 7 | 3 | 1.5 |" in (tmp_path / "a/area.md").read_text()


def test_what_doesnt_fit_says_by_how_much(tmp_path, tool, written):
    tool("YOSYS", copy(tmp_path, "vdla.json", netlist({"DSP48E1": 3, "RAMB18E1": 281})))
    for config, near in (("vta", "-c vta --set inp_bytes=16384"), ("tiny", "none")):
        with pytest.raises(BoardError) as error:
            yosys.synthesize(BOARD, load_config(config), tmp_path / "a")
        assert str(error.value) == (
            f"pynq-z2: expected config {config} to fit xc7z020clg400-1, found bram 140.5 "
            f"of 140 (0.5 too many); nearest that fits: {near}"
        )


@pytest.mark.parametrize(("board", "family"), [("pynq-z2", "xc7"), ("ultra96-v2", "xcup")])
def test_yosys_maps_for_the_boards_family(board, family):
    assert f"synth_xilinx -family {family} " in yosys.script(yosys.family(find_board(board)))


def test_units_by_path():
    found = {
        "": yosys.AROUND,
        "core": yosys.CORE,
        "core.compute.alu.shift_3": "ALU",
        "system.core": yosys.CORE,
        "system.core.load": "LOAD",
        "system.core.load_to_next": yosys.OTHERS,
        "system.core.inp": "scratchpads",
        "system.ps": yosys.AROUND,
    }
    assert {path: yosys.unit_of(path) for path in found} == found


def test_a_smaller_device_is_enough_to_fail():
    check_fit(BOARD, CONFIG, {"lut": 53_200})
    with pytest.raises(BoardError, match=r"lut 53,200 of 53,199 \(1 too many\)"):
        check_fit(
            replace(BOARD, available={**BOARD.available, "lut": 53_199}), CONFIG, {"lut": 53_200}
        )


@pytest.mark.long
def test_paper_fits_the_zynq_with_its_processing_system(tmp_path):
    made = yosys.synthesize(BOARD, load_config("paper"), tmp_path)
    assert made.used["dsp"] <= 220
    assert made.used["bram"] <= 140
    assert made.used["lut"] <= 53_200
