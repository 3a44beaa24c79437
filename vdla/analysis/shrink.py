"""From a case on which the machines differ to the smallest one that still shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vdla.analysis.case import Case
from vdla.analysis.machines import Difference, Machines, first_difference
from vdla.isa.instructions import Instruction
from vdla.isa.ring import Ring, ring_of
from vdla.sim.checker import check
from vdla.sim.machine import SimulationError
from vdla.sim.trace import tokens


def shrink(machines: Machines, seen: Difference) -> Difference:
    """The smallest case found that still differs, by leaving out instructions and work.

    Each try has a new core, so that what is found doesn't hang on what ran before it. A difference
    that does is given back as it was seen.
    """

    def tried(case: Case) -> Difference | None:
        machines.renew()
        try:
            simulated, rtl = machines.run(case, seen.memory)
        except SimulationError:  # it reads micro-ops while they are loaded
            return None
        result = first_difference(case, simulated, rtl)
        return Difference(case, seen.memory, simulated, rtl, *result) if result else None

    smallest = tried(seen.case)
    if smallest is None:
        return replace(seen, where=f"{seen.where}, only after the programs before it")
    while smaller := next(
        (d for c in _candidates(smallest.case) if _is_fair(c) and (d := tried(c))), None
    ):
        smallest = smaller
    return smallest


def _is_fair(case: Case) -> bool:
    """A program that was sound stays sound, so that its memories are determined."""
    if case.mistake:
        return True
    return not check(case.config, case.stream.instructions, case.dram, case.base)


def _candidates(case: Case) -> Iterator[Case]:
    """Simpler cases, the boldest first."""
    if case.mistake == "opcode":
        return
    stream = list(case.stream.instructions)
    body, tail = stream[:-1], stream[-1:]
    step = len(body)
    while step >= 1:
        for first in range(0, len(body), step):
            left = _without(ring_of(case.config), body, range(first, min(first + step, len(body))))
            yield case.with_instructions([*left, *tail])
        step //= 2
    for i, each in enumerate(body):
        for simpler in _simpler(each):
            yield case.with_instructions([*body[:i], simpler, *body[i + 1 :], *tail])


def _simpler(each: Instruction) -> Iterator[Instruction]:
    """The instruction with one field at its default, or halved."""
    for f in each.fields[1:]:
        value = getattr(each, f.name)
        if f.name.startswith(("pop", "push")) or value == f.default:
            continue
        yield each.replace(**{f.name: f.default})
        if value > 1:
            yield each.replace(**{f.name: value // 2})


def _without(ring: Ring, stream: Sequence[Instruction], gone: range) -> list[Instruction]:
    """A stream less some instructions, and less the other ends of their tokens."""
    changes: dict[int, dict[str, int]] = {}
    for token in tokens(ring, stream):
        if token.giver in gone or token.taker in gone:
            changes.setdefault(token.giver, {})[token.queue.push] = 0
            changes.setdefault(token.taker, {})[token.queue.pop] = 0
    return [each.replace(**changes.get(i, {})) for i, each in enumerate(stream) if i not in gone]
