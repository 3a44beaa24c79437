"""Names of the accelerator's optional units in the sources, and lists of its ALU operations.

An option is named by whole identifiers in code: in Python by names, attributes, arguments, what is
defined, and words of strings without a blank, as ``"tab.mem"``; in C++ by words. Of imports, those
of an option's own file, as isa/options/tables.py, name it. Comments and sentences name nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from house_sources import nodes_of, product_files, relative, room_of, tree_of

CONFIGS = ("config", "c")  # names of a config, as in ``self.config.tables``
OPTIONS = {
    "tables": {
        "options.tables", "table_bytes", "config.tables", "TAB", "tab", "AluOp.TABLE",
        "TABLE_RESULTS", "results_per_word", "table_read_port", "table_write_port", "TablePads",
    },
    "window": {"options.window", "window_taps", "window_rows", "window_pitch", "two_rows"},
    "vector engine": {"options.vector", "vector_engine", "Engine.VECTOR", "_VECTOR"},
    "reciprocals": {
        "options.reciprocals", "reciprocal_units", "reciprocal_groups", "AluOp.RECIPROCAL",
        "AluOp.RSQRT", "AluOp.SCALE", "Reciprocals", "has_units",
    },
    "forwarding": {"options.forwarding", "forwarding", "forwards"},
}  # fmt: skip
USERS = tuple(f"compiler/targets/accelerator/{part}/" for part in ("operators", "rewrites"))
WORD = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
Display = ast.Tuple | ast.List | ast.Set | ast.Dict


def options() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """For each option, the files that name it; those of operators and rewrites, which use it, are
    apart."""
    files: dict[str, list[str]] = {option: [] for option in OPTIONS}
    users: dict[str, list[str]] = {option: [] for option in OPTIONS}
    for path in product_files(".py", ".h", ".cpp"):
        name, identifiers = relative(path), identifiers_of(path)
        for option, patterns in OPTIONS.items():
            if identifiers & patterns:
                (users if name.startswith(USERS) else files)[option].append(name)
    return files, users


@cache
def identifiers_of(path: Path) -> frozenset[str]:
    """Every identifier in a file's code, and every pair of them, as ``AluOp.TABLE``."""
    if path.suffix == ".py":
        return frozenset(python_identifiers(tree_of(path)))
    code = COMMENT.sub(" ", path.read_text())
    return frozenset(words(re.sub("::|->", ".", code)))


def python_identifiers(tree: ast.AST) -> Iterator[str]:
    """Identifiers in Python's code, and pairs of them."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Attribute():
                yield from attribute(node)
            case ast.FunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
                yield from (f"{name}.{member}" for member in members(node))
            case ast.MatchClass(kwd_attrs=names):
                yield from names
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    yield from pairs([*module.split("."), each.name])
            case ast.Constant(value=str(text)) if not re.search(r"\s", text):
                yield from words(text)


def attribute(node: ast.Attribute) -> Iterator[str]:
    """An attribute's name, and with that of what it belongs to before it."""
    yield node.attr
    match node.value:
        case ast.Name(id=owner) | ast.Attribute(attr=owner):
            yield from pairs([owner, node.attr])


def members(node: ast.ClassDef) -> Iterator[str]:
    """Names that a class's body assigns: an enumeration's members."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield from (each.id for each in statement.targets if isinstance(each, ast.Name))


def words(text: str) -> Iterator[str]:
    """Identifiers in a text, and pairs of them with a dot between."""
    for match in WORD.finditer(text):
        names = match.group().split(".")
        yield from names
        yield from pairs(names)


def pairs(names: Sequence[str]) -> Iterator[str]:
    """Each name with the one before it; a config's are called so."""
    for owner, name in pairwise(names):
        yield f"{'config' if owner in CONFIGS else owner}.{name}"


# Lists of operations ---------------------------------------------------------------------------


def operation_lists(files: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Places where a tuple, a list, a set or a dict lists two or more ALU operations by name:
    outside the ISA, and in it."""
    outside: list[str] = []
    inside: list[str] = []
    for path in files:
        places = inside if room_of(path) == "isa" else outside
        places += (f"{relative(path)}:{line}" for line in lists_of(nodes_of(path)))
    return outside, inside


def lists_of(nodes: Sequence[ast.AST]) -> list[int]:
    """Lines of displays that list two or more ALU operations; one inside another is its part."""
    displays = [node for node in nodes if isinstance(node, Display)]
    parts = {part for node in displays for part in elements(node)}
    outer = (node for node in displays if node not in parts)
    return sorted(node.lineno for node in outer if len({*operations(node)}) > 1)


def elements(display: Display) -> Iterator[ast.expr]:
    """A display's elements; keys and values of a dict."""
    if isinstance(display, ast.Dict):
        yield from (each for each in (*display.keys, *display.values) if each is not None)
    else:
        yield from display.elts


def operations(display: Display) -> Iterator[str]:
    """ALU operations that a display names, those in displays inside it too; also as ``int(…)``."""
    for each in elements(display):
        match each:
            case (
                ast.Attribute(value=ast.Name(id="AluOp"), attr=name)
                | ast.Call(args=[ast.Attribute(value=ast.Name(id="AluOp"), attr=name)])
            ):
                yield name
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
                yield from operations(each)
