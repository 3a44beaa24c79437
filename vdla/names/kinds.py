"""The kinds of values that users may give for a name, and devices."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType

from vdla.options.spelling import UsageError


def check_kind(what: str, kinds: str, actual: object, types: type | UnionType) -> None:
    """Raises UsageError unless a value is of some types, which ``kinds`` names."""
    if not isinstance(actual, types):
        raise UsageError(f"{what}: expected {kinds}, found {type(actual).__name__}")


def check_device(device: str, known: Sequence[str]) -> None:
    """Raises UsageError unless a device is one of those that there are."""
    if device not in known:
        raise UsageError(f"--device: expected one of {', '.join(known)}, found {device}")
