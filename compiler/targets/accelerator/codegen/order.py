"""Reorders the instructions of a stream, so that none waits for another that it doesn't need.

Engines run their instructions in the order of the stream; one that stands too late in it makes
others wait. Two moves, each only past instructions that it doesn't conflict with:

* an ALU instruction moves up to what it depends on, so that one virtual thread's results leave
  while the next thread's GEMM runs;
* LOADs move down to the first instruction that needs them, so that an urgent LOAD doesn't queue up
  behind one that isn't. LOADs still run ahead of what computes: they are in another queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vdla.compiler.targets.accelerator.codegen.accesses import Numbers, loops_of, starts
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.isa.instructions import Alu, Gemm, Load
from vdla.sim.compiled import compiled, inline

WINDOW = 256  # instructions looked at in either direction


def reorder(ops: Sequence[Op]) -> list[Op]:
    """Moves ALU instructions up, then LOADs down: ``sink_loads(hoist_alu(ops))``."""
    spans = _spans(ops)
    order = np.arange(len(ops))
    return [ops[i] for i in _sunk(_hoisted(order, spans), spans).tolist()]


def hoist_alu(ops: Sequence[Op]) -> list[Op]:
    """Moves each ALU instruction above the GEMMs that it is independent of.

    before  gemm 0 · gemm 1 · rq 0 · rq 1        after  gemm 0 · rq 0 · gemm 1 · rq 1
    """
    return [ops[i] for i in _hoisted(np.arange(len(ops)), _spans(ops)).tolist()]


def sink_loads(ops: Sequence[Op]) -> list[Op]:
    """Moves each LOAD down to the first instruction that needs it; LOADs of one reader keep order.

    before  inp 0 · inp 1 · wgt 0 · gemm 0 · wgt 1 · gemm 1
    after   inp 0 · wgt 0 · gemm 0 · inp 1 · wgt 1 · gemm 1
    """
    return [ops[i] for i in _sunk(np.arange(len(ops)), _spans(ops)).tolist()]


def conflict(a: Op, b: Op) -> bool:
    """Whether two instructions access an entry that at least one of them writes."""
    return any(
        s.space == t.space and (s.write or t.write) and overlap(s, t)
        for s in a.accesses
        for t in b.accesses
    )


def overlap(a: Access, b: Access) -> bool:
    """Whether the spans of two accesses overlap; they may, and yet have no entry in common."""
    return a.start < b.end and b.start < a.end


# Compiled loops over spans ------------------------------------------------------------------------

OTHER, LOAD, GEMM, ALU = range(4)


class _Spans(NamedTuple):
    """Kind of each instruction, and the spans of entries that it accesses.

    ``kind`` is [instruction]; the spans of one begin at ``of`` [instruction + 1]. Of each,
    ``space`` is a number of its memory or tensor, ``write`` 1 where it is written, ``low`` its
    first entry and ``high`` one past its last.
    """

    kind: Numbers
    of: Numbers
    space: Numbers
    write: Numbers
    low: Numbers
    high: Numbers


def _spans(ops: Sequence[Op]) -> _Spans:
    known = [access for op in ops for access in op.accesses]
    kinds = {Load: LOAD, Gemm: GEMM, Alu: ALU}
    numbers: dict[str, int] = {}
    loops, extent, step = loops_of(known)
    reach = np.concatenate([np.zeros(1, np.int64), np.cumsum((extent - 1) * step)])
    low = np.array([access.start for access in known], np.int64)
    return _Spans(
        np.array([kinds.get(type(op.instruction), OTHER) for op in ops], np.int64),
        starts([len(op.accesses) for op in ops]),
        np.array([numbers.setdefault(a.space, len(numbers)) for a in known], np.int64),
        np.array([access.write for access in known], np.int64),
        low,
        low + np.diff(reach[loops]) + 1,
    )


def _hoisted(order: Numbers, spans: _Spans) -> Numbers:
    result = np.zeros_like(order)
    _hoist(order, spans, result)
    return result


def _sunk(order: Numbers, spans: _Spans) -> Numbers:
    result = np.zeros_like(order)
    _sink(order, spans, result)
    return result


@compiled("compiler")
def _hoist(order: Numbers, spans: _Spans, result: Numbers) -> None:
    """Puts one instruction after the other into ``result``, ALU's above those before them."""
    for length in range(len(order)):
        op, place = order[length], length
        if spans.kind[op] == ALU:
            place = _highest(op, result, length, spans)
        for i in range(length, place, -1):
            result[i] = result[i - 1]
        result[place] = op


@compiled("compiler")
def _sink(order: Numbers, spans: _Spans, result: Numbers) -> None:
    """Puts one instruction before the other into ``result``, the last first, LOADs below those
    behind them."""
    for head in range(len(order), 0, -1):
        op, place = order[head - 1], 0
        if spans.kind[op] == LOAD:
            place = _first_reader(op, result, head, spans)
        while place > 0 and spans.kind[result[head + place - 1]] == LOAD:
            place -= 1
        for i in range(head, head + place):
            result[i - 1] = result[i]
        result[head - 1 + place] = op


@inline
def _highest(op: int, before: Numbers, length: int, spans: _Spans) -> int:
    """The place just below the last conflict, if that passes a GEMM."""
    best = place = length
    while place > max(length - WINDOW, 0) and not _clash(op, before[place - 1], spans):
        place -= 1
        if spans.kind[before[place]] == GEMM:
            best = place
    return best


@inline
def _first_reader(load: int, later: Numbers, head: int, spans: _Spans) -> int:
    """Number of instructions behind ``head`` before the first that conflicts with a LOAD."""
    for place in range(min(WINDOW, len(later) - head)):
        if _clash(load, later[head + place], spans):
            return place
    return 0


@inline
def _clash(a: int, b: int, spans: _Spans) -> bool:
    """``conflict``, of instructions by their numbers."""
    for s in range(spans.of[a], spans.of[a + 1]):
        for t in range(spans.of[b], spans.of[b + 1]):
            if (
                spans.space[s] == spans.space[t]
                and (spans.write[s] or spans.write[t])
                and spans.low[s] < spans.high[t]
                and spans.low[t] < spans.high[s]
            ):
                return True
    return False
