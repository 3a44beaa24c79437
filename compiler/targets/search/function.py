"""A function that is to be scheduled: its expression, and how a trace becomes its code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import ClassVar, TypeVar

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step, Trace
from vdla.compiler.search.points import Floats
from vdla.compiler.targets.functions import digest_of
from vdla.compiler.targets.template import AnyScheduled
from vdla.compiler.te import Tensor
from vdla.compiler.te.func import Built
from vdla.compiler.tir.ir import Buffer, PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.lower import written_buffers

CANDIDATE = "candidate"  # what a function is called while it is searched for
F = TypeVar("F", bound="Function")


@dataclass(frozen=True, eq=False)
class Function(ABC):
    """A node's function, to be scheduled in many ways; a target says for what machine.

    ``layers`` are the nodes that have it, ``base`` the steps that every schedule of it begins with:
    those that put the element-wise parts of a fused node in line. It goes to other processes.
    ``FEATURES`` are the names of a schedule's features.
    """

    FEATURES: ClassVar[Sequence[str]]

    layers: tuple[str, ...]
    built: Built
    result: Tensor
    base: tuple[Step, ...]
    template: AnyScheduled | None

    # What a target brings ---------------------------------------------------------------------

    @property
    @abstractmethod
    def machine(self) -> str:
        """Name of the machine that its records are of: those of one machine can be compared."""

    @abstractmethod
    def schedule_default(self, s: Schedule) -> None:
        """Schedules it as it is without any search."""

    @abstractmethod
    def code(self, trace: Sequence[Step]) -> PrimFunc:
        """The function as a trace schedules it, to be compiled.

        Raises:
            ScheduleError: a step doesn't apply.
            NoCodeError: the machine can't hold it.
        """

    @abstractmethod
    def loops(self, trace: Sequence[Step]) -> PrimFunc:
        """The function as cost models see it: as a trace schedules it, without blocks.

        Raises:
            ScheduleError, NoCodeError: as ``code``.
        """

    @abstractmethod
    def features(self, loops: PrimFunc) -> Floats:
        """Features of what ``loops`` gave, in the order of ``FEATURES``."""

    def fits(self, trace: Sequence[Step]) -> bool:
        """Whether the machine can hold what a trace makes, as far as that is soon seen."""
        return True

    @property
    def intrinsics(self) -> Mapping[str, TensorIntrin]:
        """The machine's own instructions that steps may name."""
        return {}

    # What all have ----------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """Digest that its records are found by."""
        return digest_of(self.schedule().mod)

    def schedule(self, trace: Sequence[Step] = ()) -> Schedule:
        """A new schedule, with some steps applied behind the base.

        Raises:
            ScheduleError: a step doesn't apply.
        """
        s = Schedule(self.built)
        s.replay([*self.base, *trace], self.intrinsics)
        return s

    @property
    def params(self) -> Sequence[Buffer]:
        """Buffers that it takes, in order; the result is the last."""
        return self.schedule().mod.params

    @cached_property
    def operations(self) -> int:
        """Number of values that it computes, every step of a reduction counted."""
        s = self.schedule()
        return sum(
            prod(stage.extent(axis) for axis in stage.leaf_iter_vars) for stage in s.stages.values()
        )

    @cached_property
    def default(self) -> Trace:
        """The steps of the schedule that it has without any search."""
        s = self.schedule()
        self.schedule_default(s)
        return s.trace[len(self.base) :]


def distinct(functions: Iterable[F]) -> list[F]:
    """Functions that differ, in order; each has the layers of all that are equal to it."""
    by_digest: dict[str, F] = {}
    for function in functions:
        first = by_digest.get(function.digest)
        if first is not None:
            function = replace(first, layers=(*first.layers, *function.layers))
        by_digest[function.digest] = function
    return list(by_digest.values())


def result_of(built: Built) -> tuple[str, Tensor]:
    """The name of the one result of a user's kernel, and its tensor.

    Raises:
        ScheduleError: it has several results.
    """
    written = written_buffers(built.func.body)
    results = [p for p in built.func.params if p in written]
    if len(results) != 1:
        names = ", ".join(p.name for p in results)
        raise ScheduleError(f"kernel: expected one result, found {names}")
    (result,) = (t for t, b in built.buffers.items() if b is results[0] and t.op is not None)
    return results[0].name, result
