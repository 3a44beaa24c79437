"""Schedules in words, for the tables that people read. Modules and records keep them as names and
numbers, ``rows=4 cols=8 stages=16``; this file reads that text and imports no compiler."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_KNOB = re.compile(r"(\w+)=(.*?)(?=\s+\w+=|$)")
_KEPT = {"wgt": "weights stationary", "inp": "image stationary"}
_SHARED = {"c": "threads share channels", "y": "threads share rows", "x": "threads share columns"}


def _some(one: str, more: str = "") -> Callable[[str], str]:
    """A number of something: ``1 stage``, ``4 stages``."""
    return lambda value: f"{value} {one if value == '1' else more or one + 's'}"


def _beyond(least: str, words: Callable[[str], str]) -> Callable[[str], str]:
    """Words for all values but the one that means nothing."""
    return lambda value: "" if value == least else words(value)


_WORDS: Mapping[str, Callable[[str], str]] = {
    "outputs": _some("output block"),
    "rows": _some("row"),
    "cols": _some("column"),
    "blocks": _some("block"),
    "pixels": _some("pixel"),
    "vectors": _some("vector"),
    "channels": _some("channel"),
    "inputs": _some("input block"),
    "weights": _beyond("1", lambda value: f"weights of {value} blocks at a time"),
    "taps": _beyond("0", lambda value: f"{_some('row')(value)} of the window at a time"),
    "copies": _beyond("1", lambda value: f"{value} portions of a projection's weights"),
    "key_copies": lambda value: f"keys of {_some('head')(value)}",
    "value_copies": lambda value: f"values of {_some('head')(value)}",
    "vthreads": _some("thread"),
    "axis": lambda value: _SHARED.get(value, f"threads share {value}"),
    "resident": _beyond("False", lambda value: "parameters stay on chip"),
    "stationary": _beyond("", lambda value: _KEPT.get(value, f"{value} stationary")),
    "stages": _beyond("1", _some("stage")),
    "schedule": lambda value: value,
}


def schedule_words(text: str) -> str:
    """A schedule in words, without what means nothing: ``4 × 8 pixels, weights stationary, 16
    stages``.

    Args:
        text: names and numbers, as ``tile_text`` writes them; any other text stays as it is.
    """
    knobs = {str(name): str(value) for name, value in _KNOB.findall(text)}
    if not knobs:
        return text
    if knobs.get("axis") and knobs.get("vthreads") == "1":
        del knobs["axis"]  # one thread shares nothing
    parts = [] if not {"rows", "cols"} <= knobs.keys() else [_pixels(knobs)]
    parts += [_WORDS.get(n, lambda v, n=n: f"{n} {v}")(v) for n, v in knobs.items()]
    return ", ".join(part for part in parts if part)


def _pixels(knobs: dict[str, str]) -> str:
    """Rows and columns together, taken out of the others."""
    return f"{knobs.pop('rows')} × {knobs.pop('cols')} pixels"
