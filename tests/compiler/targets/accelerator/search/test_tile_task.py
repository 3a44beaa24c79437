"""Tuning: resumes, teaches across layers, and survives being killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from vdla.compiler import tree_rnn
from vdla.compiler.search import tuner as module
from vdla.compiler.search.records import Log, load
from vdla.compiler.search.tuner import TuneOptions, tune
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.simulation import Cycles, Simulation
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.accelerator.search.tile_task import SEARCHERS, tile_tasks
from vdla.compiler.targets.accelerator.search.transfer import TransferData
from vdla.compiler.targets.accelerator.search.workload import Workload
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.compiler.tree_rnn import TREE


def made_up(tile):
    """Cycles without a machine: rows and columns near 5 are best; some tiles are illegal."""
    if tile.weights == 4:
        return Cycles("illegal", "odd")
    cycles = 100_000 + 10 * abs(tile.rows - 5) + 7 * abs(tile.cols - 5) + tile.inputs
    return Cycles("ok", cycles=cycles)


class FakeMeasurer:
    """Stands in for the workers; answers in reverse order."""

    answer = staticmethod(made_up)

    def __init__(self, meters, workers, timeout):
        self.meters = meters

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, task, tiles):
        for position in reversed(range(len(tiles))):
            yield position, self.answer(tiles[position])


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(module, "Measurer", FakeMeasurer)


def tuned(path, layers, config, **options):
    tasks = tile_tasks(layers, config, options.pop("vthreads", (2,)))
    with Log(path, TileRecord) as log:
        tune(tasks, log, TuneOptions(**options))
    return tasks


def test_equal_layers_are_tuned_once_per_thread_count(layer, tiny):
    same = replace(layer, template=replace(layer.template, zero=3))
    other = replace(layer, template=replace(layer.template, height=14))
    tasks = tile_tasks([("a", layer), ("b", same), ("c", other)], tiny, (1, 2))
    found = [(t.layers, t.workload.vthreads) for t in tasks]
    assert found == [(["a", "b"], 1), (["a", "b"], 2), (["c"], 1), (["c"], 2)]
    assert all(tile.vthreads == t.workload.vthreads for t in tasks for tile in t.space.candidates)


@pytest.mark.long
def test_a_search_by_trees_ends_as_if_it_had_never_been_stopped(
    fake, monkeypatch, tmp_path, layer, tiny
):
    monkeypatch.setattr(tree_rnn, "STEPS", 20)
    other = replace(layer, template=replace(layer.template, height=14))
    layers = [("a", layer), ("b", other)]  # the second one learns from the first one's records
    how = {"trials": 24, "cost_model": TREE}
    tuned(tmp_path / "whole", layers, tiny, **how)
    whole = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    assert len(whole) == 48
    (tmp_path / "cut").write_bytes(b"".join(whole[:29]))
    tuned(tmp_path / "cut", layers, tiny, **how)
    assert set((tmp_path / "cut").read_bytes().splitlines(keepends=True)) == set(whole)


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_the_default_is_tried_first_and_every_trial_is_recorded(
    fake, tmp_path, layer, tiny, searcher
):
    path = tmp_path / "log"
    (task,) = tuned(path, [("a", layer)], tiny, trials=30, searcher=searcher)
    records = load(path, TileRecord)
    assert len(records) == task.trials == 30
    assert records[0].tile == vars(default_tile(layer.template, tiny, 2, None))
    assert len({json.dumps(dict(r.tile)) for r in records}) == 30
    costs = [r.cycles for r in records if r.status == "ok"]
    assert task.cycles(task.tile) == min(costs)
    assert task.cycles(task.default) == records[0].cycles
    assert task.counts == {s: sum(r.status == s for r in records) for s in task.counts}


def test_effort_is_how_many_commands_a_program_has(layer, tiny):
    (task,) = tile_tasks([("a", layer)], tiny, (2,))
    efforts = [task.effort(point) for point in range(len(task.space))]
    tiles = [task.space.candidate(efforts.index(pick(efforts))) for pick in (min, max)]
    few, many = (layer_program(layer, tile, tiny).program.instructions for tile in tiles)
    assert len(few) < len(many)


def test_a_search_goes_on_from_its_log(fake, tmp_path, layer, tiny):
    path = tmp_path / "log"
    tuned(path, [("a", layer)], tiny, trials=20)
    (again,) = tuned(path, [("a", layer)], tiny, trials=20)
    assert (again.resumed, again.trials, len(load(path, TileRecord))) == (20, 20, 20)
    (more,) = tuned(path, [("a", layer)], tiny, trials=33)
    assert (more.resumed, more.trials, len(load(path, TileRecord))) == (20, 33, 33)
    assert len({json.dumps(dict(r.tile)) for r in load(path, TileRecord)}) == 33


def test_the_same_seed_tries_the_same_candidates(fake, tmp_path, layer, tiny):
    for name in ("one", "two"):
        tuned(tmp_path / name, [("a", layer)], tiny, trials=40)
    one, two = (sorted(r.to_line() for r in load(tmp_path / n, TileRecord)) for n in ("one", "two"))
    assert one == two


def test_other_configs_and_stale_sources_do_not_count_as_tried(fake, tmp_path, layer, tiny):
    path = tmp_path / "log"
    other = tiny.override(["memory.latency=9"])
    tuned(path, [("a", layer)], other, trials=16)
    stale = [replace(r, sources="0" * 12, workload=Workload.of(layer.template, tiny, 2))
             for r in load(path, TileRecord)]  # fmt: skip
    with Log(path, TileRecord) as log:
        for record in stale:
            log.append(record)
    (task,) = tuned(path, [("a", layer)], tiny, trials=16)
    assert (task.resumed, task.trials) == (0, 16)
    best = min(stale, key=lambda r: r.cycles or 1e9)
    tried = [r.tile for r in load(path, TileRecord)[32:]]
    assert tried.index(best.tile) <= 1  # known good, so measured again at once


def test_a_board_starts_from_what_the_simulator_liked_and_counts_anew(fake, tmp_path, layer, tiny):
    path = tmp_path / "log"
    tuned(path, [("a", layer)], tiny, trials=16)
    simulated = load(path, TileRecord)
    best = min(simulated, key=lambda r: r.cycles or 1e9)
    on_board = partial(Simulation, board="ulx3s")
    (task,) = tile_tasks([("a", layer)], tiny, (2,), on_board)
    with Log(path, TileRecord) as log:
        tune([task], log, TuneOptions(trials=4))
    added = load(path, TileRecord)[16:]
    assert (task.resumed, task.trials) == (0, 4)
    assert {r.workload.board for r in added} == {"ulx3s"}
    assert [r.tile for r in added].index(best.tile) <= 1
    (again,) = tuned(path, [("a", layer)], tiny, trials=16)
    assert (again.resumed, again.trials) == (16, 16)


def test_a_search_ends_near_the_bound(fake, tmp_path, layer, tiny):
    near = 100_000 / 0.995
    easy = replace(layer, macs=int(near) * tiny.macs_per_cycle)
    (task,) = tuned(tmp_path / "log", [("a", easy)], tiny, trials=200)
    assert task.trials < 200
    assert task.bound >= 0.995 * task.least
    (again,) = tuned(tmp_path / "log", [("a", easy)], tiny, trials=200)
    assert again.trials == again.resumed == task.trials
    (whole,) = tuned(tmp_path / "log", [("a", easy)], tiny, trials=200, enough=1.1)
    assert whole.trials == 200


def test_what_its_floor_rules_out_is_never_tried(fake, tmp_path, layer, tiny, monkeypatch):
    (task,) = tile_tasks([("a", layer)], tiny, (2,))
    floor = task.features.floor
    goal = float(np.quantile(floor, 0.02))

    def measured(tile):
        return Cycles("ok", cycles=int(np.ceil(max(floor[task.space.point(tile)], goal))))

    monkeypatch.setattr(FakeMeasurer, "answer", staticmethod(measured))
    options = TuneOptions(trials=len(task.space), searcher="random", enough=1e9)
    with Log(tmp_path / "log", TileRecord) as log:
        tune([task], log, options)
    assert task.least == np.ceil(goal)
    assert task.ruled_out > 0
    assert task.trials + task.ruled_out == len(task.space)


def test_a_small_space_is_used_up(fake, tmp_path, layer, tiny):
    small = replace(layer, template=replace(layer.template, height=2, width=2, pads=(1, 1, 1, 1)))
    (task,) = tuned(tmp_path / "log", [("a", small)], tiny, trials=10_000)
    assert task.trials == len(task.space)


def test_records_teach_the_search_of_another_layer(fake, tmp_path, layer, tiny):
    shape = replace(layer.template, height=14, width=14)
    (first,) = tile_tasks([("a", layer)], tiny, (2,))
    records = [first.record(tile, made_up(tile)) for tile in first.space.candidates]
    best = {}
    for name, known in (("taught", records), ("untaught", [])):
        (task,) = tile_tasks([("b", replace(layer, template=shape))], tiny, (2,))
        with Log(tmp_path / name, TileRecord) as log:
            log.records += known
            tune([task], log, TuneOptions(trials=8))
        best[name] = task.least
    assert best["taught"] < best["untaught"]


def test_records_of_other_templates_teach_nothing(layer, tiny):
    (task,) = tile_tasks([("a", layer)], tiny, (2,))
    record = task.record(task.default, Cycles("ok", cycles=5))
    transfer = TransferData()
    transfer.add([replace(record, workload=replace(task.workload, shape='{"old":1}'))])
    assert transfer.tables == {}
    transfer.add([record])
    assert list(transfer.tables) == [task.workload]
    assert transfer.groups(task.workload) == []


def test_resuming_takes_a_record_once(layer, tiny):
    (task,) = tile_tasks([("a", layer)], tiny, (2,))
    record = task.record(task.space.candidates[3], Cycles("illegal"))
    task.resume([record, record])
    assert task.outcomes == {3: Cycles("illegal")}
    assert (task.resumed, task.counts) == (1, {"illegal": 1})
    assert task.tile == task.default


# Killed at random points ------------------------------------------------------------------------


def test_a_killed_writer_loses_nothing_it_was_told_was_written(tmp_path, layer, tiny):
    path, rng = tmp_path / "log", random.Random(1)
    record = TileRecord(Workload.of(layer.template, tiny, 2), {"rows": 1}, "ok", 5)
    total = 0
    for _ in range(25):
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            with Log(path, TileRecord) as log:
                while True:
                    log.append(record)
                    os.write(tell, b".")
        os.close(tell)
        time.sleep(rng.uniform(0.001, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(told, "rb") as pipe:
            total += len(pipe.read())
        found = len(load(path, TileRecord)) if path.exists() else 0
        assert total <= found <= total + 1
        total = found
    assert total > 25


@pytest.mark.long
def test_a_killed_search_goes_on_and_loses_no_record(tmp_path):
    """The whole command, killed twice wherever it happens to be."""
    path, rng = tmp_path / "log", random.Random(2)
    command = [sys.executable, "-m", "vdla", "tune", "digits", "-c", "tiny", "--trials", "12"]
    command += ["--log", str(path), "--layer", "conv2", "--workers", "1", "--json"]
    command += ["--searcher", "random"]
    before = b""
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while (path.stat().st_size if path.exists() else 0) <= len(before):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.2))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raw = path.read_bytes()
        assert raw.startswith(before)
        before = raw[: raw.rfind(b"\n") + 1]
    killed = len(load(path, TileRecord))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["layers"]
    assert (row["trials"], row["resumed"]) == (12, killed)
    assert path.read_bytes().startswith(before)
    tiles = [json.dumps(dict(r.tile)) for r in load(path, TileRecord)]
    assert len(tiles) == len(set(tiles)) == 12
