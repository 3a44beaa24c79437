"""Tuning on a desk of boards: each is a worker of a farm."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

pytest.importorskip("distributed")

from desk import desk
from farms import LocalFarm

from vdla.compiler.search.records import load
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.isa.config import load_config
from vdla.names.configs import resolve_on

TINY = load_config("tiny")
SEARCH = ("tune", "digits", "-c", "tiny", "--layer", "conv1", "--searcher", "random")


@contextmanager
def farm_of(*programs, config=TINY):
    """Boards that run so many programs, each with a worker; and what tells a command of them."""
    with desk(config, *programs) as boards:
        resources = [("--resource", f"board:ulx3s={board.port}") for board in boards]
        with LocalFarm(*resources) as farm:
            where = ("--board", "ulx3s", "--farm", farm.address, "--folder", farm.folder.name)
            yield boards, farm, where


def without_board(record):
    """The line of a record, as the simulator's would be."""
    value = json.loads(record.to_line())
    value["workload"].pop("board", None)
    return json.dumps(value)


@pytest.mark.long
def test_four_boards_are_four_workers(vdla, tmp_path):
    plain, log, file = tmp_path / "plain", tmp_path / "log", tmp_path / "mine.toml"
    file.write_text(vdla("configs", "tiny", "--board", "ulx3s", "--as", "mine").out)
    same = "tune", "digits", "-c", file, *SEARCH[4:]  # in front of the board's memory
    assert vdla(*same, "--trials", 24, "--log", plain).code == 0
    config = resolve_on("ulx3s", "tiny")
    with farm_of(None, None, None, None, config=config) as (boards, _, where):
        done = vdla(*SEARCH, "--trials", 24, "--log", log, *where)
        assert done.code == 0, done
        assert sum(board.runs > 0 for board in boards) > 1
    records = sorted(map(without_board, load(log, TileRecord)))
    assert records == sorted(map(without_board, load(plain, TileRecord)))


@pytest.mark.long
def test_a_farm_loses_a_board_and_then_the_other(vdla, tmp_path):
    log = tmp_path / "log"
    with farm_of(2, 5) as (_, farm, where):
        done = vdla(*SEARCH, "--trials", 24, "--log", log, *where)
        assert done.code == 2, done
        (line,) = done.err.strip().splitlines()
        counts = [worker.counts for worker in farm.client.status().workers]
    assert line.startswith("vdla: job: expected a worker with board:ulx3s, found ")
    assert line.endswith(f"; the same command goes on from {log}")
    statuses = [record.status for record in load(log, TileRecord)]
    assert (statuses.count("ok"), statuses.count("crash")) == (2 + 5, 2)
    assert counts == [{"board:ulx3s": 0}] * 2


@pytest.mark.long
def test_boards_of_another_config_measure_nothing(vdla, tmp_path):
    log, wide = tmp_path / "log", load_config("ulx3s")
    with farm_of(None) as (boards, farm, where):
        done = vdla("tune", "digits", "--searcher", "random", "--log", log, *where)
        (worker,) = farm.client.status().workers
    assert done.code == 2, done
    assert done.err == (
        f"vdla: board ulx3s at {boards[0].port}: expected a bitstream for config {wide.hash} "
        f"(ulx3s), found one for {TINY.hash}; name the board's config, or load a bitstream of "
        "this one\n"
    )
    assert load(log, TileRecord) == []
    assert worker.counts == {"board:ulx3s": 1}  # for whoever searches for its config


@pytest.mark.long
def test_a_processor_is_tuned_on_workers_that_have_it(vdla, tmp_path):
    log = tmp_path / "log"
    how = ("--target", "x86-64-v3", "--searcher", "random", "--layer", "conv2", "--trials", 2)
    with LocalFarm(("--resource", "rtl"), ("--resource", "cpu:x86-64-v3")) as farm:
        where = ("--farm", farm.address, "--folder", farm.folder.name)
        done = vdla("tune", "digits", "--log", log, *how, *where)
        assert done.code == 0, done
        refused = vdla("tune", "digits", "--target", "x86-64-v4", "--log", log, *how[2:], *where)
    assert {record.status for record in load(log, FunctionRecord)} <= {"ok", "illegal"}
    assert refused.code == 2
    assert "expected a worker with cpu:x86-64-v4, found cpu:x86-64-v3, rtl" in refused.err
