"""Options' values and their error: light, since every command imports it."""

from collections.abc import Sequence

from vdla.support.errors import UserError


class UsageError(UserError):
    """An option whose value makes no sense."""


def sizes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The values of ``--shape``: a name to its one size, or to several with commas between."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, listed = text.rpartition("=")
        try:
            found[name.strip()] = tuple(int(part) for part in listed.split(","))
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise UsageError(f"--shape: expected NAME=N or INPUT=D0,D1,…, found {text!r}")
    return found


def numbers(option: str, text: str, low: int, high: int | None = None) -> list[int]:
    """The value of an option that lists distinct numbers, with commas between them."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    inside = all(low <= n and (high is None or n <= high) for n in found)
    if not found or not inside or len(set(found)) < len(found):
        span = f"from {low} to {high}" if high is not None else f"from {low} up"
        raise UsageError(f"{option}: expected distinct numbers {span}, found {text!r}")
    return found
