"""The language of the sources: docstrings that lean on others or ask, names that say nothing.

    python tools/language.py [--check]

A docstring leans that opens with "Of", "As", "The same", "That of", "Its", "Those", "It" or "The
reverse": in a tooltip it says nothing. One asks that opens with "What", "How", "Where" or "Why":
its subject comes last, where a tooltip cuts it off. ``found``, ``told``, ``there`` and ``those``
are no names for values: docs/style.md says why, and what to write instead. With ``--check``, as
``make lint`` runs it, each place is an error.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = (
    "support", "isa", "sim", "hw", "compiler", "runtime", "boards", "farm", "explore", "vdla",
    "benchmarks", "tools", "training", "examples",
)  # fmt: skip
LEANS = re.compile(r"(Of|As|The same|That of|Its|Those|It|The reverse)\b")
ASKS = re.compile(r"(What|How|Where|Why)\b")
NO_NAMES = frozenset({"found", "told", "there", "those"})
SIGNALS = "hw/"  # whose names are the netlist's, which stays as it is
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


WANTED = {
    "docstring": "one that stands alone",
    "question": "a docstring that opens with its noun or verb",
    "name": "a noun that says the thing",
}


def openings(tree: ast.AST, kind: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """(line, first line) of every docstring that opens with a word of some kind."""
    for node in ast.walk(tree):
        if isinstance(node, Documented):
            text = ast.get_docstring(node) or ""
            if kind.match(text):
                yield node.body[0].lineno, text.splitlines()[0]


def vague(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of every variable and parameter whose name says nothing of its value."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in NO_NAMES:
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) if name in NO_NAMES:
                yield node.lineno, name


def sources() -> list[Path]:
    """The Python files of every room, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{room}/*.py" for room in ROOMS)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def problems(path: Path, name: str) -> Iterator[tuple[str, int, str]]:
    """(kind, line, what) of every place in a file, of which ``name`` is the path from the root."""
    tree = ast.parse(path.read_text())
    yield from (("docstring", line, text) for line, text in openings(tree, LEANS))
    yield from (("question", line, text) for line, text in openings(tree, ASKS))
    if not name.startswith(SIGNALS):
        yield from (("name", line, text) for line, text in vague(tree))


def main() -> None:
    """Prints each place, and how many there are of each kind."""
    counts = dict.fromkeys(WANTED, 0)
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        for kind, line, text in problems(path, name):
            counts[kind] += 1
            print(
                f"{name}:{line}: {kind}: expected {WANTED[kind]}, found {text!r}; see docs/style.md"
            )
    print(
        f"{counts['docstring']} leaning docstrings, {counts['question']} docstrings that ask, "
        f"{counts['name']} names that say nothing"
    )
    sys.exit(1 if "--check" in sys.argv and any(counts.values()) else 0)


if __name__ == "__main__":
    main()
