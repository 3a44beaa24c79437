"""``vdla tune --board``: what boards measure, several at once, and what becomes of lost ones."""

from __future__ import annotations

import json

import pytest
from desk import desk

from vdla import api
from vdla.boards.board import BoardError
from vdla.compiler.search.records import load
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.isa.config import load_config
from vdla.names.configs import resolve_on

TINY = resolve_on("ulx3s", "tiny")  # behind the memory of the boards on the desk
SEARCH = ("tune", "digits", "-c", "tiny", "--trials", 6, "--searcher", "random", "--board")


def ports(boards):
    return ",".join(board.port for board in boards)


def refused(done):
    assert done.code == 2, done
    (line,) = done.err.strip().splitlines()
    return line.removeprefix("vdla: ")


def without_board(record):
    """The line of a record, as the simulator's would be."""
    value = json.loads(record.to_line())
    value["workload"].pop("board", None)
    return json.dumps(value)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The same search on the simulator: its log, and the best cycles per layer."""
    return search(TINY, tmp_path_factory.mktemp("simulated") / "log")


def search(config, path):
    tasks = api.tune("digits", path, config, trials=6, searcher="random")
    return path, {task.layers[0]: task.least for task in tasks}


def test_four_boards_find_what_the_simulator_finds(vdla, tmp_path, simulated):
    path, best = simulated
    log = tmp_path / "log"
    with desk(TINY, None, None, None, None) as boards:
        done = vdla(*SEARCH, "ulx3s", "--port", ports(boards), "--log", log, "--json")
        assert done.code == 0, done
        assert all(board.runs for board in boards)
    records, expected = load(log, TileRecord), load(path, TileRecord)
    assert sum(board.runs for board in boards) == sum(each.status == "ok" for each in records)
    assert {each.workload.board for each in records} == {"ulx3s"}
    assert sorted(map(without_board, records)) == sorted(map(without_board, expected))
    assert done.json["board"] == "ulx3s"
    assert {row["layers"][0]: row["best_cycles"] for row in done.json["layers"]} == best


@pytest.mark.long
def test_the_rtl_of_boards_finds_what_the_simulator_finds(vdla, tmp_path):
    """Behind the model of a Zynq's memory port."""
    log, simulated = tmp_path / "log", tmp_path / "simulated"
    search(resolve_on("pynq-z1", "tiny"), simulated)
    done = vdla(*SEARCH, "pynq-z1", "--virtual", "--workers", 4, "--log", log)
    assert done.code == 0, done
    assert "tuned on tiny, board pynq-z1; cycles" in done.out
    found = sorted(map(without_board, load(log, TileRecord)))
    assert found == sorted(map(without_board, load(simulated, TileRecord)))


def test_boards_and_the_simulator_share_a_log_and_no_trials(vdla, tmp_path, simulated):
    log = tmp_path / "log"
    log.write_bytes(simulated[0].read_bytes())
    count = len(load(log, TileRecord))
    how = ("--layer", "pool2", "--log", log)
    with desk(TINY, None) as boards:
        done = vdla(*SEARCH, "ulx3s", "--port", ports(boards), *how)
    text = f"{log}: {count} records are of the simulator or other boards and only teach the model"
    assert text in done.err
    added = load(log, TileRecord)[count:]
    assert [each.workload.board for each in added] == ["ulx3s"] * 2
    (tmp_path / "tiny.toml").write_text(TINY.to_toml())
    again = vdla("tune", "digits", "-c", tmp_path / "tiny.toml", "--searcher", "random", *how)
    assert f"{log}: 2 records are of boards and only teach the model" in again.err
    assert "0 candidates measured in" in again.out


def test_a_board_that_is_unplugged_costs_one_candidate(vdla, tmp_path, simulated):
    log = tmp_path / "log"
    with desk(TINY, 2, None) as boards:
        done = vdla(*SEARCH, "ulx3s", "--port", ports(boards), "--log", log)
    assert done.code == 0, done
    records = load(log, TileRecord)
    (crash,) = (each for each in records if each.status == "crash")
    assert crash.note.startswith(f"board ulx3s at {boards[0].port}: expected an answer")
    assert len(records) == len(load(simulated[0], TileRecord))
    assert "lost candidates, 1 by crash; the log says why" in done.err


def test_without_boards_a_search_ends_and_goes_on_with_others(vdla, tmp_path, simulated):
    log = tmp_path / "log"
    with desk(TINY, 3, 4) as boards:
        done = vdla(*SEARCH, "ulx3s", "--port", ports(boards), "--log", log)
    text = refused(done)
    assert text.startswith("job: expected a process with board:ulx3s, found no resources (port ")
    assert text.endswith(f"; the same command goes on from {log}")
    assert [each.status for each in load(log, TileRecord)].count("ok") == 3 + 4
    with desk(TINY, None) as boards:
        done = vdla(*SEARCH, "ulx3s", "--port", ports(boards), "--log", log)
    assert done.code == 0, done
    assert len(load(log, TileRecord)) == len(load(simulated[0], TileRecord))


def test_a_board_of_another_config_is_refused_before_the_search(vdla, tmp_path):
    log, wide = tmp_path / "log", load_config("ulx3s")
    with desk(TINY, None) as boards:
        done = vdla("tune", "digits", "--board", "ulx3s", "--port", ports(boards), "--log", log)
    assert refused(done) == (
        f"board ulx3s at {boards[0].port}: expected a bitstream for config {wide.hash} (ulx3s), "
        f"found one for {TINY.hash}; name the board's config, or load a bitstream of this one"
    )
    assert not log.exists()


def test_what_was_measured_on_a_board_schedules_for_it(vdla, tmp_path):
    log = tmp_path / "log"
    with desk(TINY, None) as boards:
        vdla(*SEARCH, "ulx3s", "--port", ports(boards), "--layer", "conv1", "--log", log)
    records = [each for each in load(log, TileRecord) if each.status == "ok"]
    worst = max(records, key=lambda each: each.cycles)
    log.write_bytes(worst.to_line())
    tiles = {
        board: {
            layer["name"]: layer["tile"]
            for layer in api.compile("digits", TINY, records=log, board=board).metadata["layers"]
        }
        for board in (None, "ulx3s")
    }
    chosen = " ".join(f"{key}={value}" for key, value in worst.tile.items())
    assert tiles["ulx3s"]["conv1"] == chosen != tiles[None]["conv1"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--port", "/dev/a"], "--port: expected --board, found none"),
        (["--virtual"], "--virtual: expected --board, found none"),
        (["--board", "ulx3s", "--target", "cpu"],
         "--board: expected --target accelerator, found cpu"),
        (["--board", "ulx4s"],
         "board: expected one of ulx3s, colorlight-i9, tang-nano-20k, pynq-z1, pynq-z2, "
         "arty-z7-20, ultra96-v2, found ulx4s; "
         "docs/my-board.md says what another takes"),
        (["--board", "ulx3s", "--port", "/dev/a", "--workers", "3"],
         "--workers: expected --virtual, found 3 with --board ulx3s; each board has one process"),
        (["--board", "ulx3s", "--farm", "tls://desk:8786", "--port", "/dev/a"],
         "--port: expected no --farm, found both"),
        (["--board", "ulx3s", "--farm", "tls://desk:8786", "--virtual"],
         "--virtual: expected no --farm, found both"),
        (["--target", "cpu", "--farm", "tls://desk:8786"],
         "--farm: expected --target accelerator or gpu or x86-64-v3 or x86-64-v4, found cpu"),
        (["--board", "ulx3s", "--port", "/dev/no"],
         "port /dev/no: expected a serial port, found: No such file or directory"),
        (["--board", "ulx3s", "--port", "/dev/no", "--virtual"],
         "--virtual: expected no port, found --port /dev/no"),
    ],
)  # fmt: skip
def test_boards_that_cannot_be(vdla, tmp_path, options, text):
    log = tmp_path / "log"
    assert refused(vdla("tune", "digits", "--log", log, *options)) == text
    assert not log.exists()


def test_no_board_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("vdla.boards.connect.ports", lambda: {})
    with pytest.raises(BoardError, match="board ulx3s: expected --port, or a port of that name"):
        api.tune("digits", tmp_path / "log", board="ulx3s")
