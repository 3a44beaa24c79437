"""Instructions that work in place get their operand and their result in one buffer.

before                                     after
    q = alloc(vdla.acc)                        (acc alone)
    alu_rq(dst = q[…], x = acc[…])             alu_rq(dst = acc[…], x = acc[…])

That is done where nothing needs the operand any more: this call reads its buffer last, element by
element at the place it writes, and both buffers live equally long. Where it can't be done, code
generation copies the operand first. A call whose operands may change places tries each.
"""

from __future__ import annotations

from collections import defaultdict
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
from vdla.compiler.tir.visitor import rewrite, walk


def unify_inplace(func: PrimFunc) -> PrimFunc:
    """Merges result and operand of every call that works in place, where that is sound."""
    facts = _Facts.of(func.body)
    while (values := facts.next()) is not None:
        facts.merge(*values)
    return PrimFunc(func.name, func.params, facts.merged(func.body))


@dataclass(frozen=True)
class _Facts:
    """Facts of a body: its calls in their order, and of each buffer the statement that it lives in,
    and the run of Allocs, one directly inside the other, that is its own.

    Attributes:
        forms: calls as they are to be, by those of the body.
        users: the calls of the body that touch a buffer.
        homes: buffers in whose place another one is used.
    """

    forms: dict[IntrinCall, IntrinCall]
    users: dict[Buffer, list[IntrinCall]]
    lives: dict[Buffer, Stmt]
    runs: dict[Buffer, int]
    homes: dict[Buffer, Buffer]

    @classmethod
    def of(cls, body: Stmt) -> _Facts:
        """The facts of one body."""
        result = cls({}, defaultdict(list), {}, {}, {})
        for stmt in walk(body):
            if isinstance(stmt, Evaluate):
                result.forms[stmt.call] = stmt.call
                for buffer in {ref.buffer for ref in stmt.call.operands}:
                    result.users[buffer].append(stmt.call)
            elif isinstance(stmt, Alloc):
                run = result.runs.setdefault(stmt.buffer, len(result.runs))
                result.lives[stmt.buffer] = stmt.body
                if isinstance(stmt.body, Alloc):
                    result.runs[stmt.body.buffer] = run
        return result

    def next(self) -> tuple[IntrinCall, IntrinCall, str] | None:
        """The next call to merge, as the body has it and as it is to be, and its operand's name."""
        for call, now in self.forms.items():
            name = lowering_of(now.intrin).inplace
            if not name or now.operand(name).buffer is now.operands[0].buffer:
                continue  # nothing is overwritten, or it is in place already
            for form in _forms(now):
                if self._mergeable(call, form, form.operand(name)):
                    return call, form, name
        return None

    def merge(self, call: IntrinCall, form: IntrinCall, name: str) -> None:
        """Has a call, and all others, use its operand in the place of its result."""
        result, operand = form.operands[0].buffer, form.operand(name).buffer
        self.forms[call] = form
        for user in (users := self.users.pop(result)):
            refs = (
                replace(ref, buffer=operand) if ref.buffer is result else ref
                for ref in self.forms[user].operands
            )
            self.forms[user] = replace(self.forms[user], operands=tuple(refs))
        self.users[operand] = list(dict.fromkeys([*self.users[operand], *users]))
        self.homes[result] = operand

    def merged(self, body: Stmt) -> Stmt:
        """The body with the calls as they are to be, and without the Allocs of results that are
        merged."""

        def visit(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Evaluate) and self.forms[stmt.call] is not stmt.call:
                return Evaluate(self.forms[stmt.call])
            return stmt.body if isinstance(stmt, Alloc) and stmt.buffer in self.homes else stmt

        return rewrite(body, visit) if self.homes else body

    def _mergeable(self, call: IntrinCall, form: IntrinCall, operand: BufferRef) -> bool:
        """Whether a call of the body, in a form, may write its result over an operand."""
        result = form.operands[0]
        a, b = result.buffer, operand.buffer
        return (
            a is not b
            and (a.shape, a.scope, a.copies) == (b.shape, b.scope, b.copies)
            and all(_aligned(ref, result) for ref in form.operands[1:] if ref.buffer is b)
            and a in self.runs
            and self.runs[a] == self.runs.get(b)
            and all(
                other is call or _precedes(self.lives[b], other, call)
                for other in self.users[b]
                if _reads(self.forms[other], b)
            )
        )


def _forms(call: IntrinCall) -> Iterator[IntrinCall]:
    """The call, and the call with its operands changed about where its intrinsic allows that."""
    yield call
    if swaps := call.intrin.laws.swaps:
        other = dict(swaps) | {b: a for a, b in swaps}
        names = [b.name for b in call.intrin.operands]
        refs = tuple(call.operand(other.get(name, name)) for name in names)
        params = {name: call.params[other.get(name, name)] for name in call.params}
        yield replace(call, operands=refs, params=params)


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
