"""Peers of benchmarks: names, ratios to each and to the fastest, files that one refuses."""

from __future__ import annotations

import argparse
import io
import json
import sys
from importlib import util
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from rich.console import Console
from scripts import load_script

cpu = load_script("benchmarks/cpu.py")
peers = cpu.peers


class Fake:
    """A runtime that counts its runs and notes what it is to run, or refuses at some point."""

    version = "1.2"

    def __init__(self, name, refuses=""):
        self.name, self.refuses, self.runs, self.asked = name, refuses, 0, []

    def ready(self, path, shapes, threads):
        self.asked.append((path, shapes, threads))
        if self.refuses == "ready":
            raise RuntimeError("no such operator")
        return self.run

    def run(self, inputs):
        if self.refuses == "run":
            raise ValueError("not of this shape")
        self.runs += 1


JOB = peers.Job(Path("m.onnx"), {"x": np.zeros((2, 3))}, threads=1, runs=3)


@pytest.fixture(autouse=True)
def no_pause_and_no_onnxruntime(monkeypatch):
    monkeypatch.setattr(peers, "PAUSE", 0)
    monkeypatch.setitem(peers.PEERS, "onnxruntime", lambda: Fake("a"))  # its own changes the mode


def test_ratios_are_ours_over_each_peers_shortest_run(monkeypatch):
    clock = iter([0, 6, 0, 3, 0, 12, 0, 7, 0, 4, 0, 9, 0, 8, 0, 2, 0, 8])
    monkeypatch.setitem(peers.CLOCKS, "wall", lambda: next(clock))
    a, b = Fake("a"), Fake("b")
    times = peers.timed([a, b], lambda inputs: None, JOB)
    assert times.ours_ms == 6000
    assert times.peers_ms == {"a": 2000, "b": 8000}
    assert times.ratios == {"a": 3, "b": 0.75}
    assert times.median_ratios == {"a": 7 / 3, "b": 7 / 9}
    assert times.to_fastest() == 3
    assert a.runs == b.runs == 1 + 2 * JOB.runs
    assert a.asked == [(JOB.path, {"x": (2, 3)}, 1)]


@pytest.mark.parametrize("at", ["ready", "run"])
def test_a_peer_that_refuses(at):
    times = peers.timed([Fake("a", at), Fake("b")], lambda inputs: None, JOB)
    assert times.ratios.keys() == times.peers_ms.keys() == {"b"}
    assert peers.cells(times, ["a", "b"])[1:3] == ["–", "–"]
    alone = peers.timed([Fake("a", at)], lambda inputs: None, JOB)
    assert alone.to_fastest() is None
    assert peers.cells(alone, ["a"])[1:] == ["–", "–"]


def test_columns_and_the_lines_below_them():
    assert peers.titles(["a"]) == ["vdla ms", "a ms", "÷ a"]
    assert peers.titles(["a", "b"]) == ["vdla ms", "a ms", "÷ a", "b ms", "÷ b", "÷ fastest"]
    rows = [
        peers.Times(1, {"a": 2, "b": 4}, {"a": 0.5, "b": 0.25}),
        peers.Times(1, {"a": 0.5}, {"a": 2}),
    ]
    assert list(peers.summary(rows, ["a", "b"])) == [
        ("geometric mean", ["", "", "1", "", "0.25", "1"]),
        ("worst", ["", "", "2", "", "0.25", "2"]),
    ]


def test_a_peer_by_another_name():
    with pytest.raises(argparse.ArgumentTypeError) as found:
        peers.peers_named("onnxruntime,ort")
    assert str(found.value) == "expected some of onnxruntime, openvino, found ort"


@pytest.mark.parametrize("program", ["cpu", "real_models"])
def test_a_peer_that_is_not_installed(program, monkeypatch, capsys):
    script = load_script(f"benchmarks/{program}.py")
    find = util.find_spec
    absent = lambda name: None if name == "openvino" else find(name)  # noqa: E731
    monkeypatch.setattr(script.peers, "find_spec", absent)
    monkeypatch.setattr(sys, "argv", ["x", "--peers", "openvino"])
    with pytest.raises(SystemExit):
        script.main()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(
        "argument --peers: expected the package openvino, found none; "
        "install with: pip install 'vdla[peers]'"
    )


@pytest.mark.parametrize("program", ["cpu", "real_models"])
def test_processor_time_is_of_one_thread(program, monkeypatch, capsys):
    script = load_script(f"benchmarks/{program}.py")
    monkeypatch.setattr(sys, "argv", ["x", "--clock", "processor", "--threads", "2"])
    with pytest.raises(SystemExit):
        script.main()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("error: --clock processor: expected --threads 1, found 2")


def test_instructions_of_this_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "CPUINFO", tmp_path / "cpuinfo")
    assert peers.instructions() == "unknown, no AMX"
    for text, said in (
        ("flags\t\t: fpu avx2 fma\n", "AVX2, no AMX"),
        ("flags : avx2 avx512f avx512_vnni\nflags : avx2", "AVX-512 VNNI, no AMX"),
        ("flags : avx512f avx512_vnni amx_int8", "AVX-512 VNNI, AMX"),
        ("Features : fp asimd", "NEON, no AMX"),
    ):
        peers.CPUINFO.write_text(text)
        assert peers.instructions() == said


def save(path):
    """A model ``y = Relu(x)``."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_a_networks_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cpu, "path_of", lambda model, dtype, folder: save(tmp_path / "m.onnx"))
    among = [Fake("a"), Fake("b", "ready")]
    case = cpu.compiled("relu", "float32", "native", tmp_path)
    row = cpu.compare(case, argparse.Namespace(peers=among, runs=2, clock="wall"), 1)
    assert row.error == 0
    assert row.versions == {"a": "1.2", "b": "1.2"}
    assert row.times.ratios.keys() == {"a"}
    table = cpu.network_table([row], among)
    assert table.row_count == 3
    out = Console(file=io.StringIO(), width=200)
    out.print(table)
    assert "a 1.2; b 1.2" in out.file.getvalue()
    cpu.emit([row], table, True)
    (printed,) = json.loads(capsys.readouterr().out)
    assert printed["times"]["peers_ms"].keys() == {"a"}
