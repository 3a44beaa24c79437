"""Order within the stream: what an engine could do earlier, it is told earlier.

Two moves, each only past instructions it doesn't conflict with:

* an ALU instruction moves up to what it depends on, so that one virtual thread's results leave
  while the next thread's GEMM runs;
* neighbouring LOADs are sorted by who needs them first, so that a thread's weights don't queue up
  behind the other thread's activations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from vdla.compiler.codegen.vdla.fold import Op, Touch
from vdla.isa.instructions import Alu, Engine, Gemm

WINDOW = 64  # instructions looked at in either direction


def reorder(ops: Sequence[Op]) -> list[Op]:
    """Both moves, ALU first."""
    return sort_loads(hoist_alu(ops))


def hoist_alu(ops: Sequence[Op]) -> list[Op]:
    """Moves each ALU instruction above the GEMMs that it is independent of.

    before  gemm 0 · gemm 1 · rq 0 · rq 1        after  gemm 0 · rq 0 · gemm 1 · rq 1
    """
    result: list[Op] = []
    for op in ops:
        place = len(result)
        if isinstance(op.instruction, Alu):
            place = _highest(op, result)
        result.insert(place, op)
    return result


def sort_loads(ops: Sequence[Op]) -> list[Op]:
    """Sorts each run of LOADs by its first reader.

    before  inp 0 · inp 1 · wgt 0 · wgt 1        after  inp 0 · wgt 0 · inp 1 · wgt 1
    """
    result: list[Op] = []
    for is_load, run in groupby(enumerate(ops), key=lambda p: p[1].instruction.engine == 0):
        members = list(run)
        if is_load and len(members) > 1:
            end = members[-1][0] + 1
            result += _by_reader([op for _, op in members], ops[end : end + WINDOW])
        else:
            result += (op for _, op in members)
    return result


def _by_reader(loads: Sequence[Op], later: Sequence[Op]) -> list[Op]:
    """An insertion sort in which a LOAD never passes one it conflicts with."""
    result: list[tuple[int, Op]] = []
    for load in loads:
        reader, place = _first_reader(load, later), len(result)
        while place and result[place - 1][0] > reader and not conflict(load, result[place - 1][1]):
            place -= 1
        result.insert(place, (reader, load))
    return [op for _, op in result]


def conflict(a: Op, b: Op) -> bool:
    """Whether two instructions touch an entry that at least one of them writes."""
    return any(
        s.space == t.space and (s.write or t.write) and _overlap(s, t)
        for s in a.touches
        for t in b.touches
    )


def span(touch: Touch) -> tuple[int, int]:
    """The lowest and one past the highest entry of a touch."""
    return touch.start, touch.start + sum((n - 1) * step for n, step in touch.dims) + 1


def _overlap(a: Touch, b: Touch) -> bool:
    (low_a, high_a), (low_b, high_b) = span(a), span(b)
    return low_a < high_b and low_b < high_a


def _highest(op: Op, before: Sequence[Op]) -> int:
    """The place just below the last conflict, if that passes a GEMM."""
    best = place = len(before)
    for other in _backwards(before):
        if conflict(op, other):
            break
        place -= 1
        if isinstance(other.instruction, Gemm):
            best = place
    return best


def _backwards(ops: Sequence[Op]) -> Iterator[Op]:
    for i in range(len(ops) - 1, max(len(ops) - 1 - WINDOW, -1), -1):
        yield ops[i]


def _first_reader(load: Op, later: Sequence[Op]) -> int:
    for i, op in enumerate(later):
        if op.instruction.engine != Engine.LOAD and conflict(load, op):
            return i
    return len(later)
