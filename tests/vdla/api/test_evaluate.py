"""``vdla evaluate``: what it prints, what it reads, and what it refuses."""

from __future__ import annotations

import io
import json
import re

import pytest

import vdla as package
from vdla.options.spelling import UsageError


def refused(done) -> str:
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.strip().splitlines()
    return line.removeprefix("vdla: ")


def lines(done) -> list:
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_it_prints_a_designs_cycles(vdla):
    done = vdla("evaluate", "digits", "-c", "tiny", "acc_bytes=4096", "--json")
    assert done.code == 0
    result = done.json
    assert (result["config"], result["settings"]) == ("tiny", ["acc_bytes=4096"])
    assert (result["legal"], result["reasons"], result["level"]) == (True, [], "exact")
    run = package.run("digits", config="tiny", settings=["acc_bytes=4096"], records="none")
    assert result["cycles"] == result["networks"]["digits"]["cycles"] == run.cycles
    assert sum(result["networks"]["digits"]["layers"].values()) == run.cycles


def test_it_prints_a_table(vdla):
    done = vdla("evaluate", "digits", "-c", "tiny", "--level", "bound")
    assert done.code == 0
    assert "cycles by bound" in " ".join(done.out.split())
    assert "9,832" in done.out
    text = " ".join(done.out.split())
    assert re.search(r"clock estimated for xc7z020-1: \d+ levels of [\d.]+ ns", text)
    assert "MHz (asked)" in text


def test_it_says_why_a_design_is_illegal(vdla):
    done = vdla("evaluate", "digits", "-c", "wide")
    why = "conv1 stays on the host: 9 input channels fill 28 % of the 32-lane block"
    assert (done.code, done.err) == (0, f"can't be built: digits: {why}\n")


def test_models_are_weighted(vdla):
    command = ("evaluate", "digits", "scenes", "-c", "tiny", "--level", "bound", "--json")
    plain, weighted = vdla(*command).json, vdla(*command, "--weight", "scenes=0.5").json
    digits, scenes = (plain["networks"][n]["cycles"] for n in ("digits", "scenes"))
    assert plain["cycles"] == digits + scenes
    assert weighted["cycles"] == digits + 0.5 * scenes


def test_every_line_is_a_design(vdla, monkeypatch):
    text = 'acc_bytes=4096 inp_bytes=2048\n\n{"block_out": 8}\nblock_in=5\n'
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    first, second, third = lines(
        vdla("evaluate", "digits", "-c", "tiny", "--level", "bound", "--stdin")
    )
    assert first["settings"] == ["acc_bytes=4096", "inp_bytes=2048"]
    assert first["buffer_bytes"] == 2048 + 2048 + 4096 + 1024
    assert (second["multipliers"], second["legal"]) == (32, True)
    text = "config tiny: expected block_in bytes to be a multiple of port_bytes = 4, found 5"
    assert third == {"settings": ["block_in=5"], "legal": False, "reasons": [text]}


def test_the_api_evaluates(vdla):
    result = package.evaluate(["digits"], "tiny", level="bound")
    assert result.total == 9832
    with pytest.raises(UsageError, match=r"^models: expected at least one, found none$"):
        package.evaluate([], "tiny")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("digits --level guess", "--level: expected exact, model or bound, found guess"),
        ("acc_bytes=4096", "evaluate: expected a model, found acc_bytes=4096"),
        ("digits digits", "models: expected each once, found digits twice"),
        ("digits --weight dqn=2", "--weight: expected one of digits, found dqn"),
        ("digits --weight 2", "--weight: expected MODEL=W with W above 0, found '2'"),
        ("digits --weight digits=0", "--weight: expected MODEL=W with W above 0, found 'digits=0'"),
        ("digits -c tiny block_in=5",
         "config tiny: expected block_in bytes to be a multiple of port_bytes = 4, found 5"),
        ("nosuch", "nosuch: expected an ONNX file or one of "),
    ],
)  # fmt: skip
def test_what_it_refuses(vdla, words, text):
    assert refused(vdla("evaluate", *words.split())).startswith(text)


def test_a_line_that_is_no_design_is_refused(vdla, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("{]\n"))
    text = "line 1: expected KEY=VALUE… or a JSON object of integers, found '{]'"
    assert refused(vdla("evaluate", "digits", "-c", "tiny", "--stdin")) == text
