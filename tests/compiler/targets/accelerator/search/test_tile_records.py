"""Records of tiles: what a line is, whose it is, and which tile is taken."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from vdla.compiler.search.records import Log, RecordError, best, load
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.tile_records import (
    TileRecord,
    TileRecords,
    make_tile,
)
from vdla.compiler.targets.accelerator.search.workload import Workload, sources
from vdla.isa.config import load_config
from vdla.isa.identity import isa_hash


@pytest.fixture
def workload(layer, tiny):
    return Workload.of(layer.template, tiny, 2)


@pytest.fixture
def record(workload, layer, tiny):
    """Of a tile that the analytic model doesn't choose."""
    tile = next(t for t in layer.template.tiles(tiny, 2) if (t.rows, t.cols) == (2, 4))
    return TileRecord(workload, vars(tile), "ok", 1234)


def test_a_record_survives_the_disk(tmp_path, record):
    path = tmp_path / "log"
    bad = replace(record, status="illegal", cycles=None, note="“conflict”\nat 3")
    with Log(path, TileRecord) as log:
        log.append(record)
        log.append(bad)
    assert load(path, TileRecord) == [record, bad]
    with Log(path, TileRecord) as log:
        assert log.records == [record, bad]
        assert log.cut == 0
    value = json.loads(path.read_text().splitlines()[0])
    assert (value["schema"], value["cycles"], value["sources"]) == (2, 1234, sources())
    assert value["isa"] == isa_hash()
    assert value["workload"]["config"] == load_config("tiny").hash
    assert make_tile(record).rows == 2


def test_a_knob_by_its_former_name(record):
    tile = {**record.tile}
    line = replace(record, tile={"keep": tile.pop("stationary"), **tile}).to_line()
    assert b'"keep":' in line
    assert TileRecord.from_line(line, "log:1").tile == record.tile


def test_a_workload_is_geometry_and_machine(layer, tiny, workload):
    shape = layer.template
    assert Workload.of(replace(shape, zero=7, low=-3, in_zero=1), tiny, 2) == workload
    assert Workload.of(shape, replace(tiny, name="other"), 2) == workload
    assert Workload.of(replace(shape, height=13), tiny, 2) != workload
    assert Workload.of(shape, tiny, 1) != workload
    assert Workload.of(shape, tiny.override(["memory.latency=9"]), 2) != workload
    assert Workload.of(shape, tiny.override(["token_queue=32"]), 2) != workload
    assert Workload.of(workload.like(), workload.config, 2) == workload
    assert workload.config.hash == tiny.hash


def test_a_boards_cycles_are_no_simulated_cycles(tmp_path, layer, tiny, workload, record):
    own = Workload.of(layer.template, tiny, 2, "ulx3s")
    on_board = replace(record, workload=own, cycles=99)
    assert "board" not in json.loads(record.to_line())["workload"]
    assert json.loads(on_board.to_line())["workload"]["board"] == "ulx3s"
    path = tmp_path / "log"
    path.write_bytes(record.to_line() + on_board.to_line())
    assert load(path, TileRecord) == [record, on_board]
    assert best([record, on_board]) == {workload: record, own: on_board}


def test_a_board_has_its_own_tile_where_there_is_one(layer, tiny, record):
    shape = layer.template
    own = replace(record, workload=Workload.of(shape, tiny, 2, "ulx3s"))
    tiles = [t for t in shape.tiles(tiny, 2) if vars(t) != record.tile]
    simulated = replace(record, tile=vars(tiles[0]), cycles=1)
    kept = TileRecords(lambda: [own, simulated])
    assert kept.tile(shape, tiny, 2) == kept.on("pynq-z1").tile(shape, tiny, 2) == tiles[0]
    assert kept.on("ulx3s").tile(shape, tiny, 2) == make_tile(record)
    assert TileRecords(lambda: [own]).tile(shape, tiny, 2) is None
    illegal = replace(own, tile={**own.tile, "rows": 999})
    assert TileRecords(lambda: [illegal, simulated]).on("ulx3s").tile(shape, tiny, 2) == tiles[0]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"a,b\n1,2\n", "found 'a,b'"),
        (b"no newline", "found 'no newline'"),
        (b"\x00\xff\x00\n", "expected a tuning record"),
        (b"[]\n", "found '[]'"),
        (b'{"schema": 1, "cycles": 3}\n', "expected schema 2, found 1"),
        (b'{"schema": 2}\n', "found a record without 'workload'"),
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path, content, found):
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(RecordError) as refused:
        Log(path, TileRecord)
    text = str(refused.value)
    assert text.startswith(f"{path}")
    assert "expected" in text
    assert found in text
    assert "\n" not in text
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("status", "fine", "status 'fine'"),
        ("cycles", None, "status ok with cycles None"),
        ("cycles", -3, "status ok with cycles -3"),
        ("tile", [1], "tile [1]"),
        ("tile", {"rows": 1 << 31}, "tile {'rows': 2147483648}"),
        ("tile", {"rows": [[-1e300]]}, "tile {'rows': [[-1e+300]]}"),
        ("workload", {"kind": 3}, "workload with kind 3"),
        (
            "workload",
            {"kind": "conv", "shape": {}, "machine": {}, "vthreads": 1, "board": 3},
            "workload with board 3",
        ),
    ],
)
def test_a_damaged_line_is_named(tmp_path, record, key, value, found):
    path = tmp_path / "log"
    damaged = json.dumps({**json.loads(record.to_line()), key: value})
    path.write_bytes(record.to_line() + damaged.encode() + b"\n")
    with pytest.raises(RecordError) as refused:
        Log(path, TileRecord)
    assert str(refused.value) == f"{path}:2: expected a tuning record, found {found}"


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("block_out", 3, "config recorded: expected block_out"),
        ("flock_out", 32, "expected one of name,"),
    ],
)
def test_a_machine_that_cannot_be_is_named(tmp_path, record, key, value, found):
    """Of a record of today's instruction set alone: another's may have other parameters."""
    path = tmp_path / "log"
    line = json.loads(record.to_line())
    line["workload"]["machine"][key] = value
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(RecordError) as refused:
        load(path, TileRecord)
    start = f"{path}:1: expected a tuning record, found a machine that can't be: {found}"
    assert str(refused.value).startswith(start)
    path.write_text(json.dumps({**line, "isa": "0" * 16}) + "\n")
    assert not load(path, TileRecord)[0].usable


def test_best_prefers_fresh_figures(record):
    stale = replace(record, sources="0" * 12, cycles=1)
    slow = replace(record, cycles=2000)
    failed = replace(record, status="crash", cycles=None)
    assert best([stale, slow, record, failed]) == {record.workload: record}
    assert best([stale]) == {record.workload: stale}
    assert best([failed]) == {}


def test_records_with_more(record):
    reads = []

    def read():
        reads.append(1)
        return [record, replace(record, cycles=2000)]

    kept = TileRecords(read)
    equal, better = replace(record, tile={}), replace(record, cycles=99)
    other = replace(record, workload=replace(record.workload, vthreads=1))
    with_equal, with_better = kept.with_more([equal, other]), kept.with_more([better])
    assert not reads
    assert with_equal.best == {record.workload: record, other.workload: other}
    assert with_better.best == {record.workload: better}
    assert kept.best == {record.workload: record}
    assert reads == [1]


def test_default_tiles_come_from_records_where_they_fit(layer, tiny, record):
    shape = layer.template
    chosen = make_tile(record)
    analytic_choice = shape.best(tiny, 2)
    assert chosen != analytic_choice
    kept = TileRecords(lambda: [record])
    assert default_tile(shape, tiny, 2, kept) == chosen
    assert default_tile(shape, tiny, 2, None) == analytic_choice
    assert default_tile(shape, tiny, 1, kept) == shape.best(tiny, 1)
    other = tiny.override(["memory.latency=9"])
    assert default_tile(shape, other, 2, kept) == shape.best(other, 2)
    for wrong in ({**record.tile, "rows": 999}, {**record.tile, "newer": 1}, {"rows": 2}):
        unusable = TileRecords(lambda wrong=wrong: [replace(record, tile=wrong)])
        assert default_tile(shape, tiny, 2, unusable) == analytic_choice
