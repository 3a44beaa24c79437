"""``vdla offload``: a network on a board's processor alone, and with the accelerator."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from figures import markers, overlapping_texts, text_boxes

import vdla as package
from vdla.analysis.offload import (
    NOWHERE,
    OffloadedLayer,
    layer_cycles,
    milliseconds_text,
    offloaded_layers,
)
from vdla.analysis.offload_plot import DRAWN, offload_plot
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


@pytest.fixture(scope="session")
def offloaded(once):
    """``offloaded(name)`` is a bundled network on a PYNQ-Z2."""
    return lambda name: once(f"offload-{name}", lambda: package.offload(name, board="pynq-z2"))


@pytest.fixture
def digits(offloaded):
    return offloaded("digits")


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
    done = vdla("offload", "digits", "--board", "pynq-z2", "--out", tmp_path, "--format", "svg,png")
    assert done.code == 0, done
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".png", ".svg"]
    assert "cortex-a9 alone, modelled at 650 MHz: " in done.out
    picture = tmp_path / "digits-paper-pynq-z2-offload.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {picture}" in done.err
    assert done.out.splitlines()[-1] == "speedup: 3.3×"
    assert "with the accelerator" in done.out.split("image_Quantize")[0]
    assert "with the accelerator (config paper) at 100 MHz (asked): 0.120 ms" in done.out


@pytest.mark.parametrize(
    ("value", "text"),
    [(3777.28, "3,777 ms"), (93.92, "93.9 ms"), (0.39175, "0.392 ms"), (0.00138, "0.00138 ms"),
     (1.0, "1.00 ms"), (0.0, "0 ms")],
)  # fmt: skip
def test_milliseconds_have_three_digits(value, text):
    assert milliseconds_text(value) == text


NETWORKS = ["digits", pytest.param("resnet18", marks=pytest.mark.long)]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_picture_shows_every_layer_and_no_text_covers_another(offloaded, name):
    found = offloaded(name)
    figure = offload_plot(found)
    assert overlapping_texts(figure) == []
    assert min(text.get_fontsize() for text, _ in text_boxes(figure)) >= 8
    whole, _, times, hiding = figure.axes
    shown = [text.get_text() for text, _ in text_boxes(figure)]
    for total in (found.alone, found.together):
        assert milliseconds_text(total) in [text.get_text() for text in whole.texts]
    dots = sorted(
        (row, value)
        for row, layer in enumerate(found.layers)
        for value in (layer.alone, layer.together)
        if value > 0
    )
    assert sorted((y, x) for x, y in markers(times)) == dots
    (low, high), (bottom, top) = times.get_xlim(), times.get_ylim()
    assert all(low < value < high and top < row < bottom for row, value in dots)
    values = [value for _, value in dots]
    assert low > min(values) / 10
    assert high < 50 * max(values)
    assert sum("…" in text for text in shown) <= 1
    for layer in found.hiding.layers:
        row = [each.name for each in found.layers].index(layer.name)
        bars = [bar for bar in hiding.patches if abs(bar.get_y() + 0.2 - row) < 0.45]
        assert len(bars) == 2, layer.name


def test_a_long_network_shows_its_longest_layers(digits):
    layers = [replace(digits.layers[1], name=f"conv{i}", alone=1.0 + i) for i in range(300)]
    figure = offload_plot(replace(digits, layers=layers))
    names = [text.get_text() for text in figure.axes[2].get_yticklabels()]
    assert names == [f"conv{i}" for i in range(300 - DRAWN, 300)]
    assert "the 64 longest" in figure.axes[2].get_title()
    assert overlapping_texts(figure) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits",), "Missing option '--board'; see vdla offload --help"),
        (
            ("digits", "--board", "de10"),
            "board: expected one of ulx3s, colorlight-i9, tang-nano-20k, pynq-z1, pynq-z2, "
            "arty-z7-20, ultra96-v2, found de10; "
            "docs/my-board.md says what another takes",
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
