"""The errors of the front end, and what they take over from other errors."""

from __future__ import annotations

from vdla.support.errors import UserError


class ModelError(UserError):
    """A model that can't be taken: one line with what was expected, what was found, and where."""

    def __init__(self, where: str, expected: str, actual: object) -> None:
        line = f"{where}: expected {expected}, found {actual}"
        super().__init__(" ".join(line.split()))


class UnsupportedError(ModelError):
    """A node that may be right but isn't in a form that vdla has; onnxruntime may run it."""


class LoopError(ModelError):
    """A loop that can't be one, whoever runs it."""


def first_line(error: Exception) -> str:
    """Message of another tool's error, as one line."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(". ")


def halves(message: str) -> tuple[str, str]:
    """An "…: expected A, found B" message as its two halves."""
    expected, _, result = message.partition(", found ")
    return expected.rpartition("expected ")[2], result
