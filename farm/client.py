"""A farm as a pool of jobs: its ledger, its batches, and a connection that may break."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from vdla.farm.address import Address
from vdla.farm.batches import Batch, Disconnected, Done, Ledger, WorkersDown
from vdla.farm.certificates import Credentials
from vdla.farm.dask import Connection
from vdla.farm.pickles import Boxed, dumps
from vdla.farm.status import Status
from vdla.farm.supervisor import Refusal
from vdla.farm.work import LOST, Answer, FarmError, Job, JobPool, Packer

LOOK_SECONDS = 0.5  # between two looks at how many processes a farm has
RETRY_SECONDS, PATIENCE_SECONDS = 0.5, 300.0  # between tries to reach a scheduler; until we give up


class Farm(JobPool):
    """The machines of a farm; it goes on when its scheduler was gone for a while.

    Args:
        address: the scheduler's.
        credentials: a client's.
        say: is told a line when the scheduler is gone or back, or when the farm has no workers.

    Raises:
        FarmError: the farm can't be reached, or it runs another vdla.
    """

    def __init__(
        self,
        address: Address,
        credentials: Credentials | None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._address, self._credentials, self._say = address, credentials, say
        self._ledger, self._packer = Ledger(), Packer(dumps)
        self._out: dict[str, Batch] = {}  # by name
        self._name, self._sent = uuid4().hex[:8], 0
        self._was_empty = False
        self._connection = Connection(address, credentials)
        self._look()

    def submit(self, job: Job[Any]) -> int:
        """Takes a job; its number.

        Raises:
            FarmError: no worker has what it needs, or it can't be pickled.
        """
        if job.needs and not self._status.places(job.needs):
            self.status().check(job.needs)
        name = getattr(job.function, "__qualname__", repr(job.function))
        try:
            packed = self._packer.pack(replace(job, function=Boxed(job.function)))
        except Exception as error:  # whatever the parts of a job raise
            raise FarmError(
                f"job {name}: expected what can be pickled, found {type(error).__name__}: {error}"
            ) from None
        number = self._ledger.add(packed, name)
        self._send(more_comes=True)
        return number

    def answers(self) -> Iterator[tuple[int, Answer[Any]]]:
        """(number, answer) of each job that is out, as they come, until none is.

        Raises:
            FarmError: no worker has any more what a job needs, or the scheduler doesn't come back.
        """
        while len(self._ledger):
            self._send()
            try:
                results = self._connection.results(seconds=1.0)
                if time.monotonic() > self._next_look:
                    self._look()
            except Disconnected:
                self._reconnect()
                continue
            for name, result in results.items():
                if batch := self._out.pop(name, None):  # it wasn't sent again meanwhile
                    yield from self._settle(batch, result)

    def status(self) -> Status:
        """Status of the farm: the workers that it has, and the work that it does now.

        Raises:
            FarmError: the scheduler is gone, and doesn't come back.
        """
        try:
            self._look()
        except Disconnected:
            self._reconnect()
        return self._status

    def cancel(self) -> None:
        """Forgets all jobs that are out; those that run are stopped."""
        self._ledger.clear()
        if self._out:
            self._connection.take_back(list(self._out))
        self._out.clear()

    def close(self) -> None:
        """Cancels all, and leaves the farm."""
        self.cancel()
        self._connection.close()

    def _look(self) -> None:
        """Looks what the farm has."""
        self._status = self._connection.status()
        self._next_look = time.monotonic() + LOOK_SECONDS
        is_empty = not self._status.workers
        if is_empty and not self._was_empty:
            self._say(f"{self._address}: the farm has no workers; jobs wait until one joins")
        self._was_empty = is_empty

    def _send(self, more_comes: bool = False) -> None:
        """Sends the batches that should be out now."""
        while batch := self._ledger.take(self._status.places, more_comes):
            name = f"{self._name}-{self._sent}-{len(batch.numbers)}"
            self._sent += 1
            self._out[name] = batch
            self._connection.send(name, batch)

    def _settle(self, batch: Batch, result: bytes | Exception) -> list[tuple[int, Answer[Any]]]:
        """The new answers of a batch; jobs whose resource was lost are sent elsewhere."""
        if isinstance(result, WorkersDown):
            return self._ledger.accuse(batch)
        if isinstance(result, Exception):
            return self._ledger.fail(batch, f"{type(result).__name__}: {result}")
        done: Done = pickle.loads(result)
        answers = self._ledger.settle(batch, done)
        if note := next((a.note for a in done.answers if a.status == LOST), ""):
            self._recall(batch.needs)
            self.status().check(batch.needs, note)
        return answers

    def _recall(self, needs: Sequence[str]) -> None:
        """Takes back batches that may be with a worker that has lost what they need."""
        names = [name for name, batch in self._out.items() if batch.needs == needs]
        self._connection.take_back(names)
        for name in names:
            self._ledger.put_back(self._out.pop(name))

    def _reconnect(self) -> None:
        """Has all batches wait again, and waits until the scheduler is back."""
        self._say(f"{self._address}: the scheduler is gone; {len(self._ledger)} jobs wait for it")
        self._connection.close()
        for batch in self._out.values():
            self._ledger.put_back(batch)
        self._out.clear()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._try_to_connect(deadline):
            time.sleep(RETRY_SECONDS)
        self._say(f"{self._address}: the scheduler is back")

    def _try_to_connect(self, deadline: float) -> bool:
        """Whether the scheduler is there; its refusal, and silence after a deadline, are raised."""
        try:
            self._connection = Connection(self._address, self._credentials)
            self._look()
        except Refusal:
            raise
        except (FarmError, Disconnected):
            if time.monotonic() > deadline:
                raise
            return False
        return True
