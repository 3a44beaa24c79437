"""Help in sections, with examples that parse; completion at the press of Tab."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import click
import pytest

from vdla.commands.cli import app
from vdla.options.completion import SHELLS
from vdla.options.help import COMMANDS, SECTIONS


def commands(group=app, path=()):
    for name, each in group.commands.items():
        if isinstance(each, click.Group):
            yield from commands(each, (*path, name))
        else:
            yield (*path, name), each


ALL = dict(commands())


def test_every_command_has_a_purpose():
    assert sorted(app.commands) == sorted(name for names in COMMANDS.values() for name in names)


def test_every_option_has_one_section():
    known = [name for names in SECTIONS.values() for name in names]
    assert len(known) == len(set(known))
    options = {
        max(each.opts, key=len)
        for command in ALL.values()
        for each in command.params
        if isinstance(each, click.Option)
    }
    own = {"--processes", "--dashboard"}  # of one command with few options
    assert options - set(known) == own
    assert set(known) - options == set()


def test_help_has_every_option_once(vdla):
    text = vdla("run", "--help").out
    starts = [line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")]
    options = [each for each in ALL["run",].params if isinstance(each, click.Option)]
    assert sorted(starts) == sorted([*(each.opts[0] for each in options), "--help"])
    titles = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[0] == "The accelerator"
    assert titles[-2:] == ["Others", "Examples"]


@pytest.mark.parametrize(
    "path", [path for path, each in ALL.items() if each.examples], ids=" ".join
)
def test_examples_parse(path):
    for line in ALL[path].examples.splitlines():
        words = shlex.split(line.partition(" > ")[0])
        if words[0] == "vdla":
            assert tuple(words[1 : 1 + len(path)]) == path
            ALL[path].make_context("x", words[1 + len(path) :])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("vdla comp", ["compare", "compile", "completion"]),
        ("vdla run resnet1", ["resnet18", "resnet18-convs", "resnet18-nhwc"]),
        ("vdla run digits -c pap", ["paper", "paper-full", "paper-plus", "paper-ring"]),
        ("vdla synth --board ar", ["arty-z7-20"]),
        ("vdla compare digits --same", ["--same-schedule"]),
        ("vdla completion ", list(SHELLS)),
    ],
)
def test_completion(words, expected):
    at = len(words.split(" ")) - 1
    asked = {"_VDLA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run(
        [sys.executable, "-m", "vdla"], env=os.environ | asked, capture_output=True, text=True
    )
    items = [line.split(",")[1] for line in done.stdout.splitlines()]
    assert (items, done.stderr) == (expected, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_asks_vdla(vdla, shell):
    assert "_VDLA_COMPLETE" in vdla("completion", shell).out


def test_another_shell(vdla):
    done = vdla("completion", "ksh")
    assert (done.code, done.err) == (
        2,
        "vdla: completion: expected bash, zsh or fish, found ksh\n",
    )
