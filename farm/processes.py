"""A pool of processes of this machine, each with a job at a time and what resources it holds.

A process that crashes, takes too long or too much memory costs its job and is replaced. One whose
resource is lost goes on without it, and its job is done by another that has one.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from typing import Any

from vdla.farm import serve
from vdla.farm.work import (
    CRASH,
    LOST,
    MEMORY,
    TIMEOUT,
    Answer,
    FarmError,
    Job,
    JobPool,
    Packed,
    Packer,
)

STARTING = 300.0  # seconds until a process must have made its job's setup: it imports modules first
KILLED = -9  # the exit code of a process that the system kills for its memory

Resources = Mapping[str, str]  # by name; which one of that name, or ""


class ProcessPool(JobPool):
    """Some processes of this machine.

    Args:
        workers: how many; one for each of ``resources`` unless given.
        resources: what each process holds; those behind the last hold none.
        preload: modules that jobs need, imported once for all processes.
    """

    def __init__(
        self,
        workers: int | None = None,
        resources: Sequence[Resources] = (),
        preload: Iterable[str] = (),
    ) -> None:
        count = max(len(resources), 1) if workers is None else workers
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([serve.__name__, *preload])
        held = (*resources, *({} for _ in range(count - len(resources))))
        self._workers = [_Worker(context, each) for each in held[:count]]
        self._waiting: deque[tuple[int, Packed]] = deque()
        self._count = 0
        self._packer = Packer()

    def submit(self, job: Job[Any]) -> int:
        """Takes a job; its number.

        Raises:
            FarmError: no process holds what it needs.
        """
        return self.submit_packed(self._packer.pack(job))

    def submit_packed(self, job: Packed) -> int:
        """Takes a job that is pickled already; its number.

        Raises:
            FarmError: no process holds what it needs.
        """
        self._check(job)
        self._waiting.append((self._count, job))
        self._count += 1
        return self._count - 1

    def answers(self) -> Iterator[tuple[int, Answer[Any]]]:
        """(number, answer) of each job that is out, as they come, until none is.

        Raises:
            FarmError: no process holds any more what a job needs.
        """
        while self._hand_out():
            busy = [worker for worker in self._workers if worker.job is not None]
            soonest = min(worker.deadline for worker in busy)
            patience = None if soonest == inf else max(soonest - time.monotonic(), 0)
            ready = wait([worker.pipe for worker in busy], timeout=patience)
            for worker in busy:
                number, job = worker.work
                answer = worker.look(worker.pipe in ready)
                if answer is None:
                    continue
                if answer.status == LOST:
                    worker.resources = {}
                    self._waiting.appendleft((number, job))
                    self._check(job, answer.note)
                else:
                    yield number, answer

    def cancel(self) -> None:
        """Forgets all jobs that are out; those that run are stopped."""
        self._waiting.clear()
        for worker in self._workers:
            if worker.job is not None:
                worker.replace()

    def close(self) -> None:
        """Cancels all, and lets the processes go."""
        self._waiting.clear()
        for worker in self._workers:
            worker.stop()

    def kill(self) -> None:
        """Ends the processes, from any thread: jobs at work are answered as crashes."""
        for worker in self._workers:
            worker.process.kill()

    def _check(self, job: Packed, note: str = "") -> None:
        """Raises FarmError where no process holds what a job needs; ``note`` says since when."""
        if any(worker.holds(job.needs) for worker in self._workers):
            return
        names = sorted({name for worker in self._workers for name in worker.resources})
        actual = ", ".join(names) or "no resources"
        wanted = " and ".join(job.needs)
        because = f" ({note})" if note else ""
        raise FarmError(f"job: expected a process with {wanted}, found {actual}{because}")

    def _hand_out(self) -> bool:
        """Gives waiting jobs to idle processes that hold what they need; whether any is at work."""
        for worker in self._workers:
            if worker.job is None:
                fitting = (entry for entry in self._waiting if worker.holds(entry[1].needs))
                entry = next(fitting, None)
                if entry is not None:
                    self._waiting.remove(entry)
                    worker.begin(*entry)
        return any(worker.job is not None for worker in self._workers)


class _Worker:
    """One process and the job that it is at work on; ``job`` is None while it is idle."""

    def __init__(self, context: ForkServerContext, resources: Resources) -> None:
        self.context, self.resources = context, dict(resources)
        self.number = 0
        self.job: Packed | None = None
        self._wait_for(None)
        self._start()

    @property
    def work(self) -> tuple[int, Packed]:
        """The number and the job that it is at work on."""
        assert self.job is not None
        return self.number, self.job

    def holds(self, needs: Sequence[str]) -> bool:
        """Whether it has some resources."""
        return self.resources.keys() >= set(needs)

    def begin(self, number: int, job: Packed) -> None:
        """Hands over a job."""
        self.number, self.job = number, job
        self._wait_for(STARTING)
        with suppress(OSError):  # it died while idle: that shows when its answer is read
            self.pipe.send((job, {name: self.resources[name] for name in job.needs}))

    def look(self, ready: bool) -> Answer[Any] | None:
        """The job's answer, which may be that it took too long; None as long as there is none."""
        if ready:
            return self._receive()
        if time.monotonic() < self.deadline:
            return None
        return self._lose(TIMEOUT, f"not done after {self.seconds:g} s")

    def replace(self) -> None:
        """Ends the process, and starts another."""
        self.stop()
        self._start()

    def stop(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.job = None

    def _start(self) -> None:
        self.pipe: Connection
        self.pipe, theirs = self.context.Pipe()
        self.process = self.context.Process(target=serve.serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def _wait_for(self, seconds: float | None) -> None:
        """Has the process so much time from now on; None: as long as it takes."""
        self.seconds = seconds
        self.deadline = inf if seconds is None else time.monotonic() + seconds

    def _receive(self) -> Answer[Any] | None:
        try:
            message: str | Answer[Any] = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            code = self.process.exitcode
            memory = " (out of memory?)" if code == KILLED else ""
            return self._lose(CRASH, f"the process ended with exit code {code}{memory}")
        if isinstance(message, str):  # BEGUN
            self._wait_for(self.work[1].limits.seconds)
            return None
        if message.status == MEMORY:
            self.replace()  # what is left of it may be in pieces
        self.job = None
        return message

    def _lose(self, status: str, note: str) -> Answer[Any]:
        """The answer of a job that its process didn't give, which makes way for another one."""
        self.replace()
        return Answer(None, status, note)
