"""Reorders the instructions of a stream, so that none waits for another that it doesn't need.

Engines run their instructions in the order of the stream; one that stands too late in it makes
others wait. Two moves, each only past instructions that it doesn't conflict with:

* an ALU instruction moves up to what it depends on, so that one virtual thread's results leave
  while the next thread's GEMM runs;
* LOADs move down to the first instruction that needs them, so that an urgent LOAD doesn't queue up
  behind one that isn't. LOADs still run ahead of what computes: they are in another queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.isa.instructions import Alu, Gemm, Load

WINDOW = 256  # instructions looked at in either direction


def reorder(ops: Sequence[Op]) -> list[Op]:
    """Moves ALU instructions up, then LOADs down: ``sink_loads(hoist_alu(ops))``."""
    return sink_loads(hoist_alu(ops))


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


def sink_loads(ops: Sequence[Op]) -> list[Op]:
    """Moves each LOAD down to the first instruction that needs it; LOADs of one reader keep order.

    before  inp 0 · inp 1 · wgt 0 · gemm 0 · wgt 1 · gemm 1
    after   inp 0 · wgt 0 · gemm 0 · inp 1 · wgt 1 · gemm 1
    """
    result: deque[Op] = deque()
    for op in reversed(ops):
        place = _first_reader(op, result) if isinstance(op.instruction, Load) else 0
        while place and isinstance(result[place - 1].instruction, Load):
            place -= 1
        result.insert(place, op)
    return list(result)


def conflict(a: Op, b: Op) -> bool:
    """Whether two instructions access an entry that at least one of them writes."""
    return any(
        s.space == t.space and (s.write or t.write) and overlap(s, t)
        for s in a.accesses
        for t in b.accesses
    )


def _span(access: Access) -> tuple[int, int]:
    """The lowest and one past the highest entry of a access."""
    return access.start, access.start + sum((n - 1) * step for n, step in access.dims) + 1


def overlap(a: Access, b: Access) -> bool:
    """Whether the spans of two accesses overlap; they may, and yet have no entry in common."""
    (low_a, high_a), (low_b, high_b) = _span(a), _span(b)
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


def _first_reader(load: Op, later: Iterable[Op]) -> int:
    near = islice(later, WINDOW)
    return next((place for place, op in enumerate(near) if conflict(load, op)), 0)
