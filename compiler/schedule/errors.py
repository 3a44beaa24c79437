"""What a primitive says when it can't be applied."""

from __future__ import annotations

from vdla.support.errors import UserError


class ScheduleError(UserError):
    """A primitive doesn't apply; the message names the stage, the loop and both bounds."""
