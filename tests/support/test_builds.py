"""Builds that are done once: what they say, who waits, and what is known of how long they take."""

from __future__ import annotations

import json
import time
from threading import Event, Thread

import pytest

from vdla.support import builds
from vdla.support.builds import build_once
from vdla.support.progress import heard_by

BUILDING = "vdla: building the RTL of config {}, once for these sources"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path))
    return tmp_path


def build(cache, name, make=lambda: "made", ready=lambda: None):
    return build_once("RTL", f"config {name}", cache / "lock", ready, make)


def test_what_is_ready_is_taken_without_a_word(cache, capsys):
    assert build(cache, "tiny", ready=lambda: "ready") == "ready"
    assert capsys.readouterr().err == ""
    assert not (cache / "seconds.json").exists()


def test_it_says_what_is_built_and_how_long_the_last_one_took(cache, capsys, monkeypatch):
    times = iter([10.0, 44.0, 100.0, 100.2, 200.0, 201.0])
    monkeypatch.setattr(builds.time, "monotonic", lambda: next(times))
    assert build(cache, "tiny") == "made"
    assert capsys.readouterr().err == BUILDING.format("tiny") + "\n"
    build(cache, "paper")
    assert capsys.readouterr().err == BUILDING.format("paper") + "; the last one took 34 s\n"
    build_once("board", "config paper", cache / "lock", lambda: None, lambda: "made")
    assert "took" not in capsys.readouterr().err
    assert json.loads((cache / "seconds.json").read_text()) == {"RTL": 0.2, "board": 1.0}


def test_a_listener_is_told_instead(cache, capsys):
    told = []
    with heard_by(lambda *now: told.append(now)):
        build(cache, "tiny")
    assert told == [("building the RTL of config tiny, once for these sources", 0, 1)]
    assert capsys.readouterr().err == ""


def test_others_wait_and_say_so(cache, capsys):
    """One builds, the other takes what it has built."""
    begun, go_on, made = Event(), Event(), []

    def make():
        begun.set()
        assert go_on.wait(10)
        made.append("made")
        return "made"

    def ready():
        return made[0] if made else None

    results = []
    threads = [
        Thread(target=lambda: results.append(build(cache, "tiny", make, ready))) for _ in range(2)
    ]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    deadline, said = time.monotonic() + 10, ""
    while "waiting" not in said and time.monotonic() < deadline:
        time.sleep(0.01)
        said += capsys.readouterr().err
    assert said == (
        BUILDING.format("tiny") + "\n"
        "vdla: waiting for another process that builds the RTL of config tiny\n"
    )
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert (results, made) == (["made", "made"], ["made"])
    assert capsys.readouterr().err == ""


def test_what_fails_is_not_noted(cache):
    def fail():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        build(cache, "tiny", fail)
    assert not (cache / "seconds.json").exists()
    assert build(cache, "tiny") == "made"


@pytest.mark.parametrize("text", ["", "[1]", '{"RTL": "soon"}', '{"RTL": null}', "\x00"])
def test_damaged_notes_say_nothing(cache, capsys, text):
    (cache / "seconds.json").write_text(text)
    build(cache, "tiny")
    assert capsys.readouterr().err == BUILDING.format("tiny") + "\n"


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "file" / "cache"))
    assert build(tmp_path / "file" / "cache", "tiny") == "made"
    assert capsys.readouterr().err == BUILDING.format("tiny") + "\n"
