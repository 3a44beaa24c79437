"""Writes what follows from other files: pages of decisions, config keys, schemas; a grammar.

    python tools/pages.py [--check]

With ``--check`` nothing is written, and the exit code is 1 where a file isn't current.

    docs/decisions/index.md      number, title, date and status of each decision
    docs/reference/configs.md    each key of a config: its meaning, its range, its default
    docs/reference/json.md       each property of what commands print with --json
    compiler/graph/ir.py         the operators in the grammar of graphs
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

from grammar import graph_grammar
from schema_tables import schemas_page

from vdla.isa.config import CONFIG_DIR, Config
from vdla.isa.memory import Banks, Memory
from vdla.isa.parameters import parameters

ROOT = Path(__file__).parent.parent
DECISIONS = """\
# Decisions

What was decided, with the figures that led to it. A decision stands as it was written; where a
later one took its place, in whole or in part, the status says so.

| | decision | date | status |
| ---: | --- | --- | --- |
{rows}

```{{toctree}}
:hidden:

{names}
```
"""
CONFIGS = """\
# Config keys

A config is a TOML file. `vdla configs` lists the bundled ones, `vdla configs paper` prints one with
what follows from it; any command that takes `-c` takes a file, too, and `--set KEY=VALUE` changes
one key.

Bundled: {bundled}.

{tables}

A table `[clock]` says where `clock_mhz` comes from, and each time that is printed has the word:
`37.2 ms at 200 MHz (asked)`. It is no part of the config's hash; a setting that makes another
machine drops it. Without it the clock is asked.

| `source` | further keys | what it says |
| --- | --- | --- |
| `"routed"` | `tool`, `board`, `seed`, `reached_mhz` | a tool routed it; `vdla synth` prints this |
| `"estimated"` | `part`, `levels`, `level_ns` | levels of logic × what one takes with its wires |
| `"asked"` | none | no tool has routed it |

Some keys depend on others: blocks are multiples of the port's width, one of `block_in` and
`block_out` divides the other, and one fourth engine at most is on. An error names the rule and the
value.
"""
STATUS = re.compile(r"(?P<date>\d{4}-\d\d-\d\d), (?P<status>.*)\.")


def decisions_page() -> str:
    """A table of all decisions, the newest first, and a list of them for the site's menu."""
    paths = sorted((ROOT / "docs" / "decisions").glob("0*.md"), reverse=True)
    rows, names = [], []
    for path in paths:
        title, _, line = path.read_text().splitlines()[:3]
        status = STATUS.fullmatch(line)
        if status is None:
            raise SystemExit(f"{path.name}: expected a date and a status, found {line!r}")
        number, _, text = title.removeprefix("# ").partition(". ")
        rows.append(
            f"| [{number}]({path.name}) | {text} | {status['date']} | {_linked(status['status'])} |"
        )
        names.append(path.stem)
    return DECISIONS.format(rows="\n".join(rows), names="\n".join(names))


def _linked(status: str) -> str:
    """A status whose numbers of decisions are links to them."""

    def link(match: re.Match[str]) -> str:
        (path,) = (ROOT / "docs" / "decisions").glob(f"{int(match[0]):04}-*.md")
        return f"[{match[0]}]({path.name})"

    return re.sub(r"(?<=decision )\d+|(?<=decisions )\d+|(?<= and )\d+", link, status)


def configs_page() -> str:
    """The keys of a config, a table for each of its parts."""
    parts = [
        ("The accelerator", "", Config),
        ("[memory]", "memory.", Memory),
        ("[memory.banks]", "memory.banks.", Banks),
    ]
    bundled = ", ".join(f"`{path.stem}`" for path in sorted(CONFIG_DIR.glob("*.toml")))
    lines = []
    for title, scope, part in parts:
        lines += ["", f"## {title}", "", "| key | meaning | range | default |"]
        lines += [
            "| --- | --- | --- | ---: |",
            *(_key_row(scope, each) for each in parameters(part)),
        ]
    return CONFIGS.format(bundled=bundled, tables="\n".join(lines[1:]))


def _key_row(scope: str, each: Field[Any]) -> str:
    """A row of the table of keys."""
    meta = each.metadata
    default = "" if each.default is MISSING else str(each.default)
    span = f"{meta['low']:,} to {meta['high']:,}"
    return f"| `{scope}{each.name}` | {meta['doc']} | {span} | {default} |"


PAGES: dict[str, Callable[[], str]] = {
    "docs/decisions/index.md": decisions_page,
    "docs/reference/configs.md": configs_page,
    "docs/reference/json.md": schemas_page,
    "compiler/graph/ir.py": graph_grammar,
}


def main() -> int:
    """Writes the files, or says which of them aren't current."""
    stale = [name for name, page in PAGES.items() if _current(name) != page()]
    for name in stale:
        if "--check" in sys.argv:
            print(f"{name}: expected what follows from others; run python tools/pages.py")
        else:
            (ROOT / name).write_text(PAGES[name]())
            print(f"wrote {name}")
    return int("--check" in sys.argv and bool(stale))


def _current(name: str) -> str:
    """The text of a file as it stands."""
    path = ROOT / name
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
