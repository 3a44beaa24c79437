"""This machine, as far as sizes are held against it."""

from __future__ import annotations

import os


def memory_bytes() -> int:
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
