"""What a primitive says when it can't be applied."""

from __future__ import annotations


class ScheduleError(Exception):
    """A primitive doesn't apply; the message names the stage, the loop and both bounds."""
