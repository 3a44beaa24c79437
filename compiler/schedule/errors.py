"""The error of a primitive that can't be applied."""

from __future__ import annotations

from vdla.support.errors import UserError


class ScheduleError(UserError):
    """A primitive doesn't apply; the message names the place, what was expected and found."""
