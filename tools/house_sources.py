"""The product's sources, as git knows them, and their syntax trees."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("support", "farm", "isa", "sim", "hw", "compiler", "runtime", "boards", "explore", "vdla")


def product_files(*suffixes: str) -> list[Path]:
    """The files of every room with one of the suffixes, as ``.py``."""
    patterns = (f"{room}/*{suffix}" for room in ROOMS for suffix in suffixes)
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree."""
    return tuple(ast.walk(tree_of(path)))


def relative(path: Path) -> str:
    """A path from the root."""
    return str(path.relative_to(ROOT))


def room_of(path: Path) -> str:
    """The folder at the root that a file is in."""
    return path.relative_to(ROOT).parts[0]
