"""Every goal of a config, those of endings among them, and what cases have reached of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vdla.analysis.case import Case, Ending, Outcome
from vdla.analysis.cases import faults
from vdla.analysis.coverage.bursts import burst_goals, bursts
from vdla.analysis.coverage.cycles import cause_goals, causes, in_flight, token_goals, tokens
from vdla.analysis.coverage.fields import field_goals, fields
from vdla.analysis.coverage.replay import Replay, hazard_goals
from vdla.analysis.coverage.values import value_goals
from vdla.isa.config import Config


class Coverage:
    """The goals of a config, and those reached."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.goals = frozenset(goals(config))
        self.reached: set[str] = set()
        self._faults = faults(config)
        self._replayed: Case | None = None

    @property
    def missing(self) -> list[str]:
        """Goals that nothing has reached yet."""
        return sorted(self.goals - self.reached)

    def by_group(self) -> dict[str, tuple[int, int]]:
        """Per group, the goals reached and all of them."""
        groups = sorted({goal.partition(":")[0] for goal in self.goals})
        return {
            group: (_of(group, self.reached & self.goals), _of(group, self.goals))
            for group in groups
        }

    def add(self, case: Case, outcome: Outcome) -> None:
        """Ticks off what a case has reached on the simulator."""
        stream = case.stream
        sound = not case.mistake and outcome.ending == Ending.FINISH
        seen = {*causes(self.config, outcome), *self._ending(case, outcome)}
        seen |= {*fields(stream, outcome), *tokens(stream, outcome), *in_flight(stream, outcome)}
        if sound and case is not self._replayed:  # behind any memory it does the same
            self._replayed = case
            seen |= {*bursts(stream), *Replay(case, outcome).seen}
        self.reached |= seen & self.goals

    def _ending(self, case: Case, outcome: Outcome) -> Iterator[str]:
        known = self._faults.get(case.goal)
        if known and outcome.fault == known.fault:
            yield f"endings: {known.fault.name}: {case.goal}"
        if outcome.ending == Ending.DEADLOCK:
            yield "endings: deadlock"
        elif outcome.ending == Ending.FINISH:
            yield "endings: FINISH"


def goals(config: Config) -> Iterator[str]:
    """Everything that programs for a config should reach."""
    yield from field_goals(config)
    yield from value_goals(config)
    yield from hazard_goals(config)
    yield from token_goals(config)
    yield from cause_goals(config)
    for goal, recipe in faults(config).items():
        yield f"endings: {recipe.fault.name}: {goal}"
    yield from ("endings: deadlock", "endings: FINISH")
    yield from burst_goals(config)


def _of(group: str, goals: Iterable[str]) -> int:
    return sum(goal.startswith(f"{group}:") for goal in goals)
