"""``vdla tune``: what it prints, what it resumes from, and what it refuses."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from vdla import api
from vdla.compiler.search.records import Log, load
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord, TileRecords
from vdla.compiler.targets.accelerator.search.workload import Workload
from vdla.compiler.targets.processor.search import bundled
from vdla.compiler.targets.search.function_records import FunctionRecord, FunctionRecords
from vdla.isa.config import load_config
from vdla.isa.identity import isa_hash
from vdla.names.schedules import tuned_functions
from vdla.runtime import native
from vdla.support.install import pip_install


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A log of a short search."""
    path = tmp_path_factory.mktemp("tune") / "log"
    api.tune("digits", path, "tiny", trials=6, workers=1)
    return path


def refused(done) -> str:
    assert done.code == 2, done
    assert done.out == ""
    (line,) = done.err.strip().splitlines()
    return line.removeprefix("vdla: ")


def test_it_prints_json_and_exports_the_best(vdla, tmp_path, logged):
    best = tmp_path / "best.jsonl"
    log = tmp_path / "log"
    log.write_bytes(logged.read_bytes())
    done = vdla("tune", "digits", "-c", "tiny", "--trials", 6, "--log", log, "--export", best,
                "--json")  # fmt: skip
    assert done.code == 0
    assert done.json["config"] == "tiny"
    assert done.json["memory"] == {"latency": 64, "bytes_per_cycle": 4}
    assert (done.json["searcher"], done.json["cost_model"]) == ("model", "xgboost")
    layers = done.json["layers"]
    names = ["conv1", "pool1", "conv2", "pool2", "fc"]
    assert [row["layers"] for row in layers] == [[name] for name in names]
    for row in layers:
        assert row["vthreads"] == 2
        assert row["trials"] == row["resumed"] == min(6, row["space"])
        assert row["bound_cycles"] <= row["best_cycles"] <= row["default_cycles"]
        assert row["tile"]["vthreads"] == 2
    assert log.read_bytes() == logged.read_bytes()
    assert f"wrote {best}: the best of 5 workloads" in done.err
    exported = {r.cycles for r in load(best, TileRecord)}
    assert exported == {row["best_cycles"] for row in layers}
    assert len(load(best, TileRecord)) == 5


def test_it_prints_a_table(vdla, tmp_path, logged):
    log = tmp_path / "log"
    log.write_bytes(logged.read_bytes())
    done = vdla("tune", "digits", "-c", "tiny", "--trials", 6, "--log", log, "--searcher", "grid")
    assert done.code == 0
    assert "tuned on tiny, memory 64 cycles, 4 B/cycle; cycles" in done.out
    assert "0 candidates measured in" in done.out


def test_exported_records_choose_the_schedules(tmp_path, logged):
    config = load_config("tiny")
    record = next(r for r in load(logged, TileRecord) if r.workload.kind == "conv" and r.cycles)
    kept = TileRecords(lambda: [record])
    module = api.compile("digits", config, records=kept)
    tiles = {layer["name"]: layer["tile"] for layer in module.metadata["layers"]}
    assert " ".join(f"{k}={v}" for k, v in record.tile.items()) in tiles.values()
    plain = api.compile("digits", config, records="none")
    assert {each["name"] for each in plain.metadata["layers"]} == set(tiles)


def test_own_records_are_used_by_the_commands(vdla, tmp_path, logged):
    record = max(
        (r for r in load(logged, TileRecord) if r.workload.kind == "conv" and r.cycles),
        key=lambda r: r.cycles,
    )
    own = tmp_path / "own.jsonl"
    own.write_bytes(record.to_line())
    out = ("--out", tmp_path / "out", "--vthreads", 2, "--json")
    cycles = {
        choice: {
            layer["name"]: layer["cycles"]["2"]
            for layer in vdla("compare", "digits", "-c", "tiny", "--records", choice, *out).json[
                "layers"
            ]
        }
        for choice in ("none", own)
    }
    assert record.cycles in cycles[own].values()
    assert record.cycles not in cycles["none"].values()
    command = ("compile", "digits", "-c", "tiny", "-o", tmp_path / "m.vdla", "--records")
    assert vdla(*command, own).code == 0
    found = refused(vdla(*command, tmp_path / "nosuch"))
    expected = "expected a file that can be used, found No such file or directory"
    assert found == f"{tmp_path / 'nosuch'}: {expected}"


def test_what_does_not_count_is_said(vdla, tmp_path, logged):
    log = tmp_path / "log"
    lines = logged.read_bytes()
    stale = json.dumps({**json.loads(lines.splitlines()[0]), "sources": "0" * 12}).encode() + b"\n"
    foreign = json.dumps({**json.loads(lines.splitlines()[0]), "isa": "0ddba115"}).encode() + b"\n"
    log.write_bytes(lines + stale + foreign + b'{"schema": 2, "work')
    done = vdla("tune", "digits", "-c", "tiny", "--set", "memory.latency=65", "--layer", "pool2",
                "--trials", 1, "--workers", 1, "--log", log)  # fmt: skip
    assert done.code == 0
    count = len(lines.splitlines()) + 2
    assert f"{log}: removed 19 bytes of a record that was cut off" in done.err
    assert (
        f"{log}: 1 records, tuned for another instruction set: expected ISA {isa_hash()}, "
        "found 0ddba115; they don't count"
    ) in done.err
    assert f"{log}: 1 records are of other sources and don't count as tried" in done.err
    assert f"{log}: {count} records are of other configs and only teach the model" in done.err
    assert len(load(log, TileRecord)) == count + 1


def test_wrong_options(vdla, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refused(vdla("tune", "digits")) == "Missing option '--log'; see vdla tune --help"
    assert refused(vdla("tune", "digits", "--log", "l", "--searcher", "best")) == (
        "--searcher: expected one of model, random, grid, genetic, found best"
    )
    assert refused(vdla("tune", "digits", "--log", "l", "--searcher", "xgboost")) == (
        "--searcher: expected one of model, random, grid, genetic, found xgboost, which is a "
        "--cost-model"
    )
    assert refused(vdla("tune", "digits", "--log", "l", "--cost-model", "forest")) == (
        "--cost-model: expected one of xgboost, tree, found forest"
    )
    both = ("--searcher", "random", "--cost-model", "tree")
    assert refused(vdla("tune", "digits", "--log", "l", *both)) == (
        "--cost-model: expected --searcher model, found random"
    )
    assert refused(vdla("tune", "digits", "--log", "l", "--vthreads", "0")) == (
        "--vthreads: expected distinct numbers from 1 to 8, found '0'"
    )
    assert refused(vdla("tune", "digits", "--log", "no/l")) == (
        "no/l: expected the folder no to exist, found none"
    )
    assert refused(vdla("tune", "digits", "--log", ".")) == (
        ".: expected a file to write, found a folder"
    )
    assert refused(vdla("tune", "nosuch.onnx", "--log", "l")).startswith(
        "nosuch.onnx: expected an ONNX file or one of resnet18"
    )
    assert refused(vdla("tune", "digits", "-c", "tiny", "--log", "l", "--layer", "x")) == (
        "digits: expected a layer x for the accelerator, found conv1, pool1, conv2, pool2, fc"
    )
    assert refused(vdla("tune", "digits", "--log", "l", "--trials", 0)).startswith(
        "Invalid value for '--trials'"
    )
    assert not [*tmp_path.iterdir()]


def test_foreign_logs(vdla, tmp_path, logged):
    log = tmp_path / "log"
    log.write_text("layer,cycles\nconv2,3\n")
    command = ("tune", "digits", "-c", "tiny", "--log", log)
    expected = f"{log}:1: expected a tuning record, found 'layer,cycles'"
    assert refused(vdla(*command)) == expected
    assert log.read_text() == "layer,cycles\nconv2,3\n"
    assert refused(vdla(*command[:-1], tmp_path / "new", "--export", log)) == expected
    log.write_bytes(logged.read_bytes().replace(b'"schema":2', b'"schema":3'))
    assert refused(vdla(*command)) == f"{log}:1: expected schema 2, found 3"
    log.write_bytes(logged.read_bytes())
    with Log(log, TileRecord):
        assert refused(vdla(*command)) == (
            f"{log}: expected a log for this search alone, found another search writing it"
        )


def test_a_full_disk_stops_the_search_and_keeps_the_log(vdla, tmp_path, logged, monkeypatch):
    log = tmp_path / "log"
    log.write_bytes(logged.read_bytes())

    def full(self, record):
        raise OSError(28, "No space left on device", str(self.path))

    monkeypatch.setattr(Log, "append", full)
    assert refused(vdla("tune", "digits", "-c", "tiny", "--trials", 9, "--log", log)) == (
        f"{log}: expected a file that can be used, found No space left on device"
    )
    assert log.read_bytes() == logged.read_bytes()


def test_lost_candidates_are_told(vdla, tmp_path):
    config = load_config("tiny")
    log = tmp_path / "log"
    task = api.tune("digits", tmp_path / "first", config, layer="pool2")[0]
    with Log(log, TileRecord) as opened:
        for tile, status in zip(task.space.candidates, ("crash", "timeout"), strict=True):
            opened.append(TileRecord(task.workload, vars(tile), status, None, "it did"))
    assert isinstance(task.workload, Workload)
    done = vdla("tune", "digits", "-c", "tiny", "--layer", "pool2", "--trials", 2, "--log", log)
    assert done.code == 0
    assert "pool2: lost candidates, 1 by crash, 1 by timeout; the log says why" in done.err


def test_without_xgboost_one_line_says_what_to_install(vdla, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert refused(vdla("tune", "digits", "--log", tmp_path / "l")) == (
        "--cost-model xgboost: expected the package xgboost, found none; "
        f"{pip_install('tune')}, or choose --cost-model tree"
    )
    assert not (tmp_path / "l").exists()
    how = ("--layer", "pool2", "--trials", 2, "--log", tmp_path / "l")
    assert vdla("tune", "digits", *how, "--cost-model", "tree").code == 0


# On a processor -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logged_on_cpu(tmp_path_factory):
    """A log of a short search for one function."""
    path = tmp_path_factory.mktemp("cpu") / "log"
    api.tune("digits", path, target="cpu", strategy="sketch", layer="conv2", trials=3)
    return path


@pytest.mark.long
def test_a_processor_is_tuned(vdla, tmp_path, logged_on_cpu):
    log, best = tmp_path / "log", tmp_path / "best"
    log.write_bytes(logged_on_cpu.read_bytes())
    asked = ("tune", "digits", "--target", "cpu", "--strategy", "sketch", "--layer", "conv2")
    done = vdla(*asked, "--trials", 3, "--log", log, "--export", best, "--json")
    assert done.code == 0
    (function,) = done.json["functions"]
    assert (function["layers"], function["trials"], function["resumed"]) == (["conv2"], 3, 3)
    assert function["default_seconds"] > 0
    assert done.json["ratio"] == pytest.approx(function["ratio"])
    assert function["ratio"] <= 1
    assert log.read_bytes() == logged_on_cpu.read_bytes()
    assert f"wrote {best}: the best of 1 functions" in done.err
    shown = vdla(*asked, "--trials", 3, "--log", log)
    assert "0 candidates measured in" in shown.out


def test_a_processors_records_schedule_its_functions(tmp_path, logged_on_cpu):
    lines = logged_on_cpu.read_bytes().splitlines()
    record = next(r for r in map(json.loads, lines) if r["status"] == "ok")
    record |= {"seconds": 1.0, "reference": 2.0}  # so that it is worth taking
    path = tmp_path / "log"
    path.write_bytes(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    plain, tuned = (api.compile("digits", device="cpu", records=r) for r in ("none", path))
    assert tuned.host.code != plain.host.code
    found, wanted = (api.run(module, device="cpu").outputs for module in (tuned, plain))
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_bundled_records_are_used_unless_none_are_wanted(monkeypatch, tmp_path, logged_on_cpu):
    lines = logged_on_cpu.read_bytes().splitlines()
    made = (FunctionRecord.from_line(line, "log") for line in lines)
    record = replace(next(r for r in made if r.status == "ok"), seconds=1.0, reference=2.0)
    monkeypatch.setattr(bundled, "BUNDLED", FunctionRecords(lambda: [record]))
    none, default = (api.compile("digits", device="cpu", records=r) for r in ("none", None))
    assert default.host.code != none.host.code
    of_the_accelerator = tmp_path / "tiles"
    of_the_accelerator.write_bytes(b'{"schema":2,"workload":{},"tile":{}}\n')
    assert tuned_functions(of_the_accelerator) is bundled.BUNDLED
    slower = tmp_path / "slower"
    slower.write_bytes(replace(record, seconds=1.5).to_line())
    assert list(tuned_functions(slower).best.values()) == [record]


@pytest.mark.long
def test_a_search_on_a_processor_by_trees(vdla, tmp_path):
    log = tmp_path / "log"
    how = ("--layer", "conv2", "--trials", 12, "--log", log, "--cost-model", "tree", "--json")
    done = vdla("tune", "digits", "--target", "cpu", *how)
    assert done.code == 0
    assert (done.json["searcher"], done.json["cost_model"]) == ("model", "tree")
    assert done.json["functions"][0]["trials"] == 12
    (task,) = api.tune("digits", log, target="cpu", trials=12, layer="conv2", cost_model="tree")
    assert (task.resumed, task.trials) == (12, 12)


def test_trials_with_other_threads_do_not_count_as_tried(tmp_path, logged_on_cpu):
    log = tmp_path / "log"
    log.write_bytes(logged_on_cpu.read_bytes())
    how = {"target": "cpu", "strategy": "sketch", "layer": "conv2", "searcher": "random"}
    (task,) = api.tune("digits", log, trials=1, threads=2, **how)
    assert task.resumed == 0
    assert [record.threads for record in load(log, FunctionRecord)] == [1, 1, 1, 2]
    (task,) = api.tune("digits", log, trials=1, threads=2, **how)
    assert task.resumed == 1


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--target", "tpu", "--target: expected one of accelerator, cpu, x86-64-v3, x86-64-v4, "
         "gpu, found tpu"),
        ("--strategy", "luck", "--strategy: expected one of template, sketch, found luck"),
        ("--searcher", "grid", "--searcher: expected one of model, random, genetic, found grid"),
        ("--layer", "nowhere", "digits: expected a layer nowhere that --strategy template can "
         "schedule, found conv1, conv2, fc"),
    ],
)  # fmt: skip
def test_what_a_processors_search_refuses(vdla, tmp_path, option, value, told):
    done = vdla("tune", "digits", "--target", "cpu", option, value, "--log", tmp_path / "log")
    assert refused(done) == told


def test_a_processors_instructions_have_to_be_there(vdla, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "host_machine", lambda: ("x86_64-linux-gnu", "old", "+avx2,+fma"))
    done = vdla("tune", "digits", "--target", "x86-64-v3", "--log", tmp_path / "log")
    assert refused(done) == (
        "--target x86-64-v3: expected a processor with bmi, bmi2, f16c, lzcnt, movbe, found one "
        "without them; use --target cpu"
    )
    monkeypatch.setattr(native, "host_machine", lambda: ("aarch64-linux-gnu", "arm", "+neon"))
    done = vdla("tune", "digits", "--target", "x86-64-v4", "--log", tmp_path / "log")
    assert refused(done) == (
        "--target x86-64-v4: expected a processor with x86_64, found one without them; "
        "use --target cpu"
    )


def test_schedules_for_fewer_instructions_are_records_of_their_own(tmp_path):
    log = tmp_path / "log"
    how = {"strategy": "sketch", "layer": "conv2", "searcher": "random"}
    api.tune("digits", log, target="x86-64-v3", trials=1, **how)
    (record,) = load(log, FunctionRecord)
    assert (record.processor, record.status) == ("x86-64-v3", "ok")


def test_a_log_of_a_processor_is_none_of_the_accelerator(vdla, logged_on_cpu):
    done = vdla("tune", "digits", "-c", "tiny", "--log", logged_on_cpu)
    assert f"{logged_on_cpu}:1: expected a tuning record" in refused(done)


# On a GPU -----------------------------------------------------------------------------------------


@pytest.fixture
def logged_on_gpu(tmp_path, gpu):
    """A log of a short search for one function."""
    path = tmp_path / "log"
    asked = {"target": "gpu", "strategy": "template", "layer": "conv2", "searcher": "random"}
    api.tune("digits", path, trials=2, **asked)
    return path


def test_a_gpus_records_schedule_its_kernels(vdla, tmp_path, gpu, logged_on_gpu):
    lines = list(map(json.loads, logged_on_gpu.read_bytes().splitlines()))
    assert [(line["status"], line["processor"]) for line in lines] == [("ok", gpu.name)] * 2
    record = lines[1] | {"seconds": 1.0, "reference": 2.0}  # so that it is worth taking
    assert lines[0]["trace"] != lines[1]["trace"]  # the first is the default schedule
    path = tmp_path / "best"
    path.write_bytes(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes().replace(gpu.name.encode(), b"another"))
    plain, tuned, same = (
        api.compile("digits", device="gpu", records=r) for r in ("none", path, other)
    )
    assert tuned.kernels.source != plain.kernels.source == same.kernels.source
    found, wanted = (api.run(module, device="gpu").outputs for module in (tuned, plain))
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    asked = ("tune", "digits", "--target", "gpu", "--layer", "conv2", "--searcher", "random")
    shown = vdla(*asked, "--trials", 2, "--log", logged_on_gpu)
    assert "tuned on this gpu" in shown.out
    assert "0 candidates measured in" in shown.out


def test_a_gpu_is_needed_to_tune_one(vdla, tmp_path, monkeypatch):
    monkeypatch.setenv("VDLA_GPU", "nowhere")
    done = vdla(
        "tune", "digits", "--target", "gpu", "--searcher", "random", "--log", tmp_path / "l"
    )
    assert refused(done).startswith("gpu: expected ")
    assert not (tmp_path / "l").exists()
