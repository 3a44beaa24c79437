"""Measuring candidates in other processes: their costs, or why there are none.

How a candidate is measured is its target's to say. A process that crashes or hangs costs its
candidate; the search goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic

from vdla.compiler.search.outcomes import AnyOutcome
from vdla.compiler.search.points import Candidate
from vdla.farm.processes import ProcessPool, Resources
from vdla.farm.work import TIMEOUT, Job, JobPool, Limits, Setup
from vdla.support.errors import UserError

CANDIDATE_SECONDS = 20.0  # that one may take


class RefusalError(UserError):
    """A measuring machine that is not the one that the search is for, such as a board of another
    config: no candidate can be measured so, and the search ends."""


class Meter(ABC, Generic[Candidate, AnyOutcome]):
    """Measurement of the candidates of one task; it goes to other processes, as candidates do.

    With ``ALONE`` nothing may run beside a measurement: there is one process, whoever wants more.
    ``MEMORY`` is how many bytes a measurement may take beyond what its process had, as many as
    there are unless a target says so: a device's driver may take addresses for all it has.
    ``needs`` are the resources that a measurement has to itself (:class:`vdla.farm.work.Job`).
    """

    ALONE: ClassVar[bool] = False
    MEMORY: ClassVar[int | None] = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of resources; none unless a target says so."""
        return ()

    @abstractmethod
    def measure(self, candidate: Candidate) -> AnyOutcome:
        """Outcome of a candidate, measured in another process.

        Raises:
            ResourceLost: what it needs doesn't work; the candidate is measured elsewhere.
            RefusalError: what it needs is for another search.
        """

    @abstractmethod
    def lost(self, status: str, note: str) -> AnyOutcome:
        """The outcome of a candidate that no answer came for: a "crash" or a "timeout"."""

    def warm_up(self) -> None:
        """Does what else the first candidate would wait for; here and in every process."""


def local_pool(
    meters: Sequence[Meter[Candidate, AnyOutcome]],
    workers: int,
    resources: Sequence[Resources] = (),
) -> ProcessPool:
    """Processes of this machine that measure, at most so many; or one for each of ``resources``,
    which says what it holds."""
    for meter in meters:
        meter.warm_up()  # into caches, from which the processes take it
    alone = any(meter.ALONE for meter in meters)
    homes = dict.fromkeys(type(meter).__module__ for meter in meters)
    count = len(resources) or (1 if alone else workers)
    return ProcessPool(count, resources, preload=(__name__, *homes))


class Measurer(Generic[Candidate, AnyOutcome]):
    """Measures candidates in a pool.

    Args:
        meters: of the tasks; ``run`` is given the position of one.
        pool: who measures.
        seconds: how long a candidate may take.
    """

    def __init__(
        self,
        meters: Sequence[Meter[Candidate, AnyOutcome]],
        pool: JobPool,
        seconds: float = CANDIDATE_SECONDS,
    ) -> None:
        self.meters, self.pool, self.seconds = tuple(meters), pool, seconds
        self.setup = Setup(_warmed, self.meters)

    def run(self, task: int, candidates: Sequence[Candidate]) -> Iterator[tuple[int, AnyOutcome]]:
        """(position, outcome) of every candidate of a task, as they come in.

        Raises:
            FarmError: nobody has what the task's meter needs.
            RefusalError: what the meter needs is for another search.
        """
        meter = self.meters[task]
        limits = Limits(self.seconds, meter.MEMORY)
        jobs = [Job(_measure, (task, each), self.setup, meter.needs, limits) for each in candidates]
        for position, answer in self.pool.run(jobs):
            if isinstance(answer.value, RefusalError):
                raise answer.value
            if answer.value is not None:
                yield position, answer.value
            else:
                status = TIMEOUT if answer.status == TIMEOUT else "crash"
                yield position, meter.lost(status, answer.note)


def _warmed(
    *meters: Meter[Candidate, AnyOutcome],
) -> Sequence[Meter[Candidate, AnyOutcome]]:
    for meter in meters:
        meter.warm_up()
    return meters


def _measure(
    meters: Sequence[Meter[Candidate, AnyOutcome]], task: int, candidate: Candidate
) -> AnyOutcome | RefusalError:
    """A candidate's outcome, or the error that ends the search: an answer has no room for one."""
    try:
        return meters[task].measure(candidate)
    except RefusalError as error:
        return error
