"""Work that can be shared: pure jobs, and the pool that does them.

    job     a function of a module, its arguments, what it needs, how long it may take
    pool    takes jobs and gives their answers as they come
    answer  a job's value, or why there is none: it crashed, took too long or too much memory

A job's result depends on its arguments alone, so whoever does not hear of one may have it done
again, and of two answers one is as good as the other. All parts of a job can be pickled.

What many jobs share and what is long in making, such as compiled machines, is a job's ``setup``: a
process makes it once, and gives it to the function before the arguments.
"""

from __future__ import annotations

import pickle
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from vdla.support.errors import UserError

T = TypeVar("T")

OK, CRASH, TIMEOUT, MEMORY = "ok", "crash", "timeout", "memory"
LOST = "lost"  # a pool's own status: the job's resource is gone, another may have it


class FarmError(UserError):
    """Work can't be shared as it was wanted."""


class ResourceLost(Exception):
    """A job's resource doesn't work any more: its worker gives it up, and another has the job."""


@dataclass(frozen=True)
class Limits:
    """Limits of a job: ``seconds``, and ``bytes`` of memory beyond what its process had."""

    seconds: float | None = None
    bytes: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Setup:
    """``make(*args)`` is made once per process; equal setups are made once."""

    make: Callable[..., Any]
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Job(Generic[T]):
    """``function(*args)``, or ``function(made, *args)`` with what ``setup`` makes.

    ``needs`` names resources: things such as ``board:ulx3s``, which it has to itself as long as it
    runs (:func:`leased` tells the function which one it has), or what a machine can do, such as
    ``rtl``.
    """

    function: Callable[..., T]
    args: tuple[Any, ...] = ()
    setup: Setup | None = None
    needs: tuple[str, ...] = ()
    limits: Limits = NO_LIMITS


@dataclass(frozen=True)
class Packed:
    """A job as bytes, so that whoever hands it on needs none of its modules.

    ``call`` is (function, arguments), ``setup`` the job's one, compressed, or b"".
    """

    call: bytes
    setup: bytes
    needs: tuple[str, ...]
    limits: Limits


class Packer:
    """Makes bytes of jobs by ``dumps``; of a setup that the job before had, once."""

    def __init__(self, dumps: Callable[[object], bytes] = pickle.dumps) -> None:
        self._dumps = dumps
        self._setup: Setup | None = None
        self._setup_bytes = b""

    def pack(self, job: Job[Any]) -> Packed:
        """A job as bytes."""
        if job.setup is not self._setup:
            self._setup = job.setup
            self._setup_bytes = _compressed(self._dumps(job.setup)) if job.setup else b""
        call = self._dumps((job.function, job.args))
        return Packed(call, self._setup_bytes, job.needs, job.limits)


def _compressed(data: bytes) -> bytes:
    """Fewer bytes, quickly: each job brings its setup along."""
    return zlib.compress(data, level=1)


@dataclass(frozen=True)
class Answer(Generic[T]):
    """Answer to a job: its ``value`` where ``status`` is ok, else ``note`` says why not."""

    value: T | None
    status: str = OK
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status == OK


class JobPool(ABC):
    """Does jobs; use it in a ``with`` statement.

    Jobs are numbered from 0 on in the order in which they were submitted.
    """

    @abstractmethod
    def submit(self, job: Job[Any]) -> int:
        """Takes a job; its number.

        Raises:
            FarmError: nobody has what it needs.
        """

    @abstractmethod
    def answers(self) -> Iterator[tuple[int, Answer[Any]]]:
        """(number, answer) of each job that is out, as they come, until none is.

        Raises:
            FarmError: nobody has any more what a job needs.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Forgets all jobs that are out; those that run are stopped."""

    @abstractmethod
    def close(self) -> None:
        """Cancels all, and lets the processes go."""

    def run(self, jobs: Iterable[Job[T]]) -> Iterator[tuple[int, Answer[T]]]:
        """(position, answer) of each of some jobs, as they come; no others may be out."""
        places = {self.submit(job): place for place, job in enumerate(jobs)}
        for number, answer in self.answers():
            yield places[number], answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# What a job has to itself ------------------------------------------------------------------------

_leased: dict[str, str] = {}


def leased(name: str) -> str:
    """Which resource of that name the job at work has: of ``board:ulx3s``, a serial port."""
    return _leased[name]


def lease(resources: dict[str, str]) -> None:
    """Gives the process at work its resources, by name."""
    _leased.clear()
    _leased.update(resources)
