"""The page of JSON schemas for ``tools/pages.py``: a table of properties for each schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict

from vdla.commands.schema import SHARED, names, schema

PAGE = """\
# JSON

Commands with `--json` print one JSON object on stdout, in one line; `vdla evaluate --stdin` prints
one for each line that it reads. JSON Schemas (draft 7) describe the objects, and the tests hold
each command to them:

```sh
vdla schema                    # lists them
vdla schema run > run.schema.json
vdla run digits --json | python -c 'import json, sys; print(json.load(sys.stdin)["cycles"])'
```

In the tables `layers[].name` is a property of each object in a list, and `outputs.*.shape` one of
each value in an object whose keys are data: layers, outputs, numbers of virtual threads. An
optional property is left out where its meaning doesn't apply.

{schemas}

## Shared parts

{parts}
"""
TABLE = "| property | type | meaning |\n| --- | --- | --- |\n"
PLURAL = {
    "integer": "integers", "number": "numbers", "string": "strings", "boolean": "booleans",
    "object": "objects", "array": "lists", "null": "null",
}  # fmt: skip


class Part(TypedDict, total=False):
    """A schema, or a part of one."""

    title: str
    description: str
    type: str | list[str]
    properties: dict[str, Part]
    additionalProperties: bool | Part
    required: list[str]
    items: Part
    allOf: list[Part]
    oneOf: list[Part]
    definitions: dict[str, Part]


def schemas_page() -> str:
    """All schemas, then the parts that they share."""
    parts: dict[str, Part] = {}
    sections = []
    for name in names():
        whole: Part = schema(name)
        parts |= whole.get(SHARED, {})
        head = f"## {name}\n\n`{whole['title']}`: {_small(whole['description'])}\n\n"
        if "oneOf" in whole:
            tables = [f"{each['description']}:\n\n{_table(each)}" for each in whole["oneOf"]]
            sections.append(head + "\n\n".join(tables))
        else:
            sections.append(head + _table(whole))
    shared = [
        f"### {name}\n\n{part['description']}.\n\n{_table(part)}"
        for name, part in sorted(parts.items())
    ]
    return PAGE.format(schemas="\n\n".join(sections), parts="\n\n".join(shared))


def _small(text: str) -> str:
    """A sentence behind a colon."""
    return text[0].lower() + text[1:]


def _table(part: Part) -> str:
    """The table of a part's properties."""
    rows = (
        f"| `{place}` | {_type(each)}{'' if required else ', optional'} | {_meaning(each)} |"
        for place, each, required in _properties(part, "")
    )
    return TABLE + "\n".join(rows)


def _properties(part: Part, place: str) -> Iterator[tuple[str, Part, bool]]:
    """Each property below a part: its place, itself, and whether it is always there."""
    for name, each in part.get("properties", {}).items():
        yield f"{place}{name}", each, name in part.get("required", ())
        yield from _properties(each, f"{place}{name}.")
    if "items" in part:
        yield from _properties(part["items"], f"{place.removesuffix('.')}[].")
    values = part.get("additionalProperties")
    if isinstance(values, Mapping):
        if "description" in values and "properties" not in values:
            yield f"{place}*", values, True
        yield from _properties(values, f"{place}*.")


def _reference(part: Part) -> str | None:
    """The shared part that a part is, if it is one."""
    own = part.get("allOf", [part])[0]
    place = own.get("$ref")
    return str(place).rpartition("/")[2] if place else None


def _meaning(part: Part) -> str:
    """A part's description."""
    name = _reference(part)
    text = part.get("description") or (f"See {name}" if name else "")
    return text.replace("|", "\\|")


def _type(part: Part) -> str:
    """A part's type in words; a shared part's is a link to its table."""
    if name := _reference(part):
        return f"[{name}](#{name})"
    kinds = part.get("type", "boolean")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(_one_type(part, kind) for kind in kinds)


def _one_type(part: Part, kind: str) -> str:
    """One of a part's types in words."""
    if kind == "array":
        return f"list of {_several(part['items'])}"
    values = part.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping):
        return f"object of {_several(values)}"
    return kind


def _several(part: Part) -> str:
    """A part's type in the plural."""
    if name := _reference(part):
        return f"[{name}](#{name})"
    kinds = part.get("type", "boolean")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(PLURAL[each] for each in kinds)
