"""``vdla offload``: a network on a board's processor alone, and with the accelerator."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import vdla as package
from vdla.analysis.offload import NOWHERE, OffloadedLayer, layer_cycles, offloaded_layers
from vdla.boards import find_board
from vdla.compiler.targets.processor.timing.model import FunctionTime, HostTime
from vdla.names.configs import resolve_on


def test_a_layer_takes_the_cycles_from_the_end_of_those_before():
    finish = np.array([9, 19, 14, 29, 30])
    layers = [("a", 1), ("b", 2), ("c", 1), ("", 1)]
    cycles = layer_cycles(SimpleNamespace(finish=finish), layers)
    assert cycles == {"a": 10, "b": 10, "c": 11}
    late = layer_cycles(SimpleNamespace(finish=np.array([9, 5])), [("a", 1), ("b", 1)])
    assert late == {"a": 10, "b": 0}  # it was over before the layer in front of it


def host(*steps):
    times = (FunctionTime(name, (operator,), 0.0, 0.0, ms / 1e3) for name, operator, ms in steps)
    return HostTime("cortex-a9", 650, tuple(times), 0.001)


def test_layers_have_the_device_that_runs_them():
    alone = host(("quantize", "Quantize", 1), ("conv", "QConv2d", 90), ("copy", "Unpack", 2))
    left = host(("quantize", "Quantize", 3), ("pack", "Pack", 4))
    assert offloaded_layers(alone, left, {"conv": 2.0, "pool": 0.5}) == [
        OffloadedLayer("quantize", ("Quantize",), "cpu", 1, 3),
        OffloadedLayer("conv", ("QConv2d",), "vdla", 90, 2.0),
        OffloadedLayer("copy", ("Unpack",), NOWHERE, 2, 0.0),
        OffloadedLayer("pack", ("Pack",), "cpu", 0.0, 4),
        OffloadedLayer("pool", (), "vdla", 0.0, 0.5),
    ]


@pytest.fixture(scope="module")
def digits():
    return package.offload("digits", board="pynq-z2")


def test_parts_add_up_and_are_those_of_a_run(digits):
    shown = digits.to_json()
    both = shown["together"]
    assert both["total"] == pytest.approx(
        both["host"] + both["transfers"] + both["accelerator"], rel=1e-9
    )
    assert shown["alone"]["total"] == pytest.approx(
        shown["alone"]["calls"] + sum(layer["alone"] for layer in shown["layers"])
    )
    ran = package.run("digits", config=resolve_on("pynq-z2", None))
    clock = find_board("pynq-z2").clock_hz
    assert both["accelerator"] == pytest.approx(1e3 * ran.cycles / clock)
    assert shown["speedup"] == pytest.approx(shown["alone"]["total"] / both["total"])
    assert {layer["device"] for layer in shown["layers"]} <= {"vdla", "cpu", "none"}
    assert shown["processor"] == {"name": "cortex-a9", "clock_mhz": 650}
    assert digits.convolutions[0] > digits.convolutions[1] > 0


def test_the_command_prints_layers_and_writes_a_picture(vdla, tmp_path):
    done = vdla("offload", "digits", "--board", "pynq-z2", "--out", tmp_path)
    assert done.code == 0, done
    assert "cortex-a9 alone, modelled at 650 MHz: " in done.out
    picture = tmp_path / "digits-paper-pynq-z2-offload.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {picture}" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits",), "Missing option '--board'; see vdla offload --help"),
        (
            ("digits", "--board", "de10"),
            "board: expected one of ulx3s, pynq-z1, pynq-z2, arty-z7-20, ultra96-v2, found de10",
        ),
    ],
)
def test_bad_input_is_one_line(vdla, arguments, message):
    done = vdla("offload", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"vdla: {message}\n")


# Configs in front of a board's memory ----------------------------------------------------------


def test_a_config_is_printed_in_front_of_a_boards_memory(vdla):
    done = vdla("configs", "tiny", "--board", "pynq-z2", "--json")
    assert done.json["memory"] == resolve_on("pynq-z2", "tiny").to_dict()["memory"]
    assert done.json["memory"]["banks"]["count"] == 8
    assert vdla("configs", "--board", "ulx3s", "--json").json["name"] == "ulx3s"


def test_settings_of_the_memory_go_before_the_boards():
    assert resolve_on("pynq-z2", "tiny", ["memory.latency=9"]).memory.banks is None


@pytest.mark.parametrize("name", ["ulx3s", "ulx3s-wide"])
def test_the_bundled_configs_of_a_board_have_its_memory(name):
    assert resolve_on(None, name).memory == resolve_on("ulx3s", name).memory


def test_latency_hiding_is_compared_in_front_of_a_boards_memory():
    compared = package.compare("digits", "tiny", board="ulx3s")
    assert compared.config.memory.banks.row_bytes == 1024
    assert compared.cycles(2) <= compared.cycles(1)
