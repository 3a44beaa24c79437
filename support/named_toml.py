"""TOML files: bundled ones go by a name, a user's by their path."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from vdla.support.errors import UserError


def names_in(folder: Path) -> list[str]:
    """The names of the TOML files of a folder."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read_toml(
    kind: str, name: str | Path, folder: Path, error: type[UserError]
) -> tuple[dict[str, Any], Path]:
    """The data of a bundled file of ``folder``, or of a .toml file anywhere, and its path.

    Args:
        kind: what errors call it, such as "config".
        name: the bundled file's name, or a path that ends with .toml.
        folder: where the bundled files lie.
        error: what is raised where there is no such file, or one that isn't TOML.
    """
    path = Path(name)
    if path.suffix != ".toml":
        path = folder / f"{name}.toml"
        if not path.exists():
            raise error(
                f"{kind} {name}: expected a .toml file or one of {', '.join(names_in(folder))}, "
                "found neither"
            )
    try:
        return tomllib.loads(path.read_text()), path
    except OSError as problem:
        raise error(f"{path}: expected a readable file, found {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path}: expected TOML, found {problem}") from None
    except RecursionError:
        raise error(f"{path}: expected TOML, found brackets within brackets, too deep") from None
