"""A stage of a schedule, which has the primitives of every family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vdla.compiler.schedule.primitives.place import Place
from vdla.compiler.schedule.primitives.running import Running
from vdla.compiler.schedule.primitives.shape import Shape
from vdla.compiler.schedule.primitives.storage import Storage


class Stage(Shape, Place, Storage, Running):
    """One operation in a schedule; its methods are the primitives.

    Loops are given and returned as their variables: ``C.axis`` and ``C.reduce_axis`` at first, then
    what ``split`` and ``fuse`` return. Every primitive raises a ``ScheduleError`` where it doesn't
    apply to such a stage, or where a loop isn't a present loop of this stage.

    Attributes:
        schedule: the schedule that the stage belongs to.
        name: the name of the stage; that of its tensor where it computes one.
        op: what the stage computes.
        owner: the stage of the scan that it is a step of, or None.
    """

    __slots__ = ()


PRIMITIVES: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        Stage.split,
        Stage.fuse,
        Stage.reorder,
        Stage.compute_at,
        Stage.compute_root,
        Stage.compute_inline,
        Stage.set_scope,
        Stage.double_buffer,
        Stage.storage_align,
        Stage.unroll,
        Stage.vectorize,
        Stage.parallel,
        Stage.bind,
        Stage.pragma,
        Stage.prefetch,
        Stage.tensorize,
    )
}
