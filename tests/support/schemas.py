"""Every object that a command prints in this process fits the schema of that command."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cache

import click
import fastjsonschema
import pytest

from vdla.commands import output
from vdla.commands.schema import schema

KINDS = {  # of a command whose objects are of several kinds: the schema's name by a parameter
    "compare": lambda p: "-configs" if len(p["config"]) > 1 else p["latencies"] and "-latency",
    "configs": lambda p: (p["name"] or p["board"]) and "-one",
    "evaluate": lambda p: p["stdin"] and "-stdin",
    "run": lambda p: next((f"-{n}" for n in ("check", "profile", "explain") if p[n]), ""),
    "tune": lambda p: p["target"] != "accelerator" and "-functions",
}


def schema_name(context: click.Context) -> str:
    """The name of the schema of what a command prints."""
    name = "-".join(context.command_path.split()[1:])
    return name + (KINDS.get(name, lambda _: "")(context.params) or "")


@cache
def validator(name: str):
    """What raises an error for an object that doesn't fit a schema."""
    return fastjsonschema.compile(schema(name))


def check(name: str, text: str) -> None:
    """Fails where a JSON text doesn't fit a schema, or has numbers that JSON hasn't."""

    def refuse(constant):
        raise AssertionError(f"{name}: expected JSON, found {constant}")

    try:
        validator(name)(json.loads(text, parse_constant=refuse))
    except fastjsonschema.JsonSchemaValueException as error:
        raise AssertionError(f"schema {name}: {error.message}, found {error.value!r}") from None


@contextmanager
def every_object_fits():
    """Inside, each object that a command prints is checked first."""
    patch = pytest.MonkeyPatch()
    text_of = output.json_text

    def checked(value):
        text = text_of(value)
        context = click.get_current_context(silent=True)
        if context is not None:  # else a test calls the command's function
            check(schema_name(context), text)
        return text

    patch.setattr(output, "json_text", checked)
    yield
    patch.undo()
