"""Errors of traced functions, which open with the line of the user's that was wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from vdla.support.errors import UserError

NOT_THE_USERS = tuple(str(Path(file).parent) for file in (__file__, np.__file__))


class TraceError(UserError):
    """Something in a traced function that can't be a graph, and the line that has it."""

    def __init__(self, what: str, expected: str, actual: object) -> None:
        super().__init__(f"{line()}: {what}: expected {expected}, found {actual}")


def line() -> str:
    """``FILE:LINE`` of the innermost call that is neither numpy's nor this folder's."""
    frame = sys._getframe()
    while frame.f_back and frame.f_code.co_filename.startswith(NOT_THE_USERS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
