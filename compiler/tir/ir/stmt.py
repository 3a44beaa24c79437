"""Statements, and the function that they are the body of.

Grammar::

    PrimFunc  ::= PrimFunc(name, params: Buffer*, body: Stmt)

    Stmt      ::= For(var, extent: int, kind, body, thread_tag, annotations)
                    kind: serial | parallel | vectorized | unrolled | thread | vthread
                | Block(name, iters: BlockIter*, reads: Region*, writes: Region*,
                        body, init: Stmt | None, predicate: Expr)
                | Alloc(buffer, body)
                | Store(buffer, indices: Expr*, value)
                | If(cond, then, orelse: Stmt | None)
                | Seq(stmts: Stmt*)
                | Evaluate(call: IntrinCall)
                | Prefetch(region: Region)
                | Barrier()
    BlockIter ::= BlockIter(var, extent: int, kind: spatial | reduce, binding: Expr)
    Region    ::= BufferRegion(buffer, ranges: (low: Expr, extent: int)*)
    IntrinCall::= IntrinCall(intrin, operands: BufferRef*, params: {name: Expr}, first: Expr | None)

Rules of meaning:

- A loop runs its variable over 0 .. extent-1. Every loop variable is an int32 and is bound once.
- The steps of a parallel or vectorized loop don't depend on each other, and may run in any order or
  at the same time.
- A vthread loop with the annotation ``threads`` deals its steps to that many virtual threads in
  turn; without it each step is a thread.
- A thread loop's steps run in any order or at the same time: those of ``blockIdx.x`` … are groups,
  those of ``threadIdx.x`` … threads of a group. A schedule may hold several loops of one tag, also
  one inside another: each step of the outer one then runs all steps of the inner one.
- A Barrier stands where there is one loop of each tag at most around it, those of ``threadIdx.x`` …
  directly inside one another: all threads of a group reach it before any of them goes on. Inside
  them it is in serial and unrolled loops alone, and under no condition that may differ from thread
  to thread.
- A Block runs its body for the values its iterators are bound to, if its predicate (over the
  enclosing loops) holds. Its init runs first whenever every reduce iterator is 0. The body may
  mention the iterators and also the loops around the block.
- Regions are boxes of elements that cover every access of the block. They speak of the block's
  iterators and of the loops around it.
- A Prefetch changes nothing; its region may leave the buffer.
- An IntrinCall does what its intrinsic's behaviour says on the elements from each operand's lowest
  corner on; ``first`` is the condition under which the behaviour's init runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vdla.compiler.tir.ir.buffer import Buffer
from vdla.compiler.tir.ir.expr import TRUE, Expr, Var
from vdla.compiler.tir.ir.intrin import TensorIntrin

BLOCK_TAGS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")  # the tags of loops over a grid's groups
THREAD_TAGS = ("threadIdx.x", "threadIdx.y", "threadIdx.z")  # and over a group's threads
THREADS = "threads"  # annotation of a vthread loop: how many threads its steps are dealt to
LOOP_KINDS = ("serial", "parallel", "vectorized", "unrolled", "thread", "vthread")

Pragma = int | float | str | bool


class Stmt:
    """Base of statements; a statement is equal only to itself."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """A loop that runs its variable over 0 to ``extent - 1``.

    Attributes:
        var: the loop's variable, an int32.
        extent: how many steps.
        kind: one of ``LOOP_KINDS``; how the steps may run.
        body: what a step does.
        thread_tag: which threads the steps are, where ``kind`` is ``"thread"`` or ``"vthread"``.
        annotations: notes by key, for passes.
    """

    var: Var
    extent: int
    kind: str
    body: Stmt
    thread_tag: str = ""
    annotations: tuple[tuple[str, Pragma], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BlockIter:
    """An iterator of a block: a variable that stands for ``binding``, over the loops around it.

    Its values lie in 0 to ``extent - 1``. ``kind`` is ``"spatial"`` where each value writes
    elements of its own, ``"reduce"`` where all of them add to the same ones.
    """

    var: Var
    extent: int
    kind: str
    binding: Expr


@dataclass(frozen=True, slots=True, eq=False)
class BufferRegion:
    """A box of a buffer's elements: per dimension, the lowest index and how many from there on."""

    buffer: Buffer
    ranges: tuple[tuple[Expr, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """One stage's computation at one point of its domain, independent of the loops around it.

    Schedules move and reshape the loops; what the block does is said in its iterators alone, and
    the loops only give these their values.

    Attributes:
        name: the stage's name.
        iters: the iterators.
        reads: regions that cover every read; what a reduction accumulates isn't counted.
        writes: regions that cover every write.
        body: what is done at one point.
        init: what runs before the body where every reduce iterator is 0; None for no reduction.
        predicate: the block runs only where it holds; over the loops around.
    """

    name: str
    iters: tuple[BlockIter, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: Expr = TRUE

    @property
    def reduce_iters(self) -> tuple[BlockIter, ...]:
        """The iterators that are reduced over."""
        return tuple(i for i in self.iters if i.kind == "reduce")

    @property
    def bindings(self) -> dict[Var, Expr]:
        """Expression that each iterator is bound to."""
        return {i.var: i.binding for i in self.iters}


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(Stmt):
    """A buffer that exists inside ``body`` alone; each time it is reached, a new one."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Store(Stmt):
    """Writes ``value`` to the element of ``buffer`` at ``indices``; both have the same dtype."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    """Does ``then`` where the bool ``cond`` holds, else ``orelse``, if there is one."""

    cond: Expr
    then: Stmt
    orelse: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Statements in order; an empty one does nothing."""

    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BufferRef:
    """A position in a buffer: the lowest corner of what an intrinsic touches."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class IntrinCall:
    """A call of a tensor intrinsic: one instruction on one vector.

    Attributes:
        intrin: the intrinsic.
        operands: the lowest corner of each operand, in the intrinsic's order.
        params: the value of each param, by name.
        first: of a reduction, the condition under which the init runs; None for no reduction.
    """

    intrin: TensorIntrin
    operands: tuple[BufferRef, ...]
    params: Mapping[str, Expr] = field(default_factory=dict)
    first: Expr | None = None

    def operand(self, name: str) -> BufferRef:
        """The operand that the intrinsic's behaviour calls ``name``.

        Raises:
            KeyError: it has none of that name.
        """
        for buffer, ref in zip(self.intrin.operands, self.operands, strict=True):
            if buffer.name == name:
                return ref
        known = ", ".join(b.name for b in self.intrin.operands)
        raise KeyError(f"{self.intrin.name}: expected an operand of {known}, found {name!r}")

    def regions(self) -> Iterator[tuple[BufferRegion, bool]]:
        """The region that the call touches of each operand, and whether it writes it.

        The output of a reduction counts as written only: its first step initializes it.
        """
        for operand, ref in zip(self.intrin.operands, self.operands, strict=True):
            lead = len(ref.indices) - len(operand.shape)
            extents = (1,) * lead + operand.shape
            region = BufferRegion(ref.buffer, tuple(zip(ref.indices, extents, strict=True)))
            yield region, operand is self.intrin.output


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    """A statement that does what an intrinsic call does."""

    call: IntrinCall


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch(Stmt):
    """A hint that a region, which may leave its buffer, will be read soon; it changes nothing."""

    region: BufferRegion


@dataclass(frozen=True, slots=True, eq=False)
class Barrier(Stmt):
    """All threads of a group reach it, and see what the others wrote, before any goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc:
    """A function: it reads and writes the arrays that it gets for its parameters, in place."""

    name: str
    params: tuple[Buffer, ...]
    body: Stmt


def seq(*stmts: Stmt) -> Stmt:
    """The statements in order, nested sequences flattened, one statement bare."""
    flat = tuple(part for stmt in stmts for part in sequence(stmt))
    return flat[0] if len(flat) == 1 else Seq(flat)


def sequence(stmt: Stmt) -> tuple[Stmt, ...]:
    """Statements that ``stmt`` does in order: itself, or the statements of a Seq, those of inner
    ones too.
    """
    if not isinstance(stmt, Seq):
        return (stmt,)
    return tuple(part for inner in stmt.stmts for part in sequence(inner))


def point(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """The region of one element."""
    return BufferRegion(buffer, tuple((i, 1) for i in indices))
