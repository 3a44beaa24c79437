"""The parent of a scheduler or a worker: it starts their process, and again when that ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread

from vdla.farm.work import FarmError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0  # seconds until a process is started again
STOPPING = 10.0  # seconds that a process has to end
JOINED = "joined"  # what a process says first, and then one of these, with a text
DOWN, GONE, REFUSED = "down", "gone", "refused"
Message = tuple[str, str]


class Refusal(FarmError):
    """A farm that won't have this worker: there is no use in trying again."""


class Down(Exception):
    """The farm was taken down: its workers end."""


Say = Callable[[str], None]
Join = Callable[[Say], None]


def supervise(join: Join, say: Say, joined: Say = lambda text: None) -> None:
    """Runs ``join`` in a process, again and again, until the farm is taken down.

    Args:
        join: calls what it is given, with a text, once it is a part of the farm, and works for it.
            It raises Down, Refusal, or another FarmError, after which it is tried again if it had
            ever been a part of the farm.
        say: is told a line whenever the process has ended.
        joined: is told the text, the first time.

    Raises:
        FarmError: the farm can't be joined.
    """
    pause, has_joined = FIRST_PAUSE, False
    while True:
        for kind, text in _life(join):
            if kind == JOINED:
                pause = FIRST_PAUSE
                if not has_joined:
                    joined(text)
                has_joined = True
        if kind == DOWN:
            say("the farm was taken down")
            return
        if kind == REFUSED or not has_joined:
            raise FarmError(text)
        say(f"{text}; trying again in {pause:g} s")
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def stopped_by_signals(run: Callable[[], None]) -> None:
    """Runs something that Ctrl-C and SIGTERM end, as they should."""

    def end(*_: object) -> None:
        raise SystemExit(0)

    before = [(each, signal.signal(each, end)) for each in (signal.SIGINT, signal.SIGTERM)]
    try:
        run()
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def _life(join: Join) -> Iterator[Message]:
    """Messages of a process: that it has joined the farm, if it has, and how it ended.

    It is forked, so what it needs is imported already. All that it starts ends with it.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(join, theirs))
    process.start()
    theirs.close()
    kind = ""
    with ours:
        try:
            while kind in ("", JOINED):
                kind, text = ours.recv()
                yield kind, text
        except EOFError:
            process.join()
            yield GONE, f"its process ended with exit code {process.exitcode}"
        finally:
            _stop(process)


def _work(join: Join, pipe: Connection) -> None:
    """The process's life: it joins the farm, and says how that ended."""
    os.setpgid(0, 0)  # Ctrl-C is for its parent, which ends the group
    Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        join(lambda text: pipe.send((JOINED, text)))
        ending = GONE, "the scheduler is gone"
    except Down:
        ending = DOWN, ""
    except Refusal as error:
        ending = REFUSED, str(error)
    except FarmError as error:
        ending = GONE, str(error)
    with suppress(OSError):  # the parent is gone
        pipe.send(ending)


def _end_with_parent() -> None:
    """Ends this process, and all that it started, when its parent has ended: killed, it ends none.
    What the process does meanwhile doesn't matter, be it that it still waits to join the farm."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)


def _stop(process: BaseProcess) -> None:
    """Ends a process and all that it has started."""
    process.join(0.2)
    if process.is_alive():
        process.terminate()
        process.join(STOPPING)
    with suppress(ProcessLookupError, PermissionError):  # nothing of its group is left
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
