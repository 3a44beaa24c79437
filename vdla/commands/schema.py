"""The JSON Schemas of what commands print with ``--json``: draft 7, files in ``schemas/``.

A schema is named after its command, ``farm-status``; where a command prints objects of several
kinds, each has a schema: ``run``, ``run-check``, ``run-profile``. Parts that several schemas share
are in ``definitions.json``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from vdla.commands.output import table, write_text
from vdla.options.spelling import UsageError

FOLDER = Path(__file__).parent / "schemas"
SHARED = "definitions"
REFERENCE = re.compile(rf"{SHARED}\.json#/{SHARED}/(\w+)")


def show(name: str | None) -> None:
    """Prints a schema, or lists all."""
    if name is None:
        rows = [(each, schema(each)["title"]) for each in names()]
        table("schemas", ("schema", "object that it describes"), rows)
    else:
        write_text(None, json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n")


def names() -> list[str]:
    """Names of the schemas."""
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != SHARED)


def schema(name: str) -> dict[str, object]:
    """A schema that stands alone: with the shared parts that it refers to.

    Raises:
        UsageError: there is no such schema.
    """
    if name not in names():
        raise UsageError(f"schema: expected one of {', '.join(names())}, found {name}")
    own, parts = _read(name), _read(SHARED)[SHARED]
    assert isinstance(parts, dict)
    used: dict[str, object] = {}
    wanted = _references(own)
    while wanted:
        part = wanted.pop()
        if part not in used:
            used[part] = parts[part]
            wanted += _references(parts[part])
    whole = own | ({SHARED: dict(sorted(used.items()))} if used else {})
    result: dict[str, object] = json.loads(json.dumps(whole).replace(f"{SHARED}.json#", "#"))
    return result


def _references(value: object) -> list[str]:
    """Names of the shared parts that a part of a schema refers to."""
    return REFERENCE.findall(json.dumps(value))


def _read(name: str) -> dict[str, object]:
    """A schema's file."""
    result: dict[str, object] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return result
