"""The errors of the front end."""

from __future__ import annotations

from vdla.support.errors import UserError


class ModelError(UserError):
    """A model that can't be taken: one line with what was expected, what was found, and where."""

    def __init__(self, where: str, expected: str, found: object) -> None:
        line = f"{where}: expected {expected}, found {found}"
        super().__init__(" ".join(line.split()))


class UnsupportedError(ModelError):
    """A node that may be right but isn't in a form that vdla has; onnxruntime may run it."""
