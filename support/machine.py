"""This machine, as far as sizes are held against it."""

from __future__ import annotations

import os
from pathlib import Path


def memory_bytes() -> int:
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def address_space_bytes() -> int | None:
    """The bytes of this process's address space; None where the system doesn't say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
