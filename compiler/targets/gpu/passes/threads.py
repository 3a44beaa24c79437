"""Loops bound to threads become one grid of groups of threads for each kernel.

A schedule may bind loops to one tag wherever they stand. A kernel has one loop for each tag, around
everything else; the threads deal out among themselves what other loops of the tag did:

before                                       after
    for by in 4 blockIdx.x:                      for bx in 4 blockIdx.x:
        for ty in 16 threadIdx.x:                    alloc S: float32[8] @"shared"
            alloc S: float32[8] @"shared"            for tx in 16 threadIdx.x:
            for i in 8 threadIdx.x:                      if tx < 8: S[tx] = A[bx * 8 + tx]
                S[i] = A[by * 8 + i]                     C[bx * 16 + tx] = S[tx // 2]
            C[by * 16 + ty] = S[ty // 2]

Rules:

- A loop of one step leaves none.
- Each nest that stands by itself is a kernel; buffers that several of them use are in global
  memory.
- A buffer without a scope that is made inside a kernel is its thread's own where no loop over
  threads is inside; else its group shares it.
- What the group shares is stored once: by the first thread along each dimension that no loop around
  the store is bound to, from the buffer's Alloc on. So is what all groups share.
- What a warp has together is stored by all of its lanes (``passes.lanes``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vdla.compiler.schedule.tree import peel_allocs, wrap_allocs
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.mma import WARP
from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    GLOBAL,
    LOCAL,
    SHARED,
    THREAD_TAGS,
    ZERO,
    Alloc,
    Binary,
    Buffer,
    Const,
    For,
    If,
    PrimFunc,
    Stmt,
    Store,
    Var,
    all_of,
    seq,
    sequence,
)
from vdla.compiler.tir.lower import simplify_stmt
from vdla.compiler.tir.visitor import (
    direct_exprs,
    loads,
    map_stmt,
    replace_buffer,
    substitute,
    uses,
    walk,
)

TAGS = (*BLOCK_TAGS, *THREAD_TAGS)


def deal_threads(func: PrimFunc) -> PrimFunc:
    """The function with one loop for each tag around every kernel.

    Args:
        func: without blocks.

    Raises:
        NoCodeError: a buffer of one thread is used by several, or shared memory holds what differs
            from thread to thread.
    """
    return replace(func, body=_each_kernel(func.body, func.name))


def _each_kernel(stmt: Stmt, name: str) -> Stmt:
    """Statements between kernels, with each kernel's threads dealt."""
    allocs, inner = peel_allocs(stmt)
    for buffer in allocs:
        if buffer.scope != GLOBAL:
            raise NoCodeError(
                f"{name}: expected {buffer.name} in scope {buffer.scope} to be made inside a loop "
                f"bound to blockIdx or threadIdx, found it outside; compute_at puts it there"
            )
    parts = sequence(inner)
    if len(parts) > 1:
        return wrap_allocs(allocs, seq(*(_each_kernel(part, name) for part in parts)))
    return wrap_allocs(allocs, _Dealer(name, _extents(inner)).run(inner))


def _extents(nest: Stmt) -> dict[str, int]:
    """The tags of a kernel's loops, and the most steps that any loop of each has, where these are
    several."""
    extents: dict[str, int] = {}
    for loop in thread_loops(nest):
        extents[loop.thread_tag] = max(loop.extent, extents.get(loop.thread_tag, 1))
    return {tag: extent for tag, extent in extents.items() if extent > 1}


def thread_loops(stmt: Stmt) -> Iterator[For]:
    """The loops in a statement that are bound to a tag of ``TAGS``, outer ones first."""
    return (s for s in walk(stmt) if isinstance(s, For) and s.thread_tag in TAGS)


@dataclass
class _Dealer:
    """One kernel under way.

    ``variables`` are those of its loops, by tag; ``shared`` are the buffers of its groups so far;
    ``homes`` are, for each buffer made inside, how many thread loops are around its Alloc.
    """

    name: str
    extents: Mapping[str, int]
    shared: list[Buffer] = field(default_factory=list)
    homes: dict[Buffer, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.variables = {tag: Var(tag[0] + tag[-1]) for tag in self.extents}

    def run(self, nest: Stmt) -> Stmt:
        """The kernel."""
        body = self.loops(THREAD_TAGS, self.visit(nest, ()))
        return simplify_stmt(self.loops(BLOCK_TAGS, wrap_allocs(self.shared, body)))

    def loops(self, tags: tuple[str, ...], body: Stmt) -> Stmt:
        """A statement in the loops of those tags that the kernel has, that of x innermost."""
        for tag in tags:
            if tag in self.extents:
                body = For(self.variables[tag], self.extents[tag], "thread", body, tag)
        return body

    def visit(self, stmt: Stmt, path: tuple[For, ...]) -> Stmt:
        """A statement as all threads run it; ``path`` are the loops around it that are bound."""
        match stmt:
            case For() if stmt.thread_tag in TAGS:
                return self.loop(stmt, path)
            case Alloc(buffer, body):
                return self.alloc(buffer, body, path)
            case Store():
                return self.store(stmt, path)
        return map_stmt(stmt, lambda s: self.visit(s, path))

    def loop(self, loop: For, path: tuple[For, ...]) -> Stmt:
        """A loop's steps, each by the thread of its number."""
        body = self.visit(loop.body, (*path, loop))
        if loop.thread_tag not in self.extents:
            return substitute(body, {loop.var: ZERO})
        return substitute(body, {loop.var: self.variables[loop.thread_tag]})

    def alloc(self, buffer: Buffer, body: Stmt, path: tuple[For, ...]) -> Stmt:
        """A buffer where its scope has it: a group's outside of all loops over threads."""
        new = replace(buffer, scope=self.scope(buffer, body, path))
        self.homes[new] = len(path)
        inner = self.visit(replace_buffer(body, buffer, new), path)
        if new.scope != SHARED:
            return Alloc(new, inner)
        self.shared.append(new)
        return inner

    def scope(self, buffer: Buffer, body: Stmt, path: tuple[For, ...]) -> str:
        """The scope of a buffer that is made inside the kernel, inferred where it has none."""
        around = {loop.thread_tag for loop in path}
        inside = {loop.thread_tag for loop in thread_loops(body)} - set(BLOCK_TAGS)
        if buffer.scope == LOCAL and inside - around:
            raise NoCodeError(
                f"{self.name}: expected {buffer.name} in scope local to be made inside the loops "
                f"over the threads that use it, found a loop bound to {min(inside - around)} inside"
            )
        if buffer.scope != GLOBAL:
            return buffer.scope
        return SHARED if inside or not around & set(THREAD_TAGS) else LOCAL

    def store(self, store: Store, path: tuple[For, ...]) -> Stmt:
        """A store by the threads whose steps it is, and by one of those that would do the same."""
        buffer, made = store.buffer, store.buffer in self.homes
        home = self.homes[buffer] if made and buffer.scope != LOCAL else 0
        if made and buffer.scope != LOCAL:
            self.check_shared(store, path[:home])
        steps = {loop.thread_tag: loop.extent for loop in path[home:]}
        if any(load.buffer.scope == WARP for load in loads(store.value)):
            steps.setdefault(THREAD_TAGS[0], self.extents.get(THREAD_TAGS[0], 1))
        conds = []
        for tag in (tag for tag in TAGS if tag in self.extents):
            var = self.variables[tag]
            if steps.get(tag, self.extents[tag]) < self.extents[tag]:
                conds.append(Binary("lt", var, Const(steps[tag], "int32")))
            elif tag not in steps and (not made or tag in THREAD_TAGS) and buffer.scope != LOCAL:
                conds.append(Binary("eq", var, ZERO))
        return If(all_of(*conds), store) if conds else store

    def check_shared(self, store: Store, outer: Sequence[For]) -> None:
        """Raises NoCodeError where a store to shared memory depends on which of the threads around
        the buffer's Alloc does it."""
        variables = {loop.var for loop in outer if loop.thread_tag in THREAD_TAGS}
        exprs = list(direct_exprs(store))
        own = (x.buffer for e in exprs for x in loads(e) if x.buffer.scope == LOCAL)
        outside = [b.name for b in own if variables and self.homes[b] <= self.homes[store.buffer]]
        used = [loop for loop in outer if any(uses(e, variables & {loop.var}) for e in exprs)]
        if outside or used:
            result = outside[0] if outside else f"{used[0].var.name} ({used[0].thread_tag})"
            raise NoCodeError(
                f"{self.name}: expected {store.buffer.name} in shared memory to hold the same for "
                f"all threads of a group, found that it depends on {result}; bind its readers' "
                "loops before compute_at"
            )
