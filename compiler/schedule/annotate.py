"""Primitives that say how a loop runs: unroll, vectorize, parallel, bind, pragma, prefetch."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.tree import (
    get_loop,
    loop_path,
    path_ranges,
    peel_allocs,
    with_body,
    wrap_allocs,
)
from vdla.compiler.te.tensor import ThreadAxis
from vdla.compiler.tir.arith import simplify
from vdla.compiler.tir.ir import (
    THREADS,
    Alloc,
    Buffer,
    BufferRegion,
    Pragma,
    Prefetch,
    PrimFunc,
    Var,
    seq,
)
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.region import touched
from vdla.compiler.tir.visitor import blocks, substitute_expr, uses, walk

INDEPENDENT = ("parallel", "vectorized", "thread", "vthread")


def bind(func: PrimFunc, where: str, var: Var, thread: ThreadAxis) -> PrimFunc:
    """The loop's steps as threads, or dealt to ``thread.threads`` of them.

    Before: ``for y in 8: B``.  After bind(y, vthread): ``for y in 8 vthread("vthread"): B``.
    """
    loop = get_loop(func, var)
    if loop.kind in ("vthread", "thread"):
        raise ScheduleError(
            f"bind {where}: expected a loop that isn't bound yet, found it bound "
            f"to {loop.thread_tag}; split it to bind a part"
        )
    kind = "vthread" if thread.tag == "vthread" else "thread"
    func = set_kind(func, where, "bind", var, kind, thread.tag)
    return pragma(func, var, THREADS, thread.threads) if thread.threads else func


def set_kind(
    func: PrimFunc, where: str, primitive: str, var: Var, kind: str, tag: str = ""
) -> PrimFunc:
    """The loop run another way; all but unrolling need independent iterations.

    Before: ``for y in 8: B``.  After vectorize(y): ``for y in 8 vectorized: B``.
    """
    loop = get_loop(func, var)
    if kind in INDEPENDENT:
        for block in blocks(loop.body):
            for it in block.reduce_iters:
                if uses(it.binding, {var}):
                    raise ScheduleError(
                        f"{primitive} {where}: expected a loop over spatial axes, found that "
                        f"{block.name} reduces over it ({it.var.name} = {show(it.binding)}, "
                        f"0..{loop.extent})"
                    )
    return with_body(func, loop, replace(loop, kind=kind, thread_tag=tag))


def pragma(func: PrimFunc, var: Var, key: str, value: Pragma) -> PrimFunc:
    """A note on a loop for later passes; a second one under the same key replaces the first."""
    loop = get_loop(func, var)
    kept = tuple(note for note in loop.annotations if note[0] != key)
    return with_body(func, loop, replace(loop, annotations=(*kept, (key, value))))


def prefetch(func: PrimFunc, where: str, buffer: Buffer, var: Var, offset: int) -> PrimFunc:
    """Each step of a loop asks for what the step ``offset`` further on reads of ``buffer``.

    Before: ``for y in 8: for x in 64: C[y, x] = A[y, x]``.
    After prefetch(A, y, 2): ``for y in 8: prefetch A[y + 2, 0:0+64]; for x in 64: …``.
    """
    if offset < 1:
        raise ScheduleError(
            f"prefetch {where}: expected an offset of at least 1 step, found {offset}"
        )
    if buffer.scope != "global":
        raise ScheduleError(
            f"prefetch {where}: expected a tensor in scope global, found "
            f"{buffer.name} in {buffer.scope}; double_buffer fills on-chip memory "
            f"ahead of time"
        )
    path = loop_path(func, var)
    loop = get_loop(func, var)
    if any(isinstance(s, Alloc) and s.buffer is buffer for s in walk(loop)):
        raise ScheduleError(
            f"prefetch {where}: expected a tensor made before the loop, found "
            f"{buffer.name} made in each step"
        )
    box = touched(loop.body, buffer, path_ranges(path), writes=False)
    if box is None:
        raise ScheduleError(
            f"prefetch {where}: expected a loop that reads {buffer.name}, found "
            f"none that does inside"
        )
    later = {var: var + offset}
    region = BufferRegion(
        buffer, tuple((simplify(substitute_expr(low, later)), extent) for low, extent in box)
    )
    allocs, inner = peel_allocs(loop.body)
    body = wrap_allocs(allocs, seq(Prefetch(region), inner))
    return with_body(func, loop, replace(loop, body=body))
