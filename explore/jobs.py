"""Evaluations as jobs of a pool: pure functions of an evaluator and a design.

The pool's processes, here or on a farm, are given the evaluator, with its imported networks, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from vdla.compiler.targets.accelerator.search.tile_records import TileRecord, TileRecords
from vdla.explore.evaluate import Evaluator, Outcome
from vdla.farm.work import Job, JobPool, Limits, Setup
from vdla.isa.config import Config

SECONDS = 1800.0  # that one design may take: large networks are simulated for minutes

Outcomes = dict[str, Outcome]


@dataclass(frozen=True)
class Evaluations:
    """Evaluates designs in a pool."""

    evaluator: Evaluator
    pool: JobPool

    @cached_property
    def setup(self) -> Setup:
        """Setup that each process is given once."""
        return Setup(_itself, (self.evaluator,))

    def estimates(self, configs: Sequence[Config]) -> Iterator[tuple[int, Outcomes]]:
        """(position, outcomes) of each design by the analytic model, as they come."""
        return self._run([Job(_estimate, (each,), self.setup) for each in configs])

    def exact(
        self, configs: Sequence[Config], records: Sequence[TileRecord] | None = None
    ) -> Iterator[tuple[int, Outcomes]]:
        """(position, outcomes) of each design by its compiled streams, as they come; with
        ``records`` of tuned schedules, by these. A process that dies or takes too long is a
        refusal."""
        limits = Limits(SECONDS)
        known = None if records is None else tuple(records)
        jobs = [Job(_measure, (each, known), self.setup, limits=limits) for each in configs]
        return self._run(jobs)

    def _run(self, jobs: Sequence[Job[Outcomes]]) -> Iterator[tuple[int, Outcomes]]:
        for position, answer in self.pool.run(jobs):
            if answer.value is not None:
                yield position, answer.value
            else:
                lost = Outcome(float("inf"), f"{answer.status}: {answer.note}")
                yield position, dict.fromkeys(self.evaluator.networks.names, lost)


def _itself(evaluator: Evaluator) -> Evaluator:
    return evaluator


def _estimate(evaluator: Evaluator, config: Config) -> Outcomes:
    return evaluator.estimate(config)


def _measure(
    evaluator: Evaluator, config: Config, records: Sequence[TileRecord] | None
) -> Outcomes:
    tuned = None if records is None else TileRecords(lambda: records)
    return evaluator.measure(config, tuned)
