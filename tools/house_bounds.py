"""The bounds of the house's figures, house.toml, and the rules by which they change.

A bound is a list of entries, newest last. Each has a date, a reason, and a value unless it ends the
bound. A bound moves by one entry more, so that the file says of each move when and why it was made.
"""

from __future__ import annotations

import datetime
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from house_sources import ROOT

PATH = Path(__file__).parent / "house.toml"
Entry = Mapping[str, Any]
Bounds = Mapping[str, Sequence[Entry]]


def read(text: str) -> Bounds:
    """Every bound's entries, by the name of its figure."""
    return tomllib.loads(text)


def in_force(bounds: Bounds) -> dict[str, float]:
    """The value of each bound that hasn't ended."""
    return {name: last["value"] for name, (*_, last) in bounds.items() if "value" in last}


def number(figures: Mapping[str, Any], name: str) -> float:
    """A figure that house.py measured, by its name in house.toml.

    Raises:
        KeyError: there is none of that name.
    """
    value: Any = figures
    for part in name.split("."):
        value = value[part]
    if isinstance(value, dict):
        return float(sum(value.values()))
    return len(value) if isinstance(value, list) else value


def mistakes(bounds: Bounds) -> list[str]:
    """Entries that a bound may not have, a line each."""
    return [
        f"{name}: entry {place}: {mistake}"
        for name, entries in bounds.items()
        for place, entry in enumerate(entries, 1)
        for mistake in _mistakes(entry, entries[: place - 1])
    ]


def _mistakes(entry: Entry, before: Sequence[Entry]) -> list[str]:
    day, reason = entry.get("date"), entry.get("reason")
    if entry.keys() - {"value", "date", "reason"}:
        return [f"expected value, date and reason, found {', '.join(entry)}"]
    if type(day) is not datetime.date:
        return [f"expected a date, as 2026-11-29, found {day!r}"]
    if not isinstance(reason, str) or not reason.strip() or "\n" in reason:
        return [f"expected a reason in one line, found {reason!r}"]
    if "value" not in entry:
        return [] if before else ["expected a value, since there is no bound yet to end"]
    if type(entry["value"]) not in (int, float):
        return [f"expected a number as value, found {entry['value']!r}"]
    latest = before[-1].get("date") if before else None
    if type(latest) is datetime.date and day < latest:
        return [f"expected a date from {latest} on, found {day}"]
    return []


def rewritten(before: Bounds, after: Bounds) -> list[str]:
    """Entries of one version of the file that the next one lacks or has otherwise, a line each."""
    return [
        f"{name}: entry {place}: expected {_text(entry)}, as it was, found "
        f"{_text(now[place - 1]) if place <= len(now) else 'none'}; add an entry instead"
        for name, entries in before.items()
        for now in [after.get(name, [])]
        for place, entry in enumerate(entries, 1)
        if place > len(now) or now[place - 1] != entry
    ]


def _text(entry: Entry) -> str:
    return f"{entry.get('value', 'an end')} of {entry.get('date')} ({entry.get('reason')})"


def versions() -> list[str] | None:
    """The file in every commit of the branch that changed it, oldest first, and as it stands.

    A commit is one of the first parents, as ``git log --first-parent`` has them. None where there
    is no history: the sources aren't those of a repository, or git isn't there.
    """
    name = PATH.relative_to(ROOT).as_posix()
    try:
        if Path(_git("rev-parse", "--show-toplevel").strip()).resolve() != ROOT.resolve():
            return None
        commits = _git("log", "--first-parent", "--format=%H", "--diff-filter=AM", "--", name)
        texts = [_git("show", f"{commit}:{name}") for commit in reversed(commits.split())]
    except (OSError, subprocess.CalledProcessError):
        return None
    return [*texts, PATH.read_text()]


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
