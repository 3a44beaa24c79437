"""Schedule of nests without one of their own: in lanes where they reduce, and on
several threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.description.intrinsics import dot4
from vdla.compiler.targets.processor.description.processor import Vectors
from vdla.compiler.te.tensor import ComputeOp, Tensor
from vdla.compiler.tir.ir import Var
from vdla.compiler.tir.visitor import loads, uses

SHARED_STEPS = 1 << 14  # loops with fewer steps in all stay on one thread
ENOUGH_PARTS = 64  # loops are fused until threads have this many iterations to share
LANES = (4, 8, 16, 32, 64)
MOST_COPIES = 64  # of a tile's vector that are written out one after the other
FEW = 4  # lanes
LONG_SUM = 128  # steps above which a sum of float32 vectors is one of partial sums
LONG_ROW = 16  # vectors of a row that several sums of vectors take turns in
TURNS = 4
AT_ONCE = 8  # vectors of partial sums that are in registers


def schedule_nest(s: Schedule, stage: Stage, lanes: int) -> None:
    """Schedules a stage by what it computes."""
    op = stage.op
    if not isinstance(op, ComputeOp):
        return
    work = prod(axis.extent for axis in op.axes)
    if adds_a_row(op, lanes):
        rows = schedule_row(s, stage, lanes)
    elif _adds_vectors(op):
        rows = schedule_vectors(s, stage, lanes)
    else:
        rows = list(stage.axis[:-1])
        if op.axes and op.axes[-1].extent in LANES and not op.reduce_axis:
            stage.vectorize(stage.axis[-1])
    share(stage, rows, work)


def share(stage: Stage, rows: Sequence[Var], work: int) -> None:
    """Has threads share a stage: the outermost loops of ``rows`` that have parts enough.

    ``work`` is how many steps the whole stage has.
    """
    count = count_to_share([stage.extent(axis) for axis in rows], work)
    if count:
        stage.parallel(stage.fuse(*rows[:count]))


def count_to_share(sizes: Sequence[int], work: int) -> int:
    """Number of some loops, outermost first, that threads share as one; 0 where ``work`` steps in
    all aren't worth it."""
    enough = (n for n in range(1, len(sizes)) if prod(sizes[:n]) >= ENOUGH_PARTS)
    return next(enough, len(sizes)) if work >= SHARED_STEPS else 0


def in_registers(stage: Stage, outer: list[Var], copies: list[Var], lane: Var) -> None:
    """Innermost, a tile of vectors: every step of ``copies`` is written out, ``lane`` is a vector.

    What the tile sums up stays in registers while ``outer`` runs; of a small tile, the last steps
    of the reduction are written out, too.
    """
    outer, steps = _with_short_steps(stage, outer, prod(map(stage.extent, copies)))
    stage.reorder(*outer, *steps, *copies, lane)
    for axis in (*steps, *copies):
        stage.unroll(axis)
    stage.vectorize(lane)


def _with_short_steps(stage: Stage, outer: list[Var], copies: int) -> tuple[list[Var], list[Var]]:
    """The loops around a tile, and what is written out of the last of them: a short reduction, or a
    few steps of a long one, where the tile is so small that a loop costs more than it does."""
    if not outer or outer[-1] not in stage.reduce_axis:
        return outer, []
    *others, last = outer
    most, size = MOST_COPIES // max(copies, 1), stage.extent(last)
    if size <= most:
        return others, [last]
    count = next((n for n in (8, 4, 2) if n <= most // 2 and size % n == 0), 0)
    if not count:
        return outer, []
    last, inner = stage.split(last, factor=count)
    return [*others, last], [inner]


def sums_in_registers(
    stage: Stage, outer: list[Var], copies: list[Var], words: Sequence[Var], vectors: Vectors
) -> None:
    """A tile of sums of products, its last axis in lanes; ``words`` is the axis of four bytes that
    are one step, or nothing."""
    lane = stage.axis[-1]
    if not words:
        in_registers(stage, outer, copies, lane)
        return
    stage.reorder(*outer, *copies, lane, *words)
    for axis in copies:
        stage.unroll(axis)
    stage.tensorize(lane, dot4(vectors.dot4, stage.extent(lane)))


def adds_a_row(op: ComputeOp, lanes: int) -> bool:
    """Whether it reduces rows of float32 whose elements lie side by side, in several vectors."""
    if op.reduce is None or len(op.outputs) > 1:
        return False
    *_, last = op.reduce_axis
    reads = [x for x in loads(op.reduce.source[0]) if uses(x.indices[-1], {last})]
    return last.extent > lanes and bool(reads) and op.outputs[0].dtype == "float32"


def _adds_vectors(op: ComputeOp) -> bool:
    """Whether it reduces vectors that lie side by side: a pool in blocks of channels does."""
    if op.reduce is None or len(op.outputs) > 1 or len(op.axis) < 2:
        return False
    last, steps = op.axis[-1], set[Var](op.reduce_axis)
    ends = [x.indices[-1] for x in loads(op.reduce.source[0])]
    together = any(uses(end, {last}) for end in ends) and not any(uses(e, steps) for e in ends)
    return together and last.extent in LANES


def schedule_row(s: Schedule, stage: Stage, lanes: int) -> list[Var]:
    """A reduction of rows in as many parts as a vector has lanes, which are combined at last: all
    of them in FEW lanes first, then these one after the other. Of long rows, several vectors take
    turns, so that none waits for its own last step."""
    turns = TURNS if stage.extent(stage.reduce_axis[-1]) >= LONG_ROW * lanes else 1
    partial = list[Stage]()
    for count in (turns * lanes, FEW) if lanes > FEW else (turns * lanes,):
        _, lane = stage.split(stage.reduce_axis[-1], factor=count)
        tensor = s.rfactor(stage.name, lane)
        assert isinstance(tensor, Tensor)
        partial.append(s[tensor])
    for parts in reversed(partial):
        if stage.axis:
            parts.compute_at(stage, stage.axis[-1])
        l, *rows = parts.axis
        copies = list[Var]()
        if parts.extent(l) > lanes:
            turn, l = parts.split(l, factor=lanes)
            copies.append(turn)
        in_registers(parts, [*rows, *parts.reduce_axis], copies, l)
    return list(stage.axis)


def schedule_vectors(s: Schedule, stage: Stage, lanes: int) -> list[Var]:
    """A reduction of vectors, which stay in registers while it runs."""
    assert isinstance(stage.op, ComputeOp)
    *rows, l = stage.axis
    steps = prod(axis.extent for axis in stage.op.reduce_axis)
    if stage.op.outputs[0].dtype == "float32" and steps > LONG_SUM:
        _reduce_in_parts(s, stage, steps, lanes)
    else:
        in_registers(stage, rows, list(stage.reduce_axis), l)
    return rows


def _reduce_in_parts(s: Schedule, stage: Stage, steps: int, lanes: int) -> None:
    """A long reduction of vectors as partial ones, about as many as each has steps.

    A float32 sum is off by as many roundings as it has steps, one after the other. Several parts
    take turns, so that none waits for its own last addition.
    """
    longest = max(stage.reduce_axis, key=stage.extent)
    if (count := isqrt(steps)) < stage.extent(longest):
        longest, _ = stage.split(longest, nparts=count)
    tensor = s.rfactor(stage.name, longest)
    assert isinstance(tensor, Tensor)
    *rows, l = stage.axis
    in_registers(stage, [*rows, *stage.reduce_axis], [], l)
    parts = s[tensor]
    parts.compute_at(stage, rows[-1])
    part, *rows, l = parts.axis
    most = min(AT_ONCE, max(AT_ONCE * lanes // parts.extent(l), 1))
    turns = next(n for n in range(most, 0, -1) if parts.extent(part) % n == 0)
    part, turn = parts.split(part, factor=turns)
    in_registers(parts, [*rows, part, *parts.reduce_axis], [turn], l)
