"""Measuring candidates in worker processes: their costs, or why there are none.

How a candidate is measured is its target's to say. A worker that crashes or hangs costs its
candidate and is replaced; the search goes on.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import ClassVar, Generic, Self

from vdla.compiler.search.outcomes import AnyOutcome
from vdla.compiler.search.points import Candidate

TIMEOUT = 20.0  # seconds for one candidate, before its worker is replaced
STARTING = 300.0  # seconds until a worker must be ready: it imports what it measures with
READY = "ready"  # what a worker says first: only from then on its candidate's time counts


class Meter(ABC, Generic[Candidate, AnyOutcome]):
    """What measures the candidates of one task; it goes to the workers, as candidates do.

    With ``ALONE`` nothing may run beside a measurement: there is one worker, whoever wants more.
    """

    ALONE: ClassVar[bool] = False

    @abstractmethod
    def measure(self, candidate: Candidate) -> AnyOutcome:
        """What becomes of a candidate, in a worker."""

    @abstractmethod
    def lost(self, status: str, note: str) -> AnyOutcome:
        """The outcome of a candidate that no answer came for: a "crash" or a "timeout"."""

    def warm_up(self) -> None:
        """Does what else the first candidate would wait for; here and in every worker."""


class Measurer(Generic[Candidate, AnyOutcome]):
    """Worker processes that measure candidates; use it in a ``with`` statement.

    Args:
        meters: of the tasks; ``run`` is given the position of one.
        workers: how many processes, at most.
        timeout: seconds a candidate may take.
    """

    def __init__(
        self,
        meters: Sequence[Meter[Candidate, AnyOutcome]],
        workers: int = 2,
        timeout: float = TIMEOUT,
    ) -> None:
        self.meters, self.timeout = meters, timeout
        for meter in meters:
            meter.warm_up()  # into caches, from which the workers take it
        homes = {type(meter).__module__: None for meter in meters}
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([__name__, *homes])
        alone = any(meter.ALONE for meter in meters)
        self.workers = [_Worker(self) for _ in range(1 if alone else workers)]

    def run(self, task: int, candidates: Sequence[Candidate]) -> Iterator[tuple[int, AnyOutcome]]:
        """(position, outcome) of every candidate of a task, as they come in."""
        waiting = deque(range(len(candidates)))
        while waiting or any(w.position is not None for w in self.workers):
            for worker in self.workers:
                if worker.position is None and waiting:
                    worker.start(waiting.popleft(), task, candidates)
            busy = [w for w in self.workers if w.position is not None]
            soonest = min(w.deadline for w in busy) - time.monotonic()
            ready = wait([w.pipe for w in busy], timeout=max(soonest, 0))
            for worker in busy:
                position, outcome = worker.position, None
                if worker.pipe in ready:
                    outcome = worker.receive()
                elif time.monotonic() >= worker.deadline:
                    outcome = worker.lose("timeout", f"not done after {self.timeout:g} s")
                if outcome is not None and position is not None:
                    yield position, outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.stop()


class _Worker(Generic[Candidate, AnyOutcome]):
    """One process and what it is at work on; ``position`` is None while it is idle."""

    def __init__(self, owner: Measurer[Candidate, AnyOutcome]) -> None:
        self.owner = owner
        self.task = 0
        self.position: int | None = None
        self.deadline = 0.0
        self.ready = False
        self._begin()

    def _begin(self) -> None:
        context, self.ready = self.owner.context, False
        self.pipe, theirs = context.Pipe()
        args = (theirs, self.owner.meters)
        self.process = context.Process(target=_serve, args=args, daemon=True)
        self.process.start()
        theirs.close()

    def start(self, position: int, task: int, candidates: Sequence[Candidate]) -> None:
        """Hands over a candidate."""
        self.task, self.position = task, position
        self._count_from_now()
        with suppress(OSError):  # it died while idle: that shows when its answer is read
            self.pipe.send((task, candidates[position]))

    def _count_from_now(self) -> None:
        patience = self.owner.timeout if self.ready else STARTING
        self.deadline = time.monotonic() + patience

    def receive(self) -> AnyOutcome | None:
        """The answer, or that the process died of the candidate; None: it has only now started."""
        try:
            answer: str | AnyOutcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            return self.lose("crash", f"the worker ended with exit code {self.process.exitcode}")
        if isinstance(answer, str):  # READY
            self.ready = True
            self._count_from_now()
            return None
        self.position = None
        return answer

    def lose(self, status: str, note: str) -> AnyOutcome:
        """The outcome of a candidate that crashed or hangs; its process makes way for a new one."""
        self.stop()
        self.position = None
        self._begin()
        return self.owner.meters[self.task].lost(status, note)

    def stop(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, meters: Sequence[Meter[Candidate, AnyOutcome]]) -> None:
    """A worker's life: measures what it is sent until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for meter in meters:
        meter.warm_up()
    with suppress(OSError):  # nobody waits any more: the next line finds out, too
        pipe.send(READY)
    while True:
        try:
            task, candidate = pipe.recv()
        except EOFError:
            return
        try:
            outcome = meters[task].measure(candidate)
        except Exception as error:  # a fault of ours, not of the search: told, and gone on
            outcome = meters[task].lost("crash", f"{type(error).__name__}: {error}")
        try:
            pipe.send(outcome)
        except OSError:
            return
