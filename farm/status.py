"""Status of a farm, as its scheduler says: the workers that it has, and the work that it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from vdla.farm.work import FarmError


@dataclass(frozen=True)
class WorkerStatus:
    """One worker: its processes, and its resources as (name, value).

    ``counts`` says how many resources of each name still work.
    """

    name: str
    address: str
    processes: int
    resources: tuple[tuple[str, str], ...]
    counts: Mapping[str, int]
    running: int  # jobs, of the batches that it is at work on

    def places(self, needs: Sequence[str]) -> int:
        """Number of jobs with some needs that it can do at a time."""
        return min((self.processes, *(self.counts.get(name, 0) for name in needs)))


@dataclass(frozen=True)
class Status:
    """A farm: its workers, and its jobs."""

    workers: tuple[WorkerStatus, ...]
    queued: int  # jobs that wait at the scheduler or at a worker
    running: int
    done: int  # since the scheduler was started
    jobs_per_second: float  # over the last seconds

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The status that a scheduler sent."""
        workers = tuple(
            WorkerStatus(**{**each, "resources": tuple(map(tuple, each["resources"]))})
            for each in message["workers"]
        )
        return cls(**{**message, "workers": workers})

    def places(self, needs: Sequence[str]) -> int:
        """Number of jobs with some needs that can run at a time."""
        return sum(worker.places(needs) for worker in self.workers)

    def check(self, needs: Sequence[str], note: str = "") -> None:
        """Raises FarmError where no worker has some resources; ``note`` says since when."""
        if not needs or self.places(needs):
            return
        names = {name for worker in self.workers for name in worker.counts if worker.places([name])}
        actual = ", ".join(sorted(names)) or "no resources"
        because, count = f" ({note})" if note else "", len(self.workers)
        workers = "one worker" if count == 1 else f"{count} workers"
        raise FarmError(
            f"job: expected a worker with {' and '.join(needs)}, found {actual} on the farm's "
            f"{workers}{because}"
        )
