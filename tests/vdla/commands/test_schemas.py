"""The JSON Schemas of what commands print: complete, and what commands print fits them."""

from __future__ import annotations

import copy
import io
import json
import sys

import click
import pytest
from schemas import check, schema_name, validator

from vdla.commands.cli import app
from vdla.commands.schema import names, schema
from vdla.options.spelling import UsageError

ENERGY = ("--energy", "aladdin-45nm")
COMMANDS = {  # quick ones; the rest of the tests check the others, wherever they print JSON
    "board-check": [("board", "check", "--board", "pynq-z2", "-c", "tiny", "--virtual",
                     "--programs", "1")],
    "compare": [("compare", "digits", "-c", "tiny", *ENERGY, "--same-schedule"),
                ("compare", "digits", "--board", "pynq-z2")],
    "compare-configs": [("compare", "digits", "-c", "tiny", "-c", "paper")],
    "compare-latency": [("compare", "digits", "-c", "tiny", "--latency", "16,64", *ENERGY)],
    "compile": [("compile", "digits", "-o", "d.vdla"),
                ("compile", "digits", "-o", "d.vdla", "--board", "pynq-z2"),
                ("compile", "digits", "-o", "d.vdla", "--device", "cpu")],
    "configs": [("configs",)],
    "configs-one": [("configs", "paper"), ("configs", "--board", "pynq-z2")],
    "doctor": [("doctor",)],
    "evaluate": [("evaluate", "digits", "block_in=8", "-c", "tiny", *ENERGY)],
    "evaluate-stdin": [("evaluate", "digits", "-c", "tiny", "--level", "model", "--stdin")],
    "models": [("models",)],
    "offload": [("offload", "digits", "--board", "pynq-z2")],
    "package": [("package", "digits")],
    "run": [("run", "digits", "-c", "tiny", *ENERGY), ("run", "digits", "--device", "cpu")],
    "run-check": [("run", "digits", "-c", "tiny", "--check")],
    "run-explain": [("run", "digits", "-c", "tiny", "--explain")],
    "run-profile": [("run", "digits", "-c", "tiny", "--profile")],
    "tune": [("tune", "digits", "-c", "tiny", "--layer", "fc", "--trials", "1", "--log", "t")],
    "tune-functions": [("tune", "digits", "--target", "cpu", "--layer", "fc", "--trials", "1",
                        "--log", "t")],
}  # fmt: skip
ELSEWHERE = {  # schemas whose commands take long, and the tests that run them
    "explore": "tests/explore", "farm-status": "tests/vdla/test_farm.py",
    "farm-up": "tests/vdla/test_farm.py", "lockstep": "tests/lockstep",
    "prune": "tests/compiler/models/test_pruning.py",
    "quantize": "tests/compiler/models/test_noise.py", "synth": "tests/boards",
}  # fmt: skip


def commands(group: click.Group, path: tuple[str, ...] = ()):
    """Each command, with its words."""
    for name, each in group.commands.items():
        if isinstance(each, click.Group):
            yield from commands(each, (*path, name))
        else:
            yield (*path, name), each


def printing():
    """Names of the commands that print JSON."""
    for path, each in commands(app):
        if any(parameter.name == "json" for parameter in each.params):
            yield "-".join(path)


def properties(part, whole, place=""):
    """Each property of a schema: its place, and its own schema."""
    if isinstance(part, list):
        for each in part:
            yield from properties(each, whole, place)
        return
    if not isinstance(part, dict):
        return
    for name, each in part.get("properties", {}).items():
        yield f"{place}.{name}", each
    for key, each in part.items():
        if key == "properties":
            for name, own in each.items():
                yield from properties(own, whole, f"{place}.{name}")
        else:
            yield from properties(each, whole, place)


def resolved(part, whole):
    """A schema, or the one that it refers to."""
    if "$ref" in part:
        return whole["definitions"][part["$ref"].rpartition("/")[2]]
    return part


def test_every_command_that_prints_json_has_a_schema():
    assert [name for name in printing() if name not in names()] == []


def test_no_schema_is_of_a_command_that_is_not():
    known = tuple(printing())
    assert [n for n in names() if not any(n == k or n.startswith(f"{k}-") for k in known)] == []
    assert {*COMMANDS, *ELSEWHERE} == set(names())


@pytest.mark.parametrize("name", names())
def test_it_is_a_schema_and_stands_alone(name):
    validator(name)
    text = json.dumps(schema(name))
    assert "definitions.json" not in text
    assert list(schema(name))[:3] == ["$schema", "title", "description"]


@pytest.mark.parametrize("name", names())
def test_every_property_says_what_it_is(name):
    whole = schema(name)
    every = dict(properties(whole, whole))
    assert every
    assert [p for p, each in every.items() if not resolved(each, whole).get("description")] == []


@pytest.mark.parametrize("name", names())
def test_objects_have_fixed_keys_or_typed_values(name):
    """And fixed keys are there, all but those of an option."""

    def walk(part):
        if isinstance(part, dict):
            if "object" in [part.get("type"), *(part.get("type") or ())]:
                assert "additionalProperties" in part, part.get("description")
                assert part["additionalProperties"] is not True
                assert set(part.get("required", ())) <= set(part.get("properties", ()))
            for each in part.values():
                walk(each)
        elif isinstance(part, list):
            for each in part:
                walk(each)

    walk(schema(name))


@pytest.mark.parametrize(("name", "arguments"), [
    pytest.param(name, arguments, id=f"{name}-{number}")
    for name, lines in COMMANDS.items() for number, arguments in enumerate(lines)
])  # fmt: skip
def test_what_a_command_prints_fits(name, arguments, vdla, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO('block_in=8\n{"block_in": 3}\n'))
    done = vdla(*arguments, "--json")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == (2 if name == "evaluate-stdin" else 1)
    for line in lines:
        check(name, line)
        refuses(name, json.loads(line))


def refuses(name: str, value: dict) -> None:
    """Whether a schema refuses an object with a key more, and one with a key less."""
    with pytest.raises(AssertionError, match=name):
        check(name, json.dumps({**value, "additional key": None}))
    for key in schema(name).get("required", ()):
        less = copy.deepcopy(value)
        del less[key]
        with pytest.raises(AssertionError, match=f"{name}.*{key}"):
            check(name, json.dumps(less))


def test_the_schema_of_a_command_line():
    for line, name in (
        ("farm status", "farm-status"), ("run digits --check", "run-check"),
        ("board check --board ulx3s", "board-check"),
        ("compare digits", "compare"), ("compare digits -c tiny -c paper", "compare-configs"),
        ("compare digits --latency 1,2", "compare-latency"), ("configs", "configs"),
        ("configs tiny", "configs-one"), ("tune digits --log t", "tune"),
        ("tune digits --log t --target gpu", "tune-functions"),
    ):  # fmt: skip
        context, words = click.Context(app, info_name="vdla"), line.split()
        command = app
        while isinstance(command, click.Group):
            word = words.pop(0)
            command = command.commands[word]
            if words and isinstance(command, click.Group):
                context = click.Context(command, context, word)
        assert schema_name(command.make_context(word, words, context)) == name


def test_objects_that_are_not_json_are_refused():
    text = json.dumps({"models": {"a": float("nan")}})
    with pytest.raises(AssertionError, match="models: expected JSON, found NaN"):
        check("models", text)


def test_the_command_prints_one_or_lists_all(vdla):
    assert json.loads(vdla("schema", "run").out) == schema("run")
    listed = vdla("schema").out
    assert [name for name in names() if name not in listed] == []
    done = vdla("schema", "walk")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("vdla: schema: expected one of board-check, ")
    with pytest.raises(UsageError, match="found walk"):
        schema("walk")
