"""Endings of the command: one line on stderr and an exit code, whatever happened.

Codes: 0 done, 1 the thing checked does not hold, 2 the input is wrong or something is missing,
130 interrupted (Ctrl-C), 141 nobody reads the output on (``vdla models | head -1``). Imports the
standard library alone, so that it is there before what takes long to import.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress

from vdla.support.names import printable

FAILED, WRONG, INTERRUPTED, UNREAD = 1, 2, 130, 141
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)  # a write's errors
NO_MEMORY = ("Cannot allocate memory", "failed to map segment")  # of the dynamic linker


def say(text: str, code: int) -> int:
    """Prints a line, and gives the exit code; where stderr can't be written to, the code says it
    all."""
    with suppress(OSError):
        print(f"vdla: {printable(' '.join(text.split()))}", file=sys.stderr)
    return code


def interrupted() -> int:
    """The ending after Ctrl-C, or after OpenBLAS has raised its signal for want of memory."""
    within = _within_limit()
    where = f"; or OpenBLAS has found no memory{within}" if within else ""
    return say(f"interrupted; what was written is whole{where}", INTERRUPTED)


def is_interrupt(error: BaseException) -> bool:
    """Whether an import failed because Ctrl-C came while a library in C was set up."""
    return isinstance(error, ImportError) and isinstance(error.__cause__, KeyboardInterrupt)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether there was no memory: for an array, or for a library to be loaded into."""
    loading = isinstance(error, ImportError) and any(each in str(error) for each in NO_MEMORY)
    return isinstance(error, MemoryError) or loading


def out_of_memory(error: BaseException) -> int:
    """The ending for want of memory."""
    what = str(error).strip() or "an allocation that failed"
    return say(f"expected enough memory{_within_limit()}, found {what}", WRONG)


def _within_limit() -> str:
    """Words about this process's limit of memory; nothing where it has none."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    limited = limit != resource.RLIM_INFINITY
    return f" within the limit of {limit >> 20:,} MiB (ulimit -v)" if limited else ""


def of_usage(error: Exception) -> int:
    """The ending for a wrong option or argument, an error of click's; without a message the help
    was asked for, and is printed already."""
    format_message: Callable[[], str] = getattr(error, "format_message", str)
    if message := " ".join(format_message().split()).rstrip("."):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "vdla"
        say(f"{message}; see {command} --help", WRONG)
    return WRONG


def of_file(error: OSError) -> int:
    """The ending for an error of a file or of stdout, which has no name."""
    if isinstance(error, BrokenPipeError):
        _forget_output()
        return UNREAD
    if error.filename:
        return say(
            f"{error.filename}: expected a file that can be used, found {error.strerror}", WRONG
        )
    if error.errno in FULL:
        _forget_output()
        return say(f"stdout: expected a place to write to, found {error.strerror}", WRONG)
    return say(str(error), WRONG)


def flush_output() -> None:
    """Writes what is left for stdout. Raises OSError where that isn't possible."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _forget_output() -> None:
    """Lets Python end without another try to write to stdout."""
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
