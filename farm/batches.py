"""Batches of jobs for a farm, and a ledger of the jobs that have no answer yet.

Sending a batch costs some milliseconds, so jobs that are shorter than that go together. The ledger
alone knows which jobs are out: a batch that is lost with its worker or its scheduler is sent again,
and of two answers to a job the first one counts.
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from vdla.farm.work import CRASH, LOST, Answer, Packed

TARGET_SECONDS, LEAST_SECONDS = 0.25, 0.05  # of a batch, where enough jobs wait
PARTS = 4  # batches per process that the last jobs make: some take longer than others
MOST_SECONDS = 1.0  # after which a batch begins no further job
SPARE_BATCHES = 2  # that are out beyond two for each place
MOST_BYTES = 4 << 20  # of the jobs of a batch
DEATHS = 4  # workers that a batch took down until its jobs are suspected


class Disconnected(Exception):
    """The scheduler is gone, and with it what it knew of batches."""


class WorkersDown(Exception):
    """Each worker that had a batch went down with it, ``DEATHS`` times."""


@dataclass(frozen=True)
class Batch:
    """Jobs that one process does one after the other.

    A ``suspect`` is a job alone, which was in a batch that took down its workers.
    """

    numbers: tuple[int, ...]
    jobs: tuple[Packed, ...]
    suspect: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The resources that each of the jobs needs."""
        return self.jobs[0].needs

    def to_bytes(self) -> bytes:
        """The jobs, to be sent; what several have in common is there once."""
        return pickle.dumps(self.jobs)


@dataclass(frozen=True)
class Done:
    """Result of a batch: the answers of its first jobs, and how many seconds they took.

    Values are pickled. Jobs without an answer are left for another batch.
    """

    answers: tuple[Answer[bytes], ...]
    seconds: float


@dataclass(frozen=True)
class _Entry:
    """A job without an answer; jobs of one ``kind`` are supposed to take as long."""

    job: Packed
    kind: str


@dataclass
class _Pace:
    """Number of jobs of one kind that go together: ``most`` at a time, ``least`` even
    if few wait.
    """

    most: int = 1
    least: int = 1

    def learn(self, count: int, seconds: float) -> None:
        """Takes into account how long so many jobs took together."""
        each = max(seconds / count, 1e-9)
        known = max(self.most, 2 * count)  # further than twice of what was seen it won't go
        self.most = min(max(int(TARGET_SECONDS / each), 1), known)
        self.least = ceil(LEAST_SECONDS / each)


class Ledger:
    """Jobs without an answer: those that wait, and those that are out in batches."""

    def __init__(self) -> None:
        self._count = 0
        self._entries: dict[int, _Entry] = {}
        self._waiting: dict[tuple[str, ...], deque[int]] = {}
        self._suspects: deque[int] = deque()
        self._suspect_is_out = False
        self._out: Counter[tuple[str, ...]] = Counter()  # batches, by needs
        self._paces: dict[str, _Pace] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, job: Packed, kind: str) -> int:
        """Takes a job; its number."""
        number = self._count
        self._count += 1
        self._entries[number] = _Entry(job, kind)
        self._waiting.setdefault(job.needs, deque()).append(number)
        return number

    def take(
        self, places: Callable[[tuple[str, ...]], int], more_comes: bool = False
    ) -> Batch | None:
        """The next batch to send; None where none should be sent now.

        Args:
            places: how many batches with some needs can be at work at a time. The last jobs are
                spread over all of them; few more batches are out, so that all can be resent soon.
            more_comes: whether further jobs will be added, so that a batch may wait to fill.
        """
        if self._suspects and not self._suspect_is_out:
            self._suspect_is_out = True
            return self._batch([self._suspects.popleft()], suspect=True)
        for needs, queue in self._waiting.items():
            most_out = 2 * places(needs) + SPARE_BATCHES
            if not queue or self._out[needs] >= most_out:
                continue
            pace = self._paces.setdefault(self._entries[queue[0]].kind, _Pace())
            if more_comes and len(queue) < pace.most:
                continue
            share = ceil(len(queue) / (PARTS * max(places(needs), 1)))
            return self._batch(self._first(queue, min(max(share, pace.least), pace.most)))
        return None

    def settle(self, batch: Batch, done: Done) -> list[tuple[int, Answer[Any]]]:
        """(number, answer) of those jobs of a batch that had none; values are as they were made.

        Jobs whose resource was lost, or that the batch had no time for, wait again.
        """
        self._release(batch)
        result: list[tuple[int, Answer[Any]]] = []
        undone = [number for number in batch.numbers if number in self._entries]
        for number, answer in zip(batch.numbers, done.answers, strict=False):
            if number in self._entries and answer.status != LOST:
                self._paces[self._entries.pop(number).kind].learn(len(done.answers), done.seconds)
                result.append((number, _unpickled(answer)))
        self._wait_again([number for number in undone if number in self._entries])
        return result

    def put_back(self, batch: Batch) -> None:
        """Has the jobs of a batch wait again: it was lost through no fault of theirs."""
        self._release(batch)
        numbers = [number for number in batch.numbers if number in self._entries]
        if batch.suspect:
            self._suspects.extendleft(numbers)
        else:
            self._wait_again(numbers)

    def accuse(self, batch: Batch) -> list[tuple[int, Answer[Any]]]:
        """Says that a batch took down its worker again and again.

        Its jobs are sent alone, one at a time, until it is known which one did it; that one's
        answer is a crash.
        """
        self._release(batch)
        numbers = [number for number in batch.numbers if number in self._entries]
        if not batch.suspect:
            self._suspects.extend(numbers)
            return []
        return self._fail(numbers, f"it took down its worker {DEATHS} times")

    def fail(self, batch: Batch, note: str) -> list[tuple[int, Answer[Any]]]:
        """(number, answer) of each job of a batch that had none: a crash."""
        self._release(batch)
        return self._fail(batch.numbers, note)

    def _fail(self, numbers: Sequence[int], note: str) -> list[tuple[int, Answer[Any]]]:
        had_none = [number for number in numbers if self._entries.pop(number, None)]
        return [(number, Answer(None, CRASH, note)) for number in had_none]

    def clear(self) -> None:
        """Forgets all jobs."""
        self._entries.clear()
        self._waiting.clear()
        self._suspects.clear()
        self._suspect_is_out = False
        self._out.clear()

    def _batch(self, numbers: Sequence[int], suspect: bool = False) -> Batch:
        jobs = tuple(self._entries[number].job for number in numbers)
        result = Batch(tuple(numbers), jobs, suspect)
        self._out[result.needs] += 1
        return result

    def _first(self, queue: deque[int], count: int) -> list[int]:
        """Takes up to so many jobs from a queue: at least one, and no more than ``MOST_BYTES``."""
        result = [queue.popleft()]
        size = len(self._entries[result[0]].job.call)
        while queue and len(result) < count:
            size += len(self._entries[queue[0]].job.call)
            if size > MOST_BYTES:
                break
            result.append(queue.popleft())
        return result

    def _wait_again(self, numbers: Sequence[int]) -> None:
        for number in reversed(numbers):
            needs = self._entries[number].job.needs
            self._waiting.setdefault(needs, deque()).appendleft(number)

    def _release(self, batch: Batch) -> None:
        """Says that a batch isn't out any more."""
        self._out[batch.needs] -= 1
        if batch.suspect:
            self._suspect_is_out = False


def _unpickled(answer: Answer[bytes]) -> Answer[Any]:
    if answer.value is None:
        return answer
    try:
        return Answer(pickle.loads(answer.value))
    except Exception as error:  # a value that pickles and doesn't unpickle
        return Answer(None, CRASH, f"its value: {type(error).__name__}: {error}")
