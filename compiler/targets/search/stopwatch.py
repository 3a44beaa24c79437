"""Time that a scheduled function takes, beside the default schedule, in one of the workers.

Both run in turns, on the same arrays, and the shortest run of each counts: what else happens on the
machine makes some runs longer and none shorter. Where the default schedule is slower than it once
was, the spell is slow: they run on, up to a limit, until it isn't. The cost is the ratio, with the
default schedule's shortest time of all, so that no slow spell flatters a candidate. A result other
than the default schedule's is an error of ours, and told as an illegal schedule.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step, Trace
from vdla.compiler.search.measurer import Meter
from vdla.compiler.search.outcomes import Outcome
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.search.function import Function
from vdla.compiler.tir.ir import Buffer

ROUNDS = 7  # in which both run
SETS = 6  # of rounds, at most
CALM = 1.05  # times its shortest time: the default schedule takes no longer in a calm spell
ROUND_SECONDS = 2e-3  # that each runs in a round, at least; what is shorter runs several times
HOPELESS = 3.0  # times the default schedule's time: a candidate that takes longer is run once
ALIKE = 1e-4  # of the largest result, by which another order of sums may differ

Array = NDArray[np.generic]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class Timing(Outcome):
    """An outcome with seconds: the shortest run, the default schedule's, and by what part of the
    shortest the median is longer."""

    seconds: float | None = None
    reference: float | None = None
    spread: float | None = None

    @property
    def cost(self) -> float:
        """The time over the default schedule's; infinity where there is none."""
        if self.seconds is None or self.reference is None:
            return float("inf")
        return self.seconds / self.reference


class Runner(Protocol):
    """A function as a machine runs it, on arrays that it was given."""

    def run(self) -> None:
        """Runs it once, to its end."""
        ...

    def result(self) -> Array:
        """Result of the last run."""
        ...


@dataclass(frozen=True, eq=False)
class Stopwatch(Meter[Trace, Timing], Generic[F]):
    """Stopwatch of schedules of a function; two at a time would slow each other down.

    ``threads`` is how many of the processor's share the loops of a schedule. ``needs`` are the
    resources of a farm's worker that times it, so that all schedules run on one kind of machine.
    """

    ALONE: ClassVar[bool] = True

    function: F
    threads: int = 1
    needs: tuple[str, ...] = ()

    @abstractmethod
    def runner(self, trace: Sequence[Step], arrays: Sequence[Array]) -> Runner:
        """The function as a trace schedules it, compiled, on one array per parameter.

        Raises:
            ScheduleError: a step doesn't apply.
            NoCodeError: the machine can't hold it.
        """

    def measure(self, candidate: Trace) -> Timing:
        """Compiles a schedule, compares its result and times it."""
        reference = _reference(self)
        try:
            own = self.runner(candidate, reference.arrays)
        except (ScheduleError, NoCodeError) as error:
            return Timing("illegal", str(error))
        own.run()
        if not alike(own.result(), reference.wanted):
            return Timing("illegal", "its result differs from the default schedule's")
        ours = [_seconds(own.run, 1)]
        if ours[0] > HOPELESS * reference.seconds:
            return Timing("ok", seconds=ours[0], reference=reference.seconds, spread=0.0)
        for _ in range(SETS):
            more, theirs = in_turns(own.run, reference.runner.run)
            ours += more
            calm = min(theirs) <= CALM * reference.seconds
            reference.seconds = min(reference.seconds, *theirs)
            if calm:
                break
        spread = median(ours) / min(ours) - 1
        return Timing("ok", seconds=min(ours), reference=reference.seconds, spread=spread)

    def lost(self, status: str, note: str) -> Timing:
        """The outcome of a schedule that no answer came for."""
        return Timing(status, note)


@dataclass
class Reference:
    """A function as it is without any search, arrays for it, its result, its shortest time yet."""

    runner: Runner
    arrays: list[Array]
    wanted: Array
    seconds: float


@lru_cache(maxsize=64)
def _reference(stopwatch: Stopwatch[Any]) -> Reference:
    """The default schedule of a stopwatch's function, timed as long as a candidate at most."""
    function, rng = stopwatch.function, np.random.default_rng(0)
    arrays = [random_array(p, rng) for p in function.params]
    runner = stopwatch.runner(function.default, arrays)
    runner.run()
    wanted = runner.result().copy()
    times = [min(in_turns(runner.run)[0]) for _ in range(SETS)]
    return Reference(runner, arrays, wanted, min(times))


def random_array(param: Buffer, rng: np.random.Generator) -> Array:
    """Any floats around 0, any integers within what the parameter promises."""
    kind, shape = np.dtype(param.dtype), param.shape
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(kind)
    if kind.kind not in "iu":
        return rng.standard_normal(shape).astype(kind)
    info = np.iinfo(kind)
    low, high = param.value_range or (max(info.min, -128), min(info.max, 127))
    return rng.integers(low, high, shape, endpoint=True).astype(kind)


def alike(actual: Array, wanted: Array) -> bool:
    """Whether results are equal; of floats, to rounding."""
    if actual.dtype.kind != "f":
        return bool(np.array_equal(actual, wanted))
    most = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1e-30)
    return bool(np.allclose(actual, wanted, rtol=0, atol=ALIKE * most, equal_nan=True))


def in_turns(*which: Callable[[], object]) -> list[list[float]]:
    """Seconds of one run of each, one per round; all run in each round."""
    times = [_seconds(one, 1) for one in which]
    counts = [max(1, round(ROUND_SECONDS / max(seconds, 1e-7))) for seconds in times]
    rounds = [[_seconds(*each) for each in zip(which, counts, strict=True)] for _ in range(ROUNDS)]
    return [list(column) for column in zip(*rounds, strict=True)]


def _seconds(one: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        one()
    return (time.perf_counter() - start) / count
