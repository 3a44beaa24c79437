"""``vdla compare --latency``: every point is the comparison at that latency."""

from __future__ import annotations

import pytest

from vdla import api
from vdla.analysis.comparison import compare_models
from vdla.compiler.models import model_paths
from vdla.isa.config import load_config


@pytest.mark.long
def test_a_point_is_the_comparison_at_its_latency(vdla, tmp_path):
    common = ("compare", "digits", "-c", "tiny", "--vthreads", "1,2", "--out", tmp_path, "--json")
    found = vdla(*common, "--latency", "256,0,64").json
    assert list(found) == ["config", "memory", "sweep"]
    assert found["memory"] == {"latency": 64, "bytes_per_cycle": 4}
    assert [point["latency"] for point in found["sweep"]] == [256, 0, 64]
    for point in found["sweep"]:
        alone = vdla(*common, "--set", f"memory.latency={point['latency']}").json
        assert point == {
            "latency": point["latency"],
            "total": alone["total"],
            "layers": alone["layers"],
        }
    assert (tmp_path / "digits-tiny-latency.png").read_bytes().startswith(b"\x89PNG")


def test_schedules_are_chosen_anew():
    """The compiler knows the memory: one schedule for all latencies would be slower."""
    path = {"C5": model_paths("resnet18-convs")["C5"]}
    configs = [load_config("paper", [f"memory.latency={n}"]) for n in (0, 256)]
    ((fast,), (slow,)) = (compare_models(path, config, [2]).layers for config in configs)
    assert fast.measured[2].tile != slow.measured[2].tile


def test_the_configs_own_latency_is_measured_once():
    told = []
    found = api.sweep(
        "digits", "tiny", [1], latencies=[64, 128], progress=lambda *what: told.append(what)
    )
    steps = [(layer, n) for n in (64, 128) for layer in ("conv1", "conv2", "fc")]
    assert told == [(f"{layer} at {n}", i, 6) for i, (layer, n) in enumerate(steps)]
    assert found.points[0].cycles(1) == found.base.cycles(1)
    assert found.points[0].utilization(1) == found.base.utilization(1)


@pytest.mark.long
def test_the_tables_have_every_layer_and_latency(vdla, tmp_path):
    done = vdla("compare", "digits", "-c", "tiny", "--out", tmp_path, "--latency", "0,512")
    assert done.code == 0
    for v in ("1 virtual thread ", "2 virtual threads "):
        assert v in done.out
    assert done.out.count("512") >= 2
    assert done.out.count("│ conv2 ") == 3


@pytest.mark.parametrize("text", ["x", "", "64,", "64,64", "-1", "0,1.5"])
def test_latencies_that_make_no_sense(vdla, tmp_path, text):
    done = vdla("compare", "digits", "--out", tmp_path / "out", f"--latency={text}")
    assert (done.code, done.out) == (2, "")
    assert done.err == (f"vdla: --latency: expected distinct numbers from 0 up, found {text!r}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_latency_beyond_the_machines_range(vdla, tmp_path):
    done = vdla("compare", "digits", "--out", tmp_path / "out", "--latency", "0,99999999999")
    assert done.code == 2
    (line,) = done.err.strip().splitlines()
    assert "latency" in line
    assert list(tmp_path.iterdir()) == []
