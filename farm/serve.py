"""Work of a pool's process: jobs, one after the other, until nobody sends any more.

It gets each job with what it has to itself, says ``BEGUN`` when the job's setup is made, and then
gives the answer.
"""

from __future__ import annotations

import pickle
import resource
import signal
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from vdla.farm.work import CRASH, LOST, MEMORY, Answer, Packed, ResourceLost, lease
from vdla.support.errors import UserError
from vdla.support.machine import address_space_bytes

BEGUN = "begun"  # from then on a job's time counts
SETUPS = 4  # that are kept: the newest


def serve(pipe: Connection) -> None:
    """Does what comes through a pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool ends its processes
    made: dict[bytes, Any] = {}
    while True:
        try:
            job, resources = pipe.recv()
        except EOFError:
            return
        with suppress(OSError):  # nobody waits any more: the next line finds out, too
            _send(pipe, _answer(pipe, job, resources, made))


def _answer(
    pipe: Connection, job: Packed, resources: dict[str, str], made: dict[bytes, Any]
) -> Answer[Any]:
    """Answer to a job."""
    lease(resources)
    try:
        first = (_made(job.setup, made),) if job.setup else ()
        function, args = pickle.loads(job.call)
        pipe.send(BEGUN)
        with _limited(job.limits.bytes):
            return Answer(function(*first, *args))
    except ResourceLost as error:
        return Answer(None, LOST if job.needs else CRASH, str(error))
    except MemoryError:
        most = f"{job.limits.bytes:,} bytes" if job.limits.bytes else "there is"
        return Answer(None, MEMORY, f"it took more memory than {most}")
    except UserError as error:
        return Answer(None, CRASH, str(error))
    except Exception as error:  # a fault of the job: said, and gone on
        return Answer(None, CRASH, f"{type(error).__name__}: {error}")


def _made(setup: bytes, made: dict[bytes, Any]) -> object:
    """Object that a setup makes; the newest few are kept."""
    if setup not in made:
        while len(made) >= SETUPS:
            del made[next(iter(made))]
        each = pickle.loads(zlib.decompress(setup))
        made[setup] = each.make(*each.args)
    return made[setup]


def _send(pipe: Connection, answer: Answer[Any]) -> None:
    """Gives an answer; why not, where its value can't be pickled."""
    try:
        data = pickle.dumps(answer)
    except Exception as error:
        data = pickle.dumps(Answer(None, CRASH, f"its value: {type(error).__name__}: {error}"))
    pipe.send_bytes(data)


@contextmanager
def _limited(extra: int | None) -> Iterator[None]:
    """Lets the process take so many bytes of memory beyond those that it has."""
    now = address_space_bytes() if extra is not None else None
    if extra is None or now is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + extra, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
