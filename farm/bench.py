"""Bench at which a worker does jobs: processes, and resources that one job at a time holds."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Sequence

from vdla.farm.batches import MOST_SECONDS, Done
from vdla.farm.processes import ProcessPool
from vdla.farm.work import LOST, Answer, FarmError, Packed

PROCESS = ""  # the name of the resource that a batch holds which needs no other
Lent = tuple[tuple[str, str], ...]  # (name, value) of each resource that a batch holds


def read_resources(texts: Sequence[str]) -> list[tuple[str, str]]:
    """(name, value) of resources that were typed as NAME or NAME=VALUE.

    Raises:
        FarmError: a text is neither.
    """
    result = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or name.split() != [name] or (equals and not value):
            raise FarmError(f"--resource: expected NAME or NAME=VALUE, found {text!r}")
        result.append((name, value))
    return result


class Bench:
    """Does batches of jobs, in as many threads as it is called from.

    A job's process is kept, with what it has made, for the next batch with the same resources.

    Args:
        processes: batches without needs that may be at work at a time.
        resources: (name, value) of each; several may have one name. One without a value is an
            ability, such as ``rtl``, which all jobs may use at a time.
        on_loss: is told the name of a resource that doesn't work any more, and how many are left.
    """

    def __init__(
        self,
        processes: int,
        resources: Sequence[tuple[str, str]] = (),
        on_loss: Callable[[str, int], None] = lambda name, left: None,
    ) -> None:
        self._on_loss = on_loss
        self._free: dict[str, list[str]] = {PROCESS: [str(n) for n in range(processes)]}
        self._abilities = {name: value for name, value in resources if not value}
        for name, value in resources:
            if value:
                self._free.setdefault(name, []).append(value)
        self._count = {name: len(values) for name, values in self._free.items()}
        self._change = threading.Condition()
        self._pools: dict[Lent, ProcessPool] = {}
        self._at_work: dict[str, ProcessPool] = {}  # by the name of the batch
        for number in range(processes):
            self._pool(((PROCESS, str(number)),))  # starts its process

    def do(self, name: str, data: bytes) -> bytes:
        """Does the batch of some name: a pickled ``Done`` for pickled jobs."""
        jobs: tuple[Packed, ...] = pickle.loads(data)
        things = tuple(name for name in jobs[0].needs if name not in self._abilities)
        needs = things or (PROCESS,)
        lent = self._borrow(needs)
        if lent is None:
            return pickle.dumps(_lost(jobs, f"expected {' and '.join(needs)}, found it was lost"))
        pool = self._pool(lent)
        with self._change:
            self._at_work[name] = pool
        try:
            done = self._done(name, jobs, pool)
        except FarmError as error:
            self._give_up(name, lent, jobs[0].needs)
            return pickle.dumps(_lost(jobs, str(error)))
        self._give_back(name, lent)
        return pickle.dumps(done)

    def stop(self, names: Sequence[str]) -> None:
        """Ends the batches of some names, from any thread; nobody waits for them any more."""
        with self._change:
            for name in names:
                if pool := self._at_work.pop(name, None):
                    pool.kill()

    def close(self) -> None:
        """Lets the processes go."""
        for pool in self._pools.values():
            pool.close()

    def _done(self, name: str, jobs: Sequence[Packed], pool: ProcessPool) -> Done:
        """Result of jobs, until time is up; FarmError where their resource was lost."""
        answers: list[Answer[bytes]] = []
        began = time.monotonic()
        for job in jobs:
            if (answers and time.monotonic() > began + MOST_SECONDS) or name not in self._at_work:
                break
            pool.submit_packed(job)
            answers += [answer for _, answer in pool.answers()]
        return Done(tuple(answers), time.monotonic() - began)

    def _pool(self, lent: Lent) -> ProcessPool:
        """The process that holds some resources; only who is lent them asks."""
        if lent not in self._pools:
            self._pools[lent] = ProcessPool(1, [{**self._abilities, **dict(lent)}])
        return self._pools[lent]

    def _borrow(self, names: Sequence[str]) -> Lent | None:
        """One resource of each name, for this thread alone; None where there is none any more.

        Dask sends no more batches than there are resources, but it may have sent one before a
        resource was lost: that one waits for another of the same name.
        """

        def is_decided() -> bool:
            return all(self._free.get(name) for name in names) or self._is_lost(names)

        with self._change:
            self._change.wait_for(is_decided)
            if self._is_lost(names):
                return None
            return tuple((name, self._free[name].pop(0)) for name in names)

    def _is_lost(self, names: Sequence[str]) -> bool:
        return any(not self._count.get(name) for name in names)

    def _give_back(self, name: str, lent: Lent) -> None:
        """Ends a batch; where it was stopped, its process was killed and makes way for another."""
        with self._change:
            if self._at_work.pop(name, None) is None:
                self._pools.pop(lent).close()
            for resource, value in lent:
                self._free[resource].append(value)
            self._change.notify_all()

    def _give_up(self, name: str, lent: Lent, needs: Sequence[str]) -> None:
        """Does without what a batch needed from now on; its process makes way for another."""
        with self._change:
            self._at_work.pop(name, None)
            self._pools.pop(lent).close()
            for each, value in lent:
                if each == PROCESS:
                    self._free[each].append(value)
                else:
                    self._count[each] -= 1
            for each in needs:
                self._abilities.pop(each, None)
            left = {each: self._count.get(each, 0) for each in needs}
            self._change.notify_all()
        for each, count in left.items():
            self._on_loss(each, count)


def _lost(jobs: Sequence[Packed], note: str) -> Done:
    """The answers of jobs that must be done elsewhere."""
    answers: tuple[Answer[bytes], ...] = (Answer(None, LOST, note),) * len(jobs)
    return Done(answers, 0.0)
