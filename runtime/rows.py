"""Rows of a plan: steps that follow one another and are one action of a run.

    row := (Host | Copy | Clear | Jump | Next)*     one call of compiled code
         | Gpu*                                     kernels that are queued together
         | any other step

A row is entered at its first step alone: one that is jumped to from elsewhere begins a row. Jumps
within a row of host steps are the compiled code's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vdla.runtime.calls import Control
from vdla.runtime.plan import Clear, Copy, Gpu, Host, Jump, Next, Plan, Step, targets
from vdla.runtime.pool import numbers

KINDS = {"whole": numbers.COPY, "take": numbers.TAKE, "put": numbers.PUT}
Rows = Sequence[Sequence[int]]  # numbers of steps
Compiled = Host | Copy | Clear | Jump | Next


@dataclass(frozen=True)
class Place:
    """A tensor's place in memory: its address, its bytes, and those of an element along its first
    axis."""

    address: int
    nbytes: int
    element: int


def split(plan: Plan, apart: Collection[int]) -> Rows:
    """The rows of a plan; ``apart`` are numbers of steps before which something else is done."""
    jumps = [(n, each.to) for n, each in enumerate(plan) if isinstance(each, Jump | Next)]
    begins = {*apart, *(targets(plan) - {to for _, to in jumps})}
    while True:
        rows = list(_split(plan, begins))
        row_of = {number: place for place, row in enumerate(rows) for number in row}
        more = {to for n, to in jumps if to < len(plan) and row_of[n] != row_of[to]} - begins
        if not more:
            return rows
        begins |= more


def _split(plan: Plan, begins: Collection[int]) -> Iterator[list[int]]:
    """Rows that begin at some steps, and wherever the kind of steps changes."""
    row: list[int] = []
    for number, step in enumerate(plan):
        if row and (number in begins or not _together(plan[row[-1]], step)):
            yield row
            row = []
        row.append(number)
    if row:
        yield row


def _together(before: Step, step: Step) -> bool:
    """Whether two steps that follow one another may be in a row."""
    return any(isinstance(before, kind) and isinstance(step, kind) for kind in (Compiled, Gpu))


class Exits:
    """The places outside a row of host steps that its jumps lead to.

    Compiled code names a call of the row by its number, and the exits by those behind the last
    call's. ``steps`` are, by exit, the step that comes next, or the loop that did not end.
    """

    def __init__(self, row: Sequence[int]) -> None:
        self.row, self.steps = row, list[int | Next]()

    def number(self, target: int | Next) -> int:
        """The number by which compiled code names a step, or a loop without an end."""
        if isinstance(target, int) and target in self.row:
            return target - self.row[0]
        if target not in self.steps:
            self.steps.append(target)
        return len(self.row) + 1 + self.steps.index(target)

    def target(self, end: int) -> int | Next | None:
        """The place that a run of the row led to; None for the step behind it."""
        return self.steps[end - len(self.row) - 1] if end > len(self.row) else None


def control_of(
    number: int, step: Copy | Clear | Jump | Next, places: Mapping[str, Place], exits: Exits
) -> Control:
    """A step as compiled code takes it; ``places`` are those of the tensors that it names."""
    if isinstance(step, Copy):
        source, target = (places[name] for name in step.args)
        size = source.element if step.way == "take" else source.nbytes
        turn = places[step.turn].address if step.turn else None
        return Control(
            KINDS[step.way], size=size, turn=turn, source=source.address, into=target.address
        )
    if isinstance(step, Clear):
        (target,) = (places[name] for name in step.args)
        return Control(numbers.CLEAR, size=target.nbytes, into=target.address)
    to = exits.number(step.to)
    if isinstance(step, Next):
        end = exits.number(step if step.strict else number + 1)
        turn = places[step.turn].address
        return Control(numbers.NEXT, to=to, end=end, size=step.turns, turn=turn)
    if not step.condition:
        return Control(numbers.JUMP, to=to)
    kind = numbers.WHEN if step.when else numbers.UNLESS
    return Control(kind, to=to, source=places[step.condition].address)
