"""A worker's parent: it starts the process that does the work, and starts it again when it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

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


Join = Callable[[Callable[[], None]], None]


def supervise(join: Join, say: Callable[[str], None]) -> None:
    """Runs ``join`` in a process, again and again, until the farm is taken down.

    Args:
        join: calls what it is given once it has joined the farm, and works for it. It raises Down,
            Refusal, or another FarmError, after which it is tried again if it had ever joined.
        say: is told a line whenever the process has ended.

    Raises:
        FarmError: the farm can't be joined.
    """
    pause, has_joined = FIRST_PAUSE, False
    while True:
        joined, (ending, text) = _life(join)
        if ending == DOWN:
            say("the farm was taken down")
            return
        if joined:
            pause, has_joined = FIRST_PAUSE, True
        if ending == REFUSED or not has_joined:
            raise FarmError(text)
        say(f"{text}; trying again in {pause:g} s")
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _life(join: Join) -> tuple[bool, Message]:
    """Whether a process joined the farm, and how it ended.

    It is forked, so what it needs is imported already. All that it starts ends with it.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(join, theirs))
    process.start()
    theirs.close()
    with ours:
        try:
            return _heard(process, ours)
        finally:
            _stop(process)


def _work(join: Join, pipe: Connection) -> None:
    """The process's life: it joins the farm, and says how that ended."""
    os.setpgid(0, 0)  # Ctrl-C is for its parent, which ends the group
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        join(lambda: pipe.send((JOINED, "")))
        ending = GONE, "the scheduler is gone"
    except Down:
        ending = DOWN, ""
    except Refusal as error:
        ending = REFUSED, str(error)
    except FarmError as error:
        ending = GONE, str(error)
    with suppress(OSError):  # the parent is gone
        pipe.send(ending)


def _heard(process: BaseProcess, pipe: Connection) -> tuple[bool, Message]:
    """Whether a process said that it joined the farm, and the last that it said."""
    joined = False
    while True:
        try:
            message: Message = pipe.recv()
        except EOFError:
            process.join()
            text = f"the worker's process ended with exit code {process.exitcode}"
            return joined, (GONE, text)
        if message[0] != JOINED:
            return joined, message
        joined = True


def _stop(process: BaseProcess) -> None:
    """Ends a process and all that it has started."""
    process.join(0.2)
    if process.is_alive():
        process.terminate()
        process.join(STOPPING)
    with suppress(ProcessLookupError, PermissionError):  # nothing of its group is left
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
