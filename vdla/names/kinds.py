"""The kinds of values that users may give for a name."""

from __future__ import annotations

from types import UnionType

from vdla.options.spelling import UsageError


def check_kind(what: str, kinds: str, actual: object, types: type | UnionType) -> None:
    """Raises UsageError unless a value is of some types, which ``kinds`` names."""
    if not isinstance(actual, types):
        raise UsageError(f"{what}: expected {kinds}, found {type(actual).__name__}")
