"""Parameters of a config: fields of a dataclass with a range, and a line of TOML that shows one."""

from __future__ import annotations

from dataclasses import MISSING, Field, field, fields
from typing import Any

from vdla.support.errors import UserError


class ConfigError(UserError):
    """A config that is malformed or describes a machine that can't exist."""


def parameter(doc: str, default: Any = MISSING, low: int = 1, high: int = 1 << 30) -> Any:
    """One documented config parameter with its legal range."""
    meta = {"doc": doc, "low": low, "high": high}
    return field(metadata=meta) if default is MISSING else field(default=default, metadata=meta)


def pace(doc: str, default: int, low: int = 1, high: int = 1 << 30) -> Any:
    """A parameter that decides when instructions run, and nothing of what they are."""
    meta = {"doc": doc, "low": low, "high": high, "pace": True}
    return field(default=default, metadata=meta)


def parameter_line(f: Field[Any], value: int) -> str:
    """A parameter's line in a config file, its meaning in a comment."""
    return f"{f.name} = {value}".ljust(28) + f"# {f.metadata['doc']}"


def parameters(cls: type[Any]) -> list[Field[Any]]:
    """The parameters among the fields of a dataclass."""
    return [f for f in fields(cls) if "low" in f.metadata]


def check_ranges(where: str, part: Any) -> None:
    """Whether every parameter of ``part`` lies in its range; ``where`` names it in the error.

    Raises:
        ConfigError: one doesn't.
    """
    for f in parameters(type(part)):
        value, low, high = getattr(part, f.name), f.metadata["low"], f.metadata["high"]
        if not low <= value <= high:
            raise ConfigError(f"{where}: expected {low} ≤ {f.name} ≤ {high}, found {value}")


def typed(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a value of decoded TOML is of one of these types; true and false are no numbers."""
    return isinstance(value, kinds) and not isinstance(value, bool)
