"""The command lines that documents show are right: they parse, and name what there is."""

from __future__ import annotations

import re
from itertools import pairwise

import click
import pytest
from documented import ROOT, command_lines, context_of, pages, spans

from vdla.boards import MODULES
from vdla.commands.cli import app
from vdla.commands.schema import names as schema_names
from vdla.compiler.models import MODELS
from vdla.explore.space import space_names
from vdla.isa.config import config_names
from vdla.options.spelling import UsageError, read

FILES = re.compile(r"\.(onnx|vdla|toml|tflite|pt2|py:\w+)$")
MADE = ("zybo-z7-20",)  # boards that a recipe adds
SENTENCE = {"--board": "ulx3s", "--log": "F", "-o": "F"}  # what a command needs, left out there


EVERY = [line for page in pages() for line in command_lines(page)]


def named(name: str, value: object):
    """The bundled names that a parameter's value has to be one of; None where it is free."""
    text = str(value)
    if value is None or text in ("…", "KEY=VALUE…", "[KEY=VALUE…]") or FILES.search(text):
        return None
    known = {
        "config": config_names(), "model": MODELS, "models": MODELS, "board": (*MODULES, *MADE),
        "given": MODELS, "space": space_names(), "baseline": config_names(),
    }  # fmt: skip
    return None if name == "given" and "=" in text else known.get(name)


def complete(words: tuple[str, ...]) -> tuple[str, ...]:
    """A command line as a sentence names it, with what is left out there and the command needs."""
    for _ in range(5):
        try:
            context_of(words)
        except click.MissingParameter as missing:
            names = missing.param.opts if isinstance(missing.param, click.Option) else []
            option = next((name for name in names if name in SENTENCE), None)
            words += (option, SENTENCE[option]) if option else ("digits",)
        except click.BadOptionUsage as error:
            if "requires an argument" not in error.message:
                raise
            words += (SENTENCE.get(words[-1], "paper"),)
        else:
            break
    return words


def problem(line) -> str | None:
    """What is wrong with a command line of vdla."""
    words = line.words[1:]
    try:
        context = context_of(words if line.block else complete(words))
        _, groups = context.command.callback.args
        for kind in groups.values():
            read(kind, dict(context.params))
    except click.ClickException as error:
        return error.format_message()
    except UsageError as error:
        return str(error)
    for name, value in context.params.items():
        for each in value if isinstance(value, tuple) else (value,):
            known = named(name, each)
            if known is not None and str(each) not in known:
                return f"{name}: expected one of {', '.join(known)}, found {each}"
    if words[0] == "schema" and words[1:] and words[1] not in schema_names():
        return f"schema: found {words[1]}"
    return None


def options(group: click.Group) -> set[str]:
    """Options of all commands of a group."""
    result = {name for each in group.params for name in each.opts}
    for command in group.commands.values():
        if isinstance(command, click.Group):
            result |= options(command)
        result |= {name for each in command.params for name in each.opts}
    return result


def test_they_are_found():
    assert len([line for line in EVERY if line.words[0] == "vdla"]) > 200
    assert len([line for line in EVERY if line.words[0] == "python"]) > 70
    for page in ("README.md", "docs/farm.md", "docs/pynq.md", "docs/faq.md"):
        assert any(line.page == page for line in EVERY)


@pytest.mark.parametrize("page", sorted({line.page for line in EVERY}))
def test_command_lines_parse(page):
    lines = [line for line in EVERY if line.page == page and line.words[0] == "vdla"]
    wrong = [f"{line.where}: {line}: {why}" for line in lines if (why := problem(line))]
    assert wrong == []


def test_scripts_are_there_and_have_the_options():
    wrong = []
    for line in (line for line in EVERY if line.words[0] == "python"):
        path = ROOT / line.words[1]
        if not path.exists():
            wrong.append(f"{line.where}: {line}: there is no {line.words[1]}")
            continue
        options = [word for word in line.words[2:] if re.match(r"-[a-z-]", word)]
        text = path.read_text()
        if "from peers import" in text:  # which adds options that several scripts have
            text += (path.parent / "peers.py").read_text()
        wrong += [f"{line.where}: {line}: no {o}" for o in options if f'"{o}"' not in text]
    assert wrong == []


def test_options_that_sentences_name_are_there():
    """Of a command, or of a script of ours; decisions name options of other programs, too."""
    known = {*options(app), "-arch"}  # bootgen's
    scripts = "".join(path.read_text() for path in ROOT.glob("benchmarks/*.py"))
    wrong = []
    for page in (page for page in pages() if "decisions" not in page):
        for number, text in spans(page):
            named = re.findall(r"(?<!\S)--?[a-z][-a-z0-9]*", text) if text.startswith("-") else []
            wrong += [
                f"{page}:{number}: {name}"
                for name in named
                if name not in known and f'"{name}"' not in scripts
            ]
    assert wrong == []


@pytest.mark.parametrize(("words", "why"), [
    ("run digits --nosuch", "No such option"),
    ("run digits --images many", "not a valid integer"),
    ("compare", "Missing argument"),
    ("compare resnet81", "model: expected one of resnet18"),
    ("compare digits -c papper", "config: expected one of"),
    ("compare digits --vthreads 1,x", "--vthreads: expected"),
    ("farm", "farm: expected a command"),
])  # fmt: skip
def test_wrong_lines_are_noticed(words, why):
    line = type(EVERY[0])("page", 1, ("vdla", *words.split()), True)
    assert why in problem(line)
    assert all(a.number <= b.number for a, b in pairwise(command_lines("README.md")))
