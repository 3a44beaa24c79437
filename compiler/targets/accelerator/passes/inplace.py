"""Instructions that work in place get their operand and their result in one buffer.

before                                     after
    q = alloc(vdla.acc)                        (acc alone)
    alu_rq(dst = q[…], x = acc[…])             alu_rq(dst = acc[…], x = acc[…])

That is done where nothing needs the operand any more: this call reads its buffer last, element by
element at the place it writes, and both buffers live equally long. Where it can't be done, code
generation copies the operand first. A call whose operands may change places tries each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from vdla.compiler.targets.accelerator.description.lowering import lowering_of
from vdla.compiler.tir.arith import same
from vdla.compiler.tir.ir import (
    Alloc,
    Buffer,
    BufferRef,
    Evaluate,
    IntrinCall,
    PrimFunc,
    Seq,
    Stmt,
)
from vdla.compiler.tir.visitor import replace_buffer, rewrite, walk


def unify_inplace(func: PrimFunc) -> PrimFunc:
    """Merges result and operand of every call that works in place, where that is sound."""
    body = func.body
    while (values := _next(body)) is not None:
        call, chosen, result, operand = values
        body = replace_buffer(_exchanged(body, call, chosen, result), result, operand)
    return PrimFunc(func.name, func.params, body)


@dataclass(frozen=True)
class _Facts:
    """Calls of a body in their order, and of each buffer the statement that it lives in, and the
    run of Allocs, one directly inside the other, that is its own."""

    calls: list[IntrinCall]
    lives: dict[Buffer, Stmt]
    runs: dict[Buffer, int]

    @classmethod
    def of(cls, body: Stmt) -> _Facts:
        """The facts of one body."""
        result = cls([], {}, {})
        for stmt in walk(body):
            if isinstance(stmt, Evaluate):
                result.calls.append(stmt.call)
            elif isinstance(stmt, Alloc):
                run = result.runs.setdefault(stmt.buffer, len(result.runs))
                result.lives[stmt.buffer] = stmt.body
                if isinstance(stmt.body, Alloc):
                    result.runs[stmt.body.buffer] = run
        return result


def _next(body: Stmt) -> tuple[IntrinCall, IntrinCall, Buffer, Buffer] | None:
    """The next call to merge, as it is and as it is to be, its result and its operand."""
    facts = _Facts.of(body)
    for call in facts.calls:
        name = lowering_of(call.intrin).inplace
        if not name or call.operand(name).buffer is call.operands[0].buffer:
            continue  # nothing is overwritten, or it is in place already
        for form in _forms(call):
            result, operand = form.operands[0], form.operand(name)
            if _mergeable(facts, call, result, operand):
                return call, form, result.buffer, operand.buffer
    return None


def _forms(call: IntrinCall) -> Iterator[IntrinCall]:
    """The call, and the call with its operands changed about where its intrinsic allows that."""
    yield call
    if swaps := call.intrin.laws.swaps:
        other = dict(swaps) | {b: a for a, b in swaps}
        names = [b.name for b in call.intrin.operands]
        refs = tuple(call.operand(other.get(name, name)) for name in names)
        params = {name: call.params[other.get(name, name)] for name in call.params}
        yield replace(call, operands=refs, params=params)


def _mergeable(facts: _Facts, call: IntrinCall, result: BufferRef, operand: BufferRef) -> bool:
    a, b = result.buffer, operand.buffer
    return (
        a is not b
        and (a.shape, a.scope, a.copies) == (b.shape, b.scope, b.copies)
        and all(_aligned(ref, result) for ref in call.operands[1:] if ref.buffer is b)
        and a in facts.runs
        and facts.runs[a] == facts.runs.get(b)
        and all(
            other is call or _precedes(facts.lives[b], other, call)
            for other in facts.calls
            if _reads(other, b)
        )
    )


def _aligned(ref: BufferRef, result: BufferRef) -> bool:
    """Whether an operand is read at the place that is written."""
    return all(same(i, j) for i, j in zip(ref.indices, result.indices, strict=True))


def _calls(body: Stmt) -> Iterator[IntrinCall]:
    return (s.call for s in walk(body) if isinstance(s, Evaluate))


def _reads(call: IntrinCall, buffer: Buffer) -> bool:
    """Whether a call needs what the buffer holds in the end; in place it makes that itself."""
    if call.operands[0].buffer is buffer:
        return False
    return any(ref.buffer is buffer for ref in call.operands[1:])


def _precedes(stmt: Stmt, first: IntrinCall, second: IntrinCall) -> bool:
    """Whether a statement makes one call for the last time before it makes another one: no loop
    inside it has both."""
    if isinstance(stmt, Alloc):
        return _precedes(stmt.body, first, second)
    if not isinstance(stmt, Seq):
        return False
    for step in stmt.stmts:
        made = [each is first for each in _calls(step) if each is first or each is second]
        if made:
            return _precedes(step, first, second) if len(made) > 1 else made[0]
    return False


def _exchanged(body: Stmt, old: IntrinCall, new: IntrinCall, result: Buffer) -> Stmt:
    """The body with one call in another's place, and without the Alloc of its result."""

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Evaluate) and stmt.call is old:
            return Evaluate(new)
        return stmt.body if isinstance(stmt, Alloc) and stmt.buffer is result else stmt

    return rewrite(body, visit)
