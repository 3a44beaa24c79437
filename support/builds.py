"""Builds that take long and are done once for the same sources, since the cache folder keeps them.

Each says that it begins and how long the last of its kind took; one process at a time does it, and
the others say that they wait. ``seconds.json`` in the cache folder has what each kind took.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO, TypeVar

from vdla.support.files import cache_folder, write_bytes
from vdla.support.progress import remark

Result = TypeVar("Result")


def build_once(
    kind: str,
    name: str,
    lock: Path,
    ready: Callable[[], Result | None],
    make: Callable[[], Result],
) -> Result:
    """Result that is ready, or else is made now.

    Args:
        kind: what it is, as "RTL": the last of its kind says how long this one may take.
        name: which one, as "config tiny".
        lock: a file that stands for it, in a folder that there is; one that can't be written is no
            lock, and each process makes its own.
        ready: what has been made; None where nothing has.
        make: makes it.
    """
    if (result := ready()) is not None:
        return result
    with _alone(lock, f"waiting for another process that builds the {kind} of {name}{_took(kind)}"):
        if (result := ready()) is not None:
            return result
        remark(f"building the {kind} of {name}, once for these sources{_took(kind)}")
        began = time.monotonic()
        result = make()
        _note(kind, time.monotonic() - began)
        return result


@contextmanager
def _alone(lock: Path, waiting: str) -> Iterator[None]:
    """The block runs while no other process's with the same lock does; says so where it waits."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(lock, "w"))
        except OSError:
            pass
        else:
            _hold(file, waiting)
        yield


def _hold(file: TextIO, waiting: str) -> None:
    """Locks a file; says so where another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        remark(waiting)
        fcntl.flock(file, fcntl.LOCK_EX)


def _took(kind: str) -> str:
    """Time that the last of a kind took, in words; nothing where none is known."""
    seconds = _noted().get(kind)
    return f"; the last one took {max(seconds, 1):.0f} s" if seconds is not None else ""


def _noted() -> dict[str, float]:
    """The seconds of the last of each kind."""
    try:
        value = json.loads(_notes().read_text())
        return {kind: float(seconds) for kind, seconds in value.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _note(kind: str, seconds: float) -> None:
    with suppress(OSError):
        write_bytes(_notes(), json.dumps({**_noted(), kind: round(seconds, 1)}).encode())


def _notes() -> Path:
    return cache_folder("seconds.json")
