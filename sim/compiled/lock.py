"""One process at a time compiles with numba, which takes a core for half a minute; others wait, and
say so."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vdla.support.progress import report


@contextmanager
def compiling(folder: Path, what: str) -> Iterator[None]:
    """Says that ``what`` is compiled, once no other process with the same cache compiles."""
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(open(folder / "lock", "w"))
        except OSError:  # no home to write to: each process compiles for itself
            pass
        else:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _tell(f"waiting for another process that compiles; then the {what} is compiled")
                fcntl.flock(lock, fcntl.LOCK_EX)
        _tell(f"compiling the {what}, once for these sources")
        yield


def _tell(text: str) -> None:
    """Says it to the listener, else on stderr: a log without a word looks as if nothing went on."""
    if not report(text, 0, 1):
        print(f"vdla: {text}", file=sys.stderr, flush=True)
