"""JSON that others wrote: what can't be read is a ValueError, text that is too deep included."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 64  # brackets within brackets; no file of vdla's has ten


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it isn't JSON, or its brackets are more than ``DEEPEST`` deep: what works on
            values goes down into them, and ends beyond Python's stack.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    data = text.encode() if isinstance(text, str) else text
    if data.count(b"[") + data.count(b"{") > DEEPEST and _is_deep(value):
        raise _too_deep()
    return value


def _is_deep(value: Any) -> bool:
    """Whether lists and objects are more than ``DEEPEST`` deep in a value."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            child
            for each in level
            if isinstance(each, list | dict)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _too_deep() -> ValueError:
    return ValueError(f"brackets more than {DEEPEST} deep")
