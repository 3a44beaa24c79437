"""``vdla explore``: what it prints, what it goes on from, and what it refuses."""

from __future__ import annotations

import os
import threading

import pytest

import vdla as package
from vdla.explore.area import Area
from vdla.isa.config import load_config

SPACE = """
base = "tiny"
[parameters]
acc_bytes = [2048, 4096]
block_out = [4, 6]
"""
OBJECTIVES = ("--objectives", "cycles,buffer_bytes")


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    path = tmp_path_factory.mktemp("space") / "mine.toml"
    path.write_text(SPACE)
    return path


@pytest.fixture(scope="module")
def logged(space):
    """The log of a search to its end."""
    path = space.with_name("log")
    how = {"objectives": ("cycles", "buffer_bytes"), "log": path, "trials": 0, "baseline": "tiny"}
    package.explore_designs("digits", space, workers=1, **how)
    return path


def refused(done) -> str:
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.strip().splitlines()
    return line.removeprefix("vdla: ")


def explored(vdla, space, log, *more):
    command = ("explore", "digits", "--space", space, *OBJECTIVES, "--resume", log)
    return vdla(*command, "--trials", 0, "--baseline", "tiny", "--workers", 1, *more)


def test_it_prints_json(vdla, space, logged):
    before = logged.read_bytes()
    done = explored(vdla, space, logged, "--json")
    assert done.code == 0, done.err
    assert logged.read_bytes() == before
    result = done.json
    assert (result["space"], result["evaluated"]) == ("mine", 2)
    assert result["objectives"] == ["cycles", "buffer_bytes"]
    assert [row["settings"] for row in result["front"]] == [
        ["acc_bytes=4096", "block_out=4"], ["acc_bytes=2048", "block_out=4"],
    ]  # fmt: skip
    assert result["front"][1]["cycles"] == result["baseline"]["cycles"] == 12719
    rule = "block_out bytes to be a multiple of port_bytes = 4"
    assert result["rejected"] == {rule: 2}
    assert f"config: 2 of 4 designs pruned: {rule}\n" in done.err


def test_it_prints_a_table(vdla, space, logged):
    done = explored(vdla, space, logged)
    assert done.code == 0
    text = " ".join(done.out.split())
    assert "designs of space mine that none beats in cycles, buffer_bytes" in text
    assert "2 designs simulated in" in text
    assert "acc_bytes=2048 block_out=4" in text
    assert "ms are cycles at each design's clock: " in text
    assert "tiny has " in text
    assert " MHz (estimated)" in text


def test_time_is_an_objective(vdla, space, logged, tmp_path):
    """At a model's clock, or at the clock that a space asks for."""
    asked = tmp_path / "asked.toml"
    asked.write_text("clock_mhz = 125\n" + SPACE)
    how = ("--trials", 0, "--baseline", "tiny", "--workers", 1, "--objectives", "ms,luts", "--json")
    both = (
        vdla("explore", "digits", "--space", space, "--resume", logged, *how).json,
        vdla("explore", "digits", "--space", asked, *how).json,
    )
    for result, source in zip(both, ("estimated", "asked"), strict=True):
        assert result["objectives"] == ["ms", "luts"]
        for row in (*result["front"], result["baseline"]):
            assert row["clock_source"] == source
            assert row["ms"] == pytest.approx(row["cycles"] / row["clock_mhz"] / 1e3)
    assert {row["clock_mhz"] for row in both[1]["front"]} == {125}
    assert {row["config"]["clock_mhz"] for row in both[1]["front"]} == {125}


def test_the_front_is_mapped(vdla, space, logged, monkeypatch):
    """By yosys; here by what stands in for it, since that takes minutes."""
    mapped = []

    def stand_in(config, family):
        assert family == "xc7"
        mapped.append(config.acc_bytes)
        dsps = 230 if config.acc_bytes == 4096 else 28
        return Area(luts=5000, ffs=6000, dsps=dsps, brams=4.5, units={})

    monkeypatch.setattr("vdla.explore.area.map_config", stand_in)
    done = explored(vdla, space, logged, "--map", "--part", "xc7z020", "--json")
    assert done.code == 0, done.err
    assert mapped == [4096, 2048]
    (row,) = done.json["front"]  # the other one doesn't fit
    assert row["mapped"]
    assert [row[name] for name in ("luts", "ffs", "dsps", "brams")] == [5000, 6000, 28, 4.5]
    assert not done.json["baseline"]["mapped"]


def test_energy_is_an_objective(vdla, space, tmp_path):
    command = ("explore", "digits", "--space", space, "--objectives", "cycles,energy")
    more = ("--energy", "horowitz-45nm", "--trials", 0, "--baseline", "tiny", "--workers", 1)
    done = vdla(*command, *more, "--json", "--resume", tmp_path / "log")
    assert done.code == 0, done.err
    row = done.json["front"][0]
    settings = (*row["settings"], "-c", "tiny", "--energy", "horowitz-45nm", "--json")
    assert row["energy_uj"] == vdla("evaluate", "digits", *settings).json["energy_uj"]
    assert row["energy_table"] == done.json["baseline"]["energy_table"] == "horowitz-45nm"
    line = refused(explored(vdla, space, tmp_path / "log"))
    assert "found those of another table of energy (" in line


def test_a_design_is_exported(vdla, space, logged, tmp_path):
    out = tmp_path / "new" / "out"
    done = explored(vdla, space, logged, "--export", 1, "--out", out)
    assert done.code == 0, done.err
    assert f"wrote {out / 'mine-1.toml'}\n" in done.err
    assert f"see it: vdla compare digits -c {out / 'mine-1.toml'}\n" in done.err
    assert [file.name for file in out.iterdir()] == ["mine-1.toml"]
    config = load_config(out / "mine-1.toml")
    assert (config.name, config.acc_bytes) == ("mine-1", 4096)
    cycles = vdla("evaluate", "digits", "-c", out / "mine-1.toml", "--json").json["cycles"]
    assert cycles == explored(vdla, space, logged, "--json").json["front"][0]["cycles"]


@pytest.mark.long
def test_tuned_schedules_are_exported(vdla, space, logged, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(logged.read_bytes())
    command = ("--export", 1, "--out", tmp_path, "--json", "--trials", 3)
    row = explored(vdla, space, log, *command).json["front"][0]
    assert row["level"] == "tuned"
    name, records = tmp_path / "mine-1.toml", tmp_path / "mine-1.jsonl"
    done = vdla("evaluate", "digits", "-c", name, "--records", records, "--json")
    assert done.json["cycles"] == row["cycles"]
    assert row["cycles"] < vdla("evaluate", "digits", "-c", name, "--json").json["cycles"]


def test_only_a_design_of_the_front_is_exported(vdla, space, logged, tmp_path):
    done = explored(vdla, space, logged, "--export", 3, "--out", tmp_path)
    text = "--export: expected a design of the front, from 1 to 2, found 3"
    assert refused(done) == text
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_a_line_and_loses_nothing(vdla, space, logged, tmp_path, monkeypatch):
    log = tmp_path / "log"
    log.write_bytes(logged.read_bytes().splitlines(keepends=True)[0])
    before, write, main = log.read_bytes(), os.write, threading.get_ident()

    def full(file, raw):  # the first bytes of a line alone have room
        mine = threading.get_ident() == main and raw.startswith(b'{"schema"')
        return write(file, raw[:20] if mine else raw)

    monkeypatch.setattr(os, "write", full)
    done = explored(vdla, space, log)
    text = f"{log}: expected a file that can be used, found No space left on device"
    assert refused(done) == text
    assert log.read_bytes() == before


def test_a_log_of_other_networks_is_refused(vdla, space, logged):
    command = ("explore", "scenes", "--space", space, *OBJECTIVES, "--resume", logged)
    line = refused(vdla(*command))
    assert line.startswith(
        f"{logged}:1: expected evaluations of this search, found those of other "
    )
    assert line.endswith("; name another log")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--objectives speed", "--objectives: expected some of cycles, "),
        ("--objectives energy", "--objectives: expected --energy TABLE for energy, found none"),
        ("--energy x", "energy table x: expected "),
        (
            "--space huge",
            "space huge: expected a .toml file or one of default, small, xc7z020, found ",
        ),
        ("--searcher best", "--searcher: expected one of guided, nsga2, random, bound"),
        ("--baseline nosuch", "config nosuch: expected a .toml file or one of "),
        ("--weight x=1", "--weight: expected one of digits, found x"),
        ("--resume no/log", "no/log: expected the folder no to exist, found none"),
        ("--farm x --workers 3", "--workers: expected no --farm, found both"),
        ("--folder x", "--folder: expected --farm, found none"),
    ],
)
def test_what_it_refuses(vdla, space, words, text):
    command = ("explore", "digits", "--space", space, *OBJECTIVES)
    assert refused(vdla(*command, *words.split())).startswith(text)


def test_a_space_that_has_no_legal_design_is_refused(vdla, tmp_path):
    path = tmp_path / "none.toml"
    path.write_text('base = "tiny"\n[parameters]\nblock_in = [5, 6]\n')
    done = vdla("explore", "digits", "--space", path, *OBJECTIVES)
    assert refused(done) == (
        "space none: expected a legal design, found none among 2 points; 2 of them: block_in bytes "
        "to be a multiple of port_bytes = 4"
    )


@pytest.mark.long
def test_a_farm_evaluates(vdla, space, logged, tmp_path):
    pytest.importorskip("distributed")
    from farms import LocalFarm

    log = tmp_path / "log"
    with LocalFarm(()) as farm:
        where = ("--farm", farm.address, "--folder", farm.folder.name)
        command = ("explore", "digits", "--space", space, *OBJECTIVES, "--resume", log)
        done = vdla(*command, "--trials", 0, "--baseline", "tiny", *where, "--json")
    assert done.code == 0, done.err
    assert sorted(log.read_bytes().splitlines()) == sorted(logged.read_bytes().splitlines())
