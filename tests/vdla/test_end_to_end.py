"""End-to-end milliseconds, the processor that --host names, and --placement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vdla as api
from vdla.analysis.end_to_end import transfer_seconds, transport_of
from vdla.analysis.report import report_page
from vdla.boards import find_board
from vdla.compiler.targets.processor.timing.machine import NAMES, is_native, machine_of
from vdla.options.spelling import UsageError

DIGITS = ("run", "digits", "-c", "tiny", "--images", 1)


def whole(vdla, *options):
    done = vdla(*DIGITS, "--json", *options)
    assert done.code == 0, done.err
    return done.json


def test_three_parts_of_a_run(vdla):
    result = whole(vdla)
    parts = result["end_to_end"]
    assert (parts["host"], parts["modelled"]) == ("this machine", False)
    assert parts["accelerator_ms"] == pytest.approx(result["cycles"] / 100e3)  # at 100 MHz
    assert parts["host_ms"] > 0
    assert (parts["transfer_ms"], parts["transport"]) == (0, "shared memory")
    assert parts["total_ms"] == pytest.approx(parts["host_ms"] + parts["accelerator_ms"])


def test_a_host_that_is_not_at_hand(vdla):
    result = whole(vdla, "--host", "cortex-a9")
    parts = result["end_to_end"]
    expected = api.host_time("digits", "cortex-a9", device="sim", config="tiny")
    assert (parts["host"], parts["modelled"]) == ("cortex-a9", True)
    assert parts["host_ms"] == pytest.approx(expected.milliseconds)
    assert parts["transfer_bytes"] == expected.shared_bytes
    assert parts["transfer_ms"] == pytest.approx(1e3 * expected.shared_bytes / 640e6)
    assert result["outputs"] == whole(vdla)["outputs"]
    line = next(
        line for line in vdla(*DIGITS, "--host", "cortex-a9").out.splitlines() if "end to" in line
    )
    assert "(cortex-a9, modelled)" in line


def test_all_of_it_on_a_host_that_is_not_at_hand(vdla):
    done = vdla("run", "digits", "--images", 1, "--device", "cpu", "--host", "cortex-a53", "--json")
    parts = done.json["end_to_end"]
    assert parts["host_ms"] == pytest.approx(api.host_time("digits", "cortex-a53").milliseconds)
    assert parts["accelerator_ms"] == 0


def test_a_module_brings_its_host_s_time(vdla, tmp_path):
    path = tmp_path / "m.vdla"
    done = vdla("compile", "digits", "-c", "tiny", "--host", "cortex-a9", "-o", path)
    assert done.code == 0
    assert "host time on cortex-a9, modelled: " in done.err
    module = api.load(path)
    assert module.host.cpu == "cortex-a9"
    expected = api.host_time("digits", "cortex-a9", device="sim", config="tiny")
    assert api.host_time(module) == expected
    plain = api.compile("digits", config="tiny")
    with pytest.raises(UsageError) as error:
        api.host_time(plain)
    assert str(error.value) == (
        "host_time: expected a module that was compiled with --host and a processor, one of "
        "cortex-a53, cortex-a9, znver4, found one without"
    )


def test_compare_has_the_host_s_time_too():
    comparison = api.compare("digits", "tiny", vthreads=(2,), host="cortex-a9")
    result = comparison.to_json()
    parts = result["end_to_end"]["2"]
    assert (parts["host"], parts["modelled"]) == ("cortex-a9", True)
    assert parts["accelerator_ms"] == pytest.approx(result["total"]["cycles"]["2"] / 100e3)
    page = report_page("digits", comparison, comparison.layers[0])
    assert '"endToEnd":{"host":"cortex-a9","modelled":true' in page


def test_placement_by_cost(vdla):
    """On this small accelerator, a fast host is better at all but what the user places."""
    by = ("--host", "znver4", "--placement", "cost", "--place", "conv2=vdla")
    result = whole(vdla, *by)
    devices = {row["name"]: row["device"] for row in result["placement"]}
    assert (devices["conv1"], devices["conv2"], devices["fc"]) == ("cpu", "vdla", "cpu")
    reasons = {row["name"]: row["reason"] for row in result["placement"]}
    assert reasons["conv1"].startswith("by cost: ")
    assert result["outputs"] == whole(vdla)["outputs"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--placement", "luck"), "--placement: expected capability or cost, found luck"),
        (("--placement", "cost", "--host", "gpu"),
         "--placement cost: expected a processor as host, whose time is modelled, found --host "
         "gpu"),
        (("--placement", "cost", "--device", "cpu"),
         "--placement: expected --device sim or rtl or board, found cpu"),
        (("--device", "gpu", "--host", "cortex-a9"),
         "--host: expected --device sim or rtl or board or cpu, found gpu"),
        (("--place", "image_QuantizeLinear=vdla"),
         "--place image_QuantizeLinear=vdla: expected a node that vdla runs, found Quantize: float "
         "input becomes integers; place it on cpu, or leave it out"),
    ],
)  # fmt: skip
def test_what_cannot_be(vdla, tmp_path, options, line):
    for command in (("run", "digits"), ("compile", "digits", "-o", tmp_path / "m.vdla")):
        done = vdla(*command, *options)
        assert (done.code, done.err.strip()) == (2, f"vdla: {line}")
    assert not list(tmp_path.iterdir())


def test_a_host_and_another_target(vdla, tmp_path):
    done = vdla(
        "compile", "digits", "-o", tmp_path / "m", "--host", "cortex-a9", "--target", "cortex-a53"
    )
    assert done.err.strip() == (
        "vdla: --host cortex-a9: expected the same processor with --target, or no --target, found "
        "cortex-a53"
    )
    done = vdla("compare", "digits", "--host", "z80", "--out", tmp_path)
    assert done.err.strip() == (
        "vdla: --host: expected native or one of cortex-a53, cortex-a9, znver4, found z80"
    )


def test_transfers_over_a_serial_line_and_in_shared_memory():
    """3 Mbaud, ten bits for a byte; a modelled host writes its caches back."""
    ulx3s, zynq = find_board("ulx3s"), find_board("pynq-z1")
    assert transfer_seconds(300_000, None, ulx3s) == pytest.approx(1.0)
    assert transfer_seconds(300_000, None, zynq) == 0
    assert transfer_seconds(640_000, "cortex-a9", zynq) == pytest.approx(1e-3)
    assert (transport_of(ulx3s), transport_of(zynq)) == ("serial line", "shared memory")


@pytest.mark.long
def test_the_model_against_a_clock():
    """The benchmark's own bound, on two networks; it exits with 1 where it doesn't hold."""
    if not any(is_native(machine_of(name)) for name in NAMES):
        pytest.skip("expected a processor that is described, found another")
    root = Path(__file__).parents[2]
    command = [sys.executable, "benchmarks/host_time.py", "--models", "mobilenet,patches"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert "mean of absolute errors" in done.stdout
    assert done.returncode == 0, done.stdout
