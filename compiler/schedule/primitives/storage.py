"""Primitives of a stage's buffer: its memory, its copies, its strides."""

from __future__ import annotations

from vdla.compiler.schedule import cache
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.state import StageBase
from vdla.compiler.schedule.trace import Step
from vdla.compiler.tir.ir import Var


class Storage(StageBase):
    """Primitives that choose the memory and the layout of a stage's buffer."""

    __slots__ = ()

    def set_scope(self, scope: str) -> None:
        """Moves the stage's buffer to another memory.

        Before ``alloc B: int32[10, 8]``; after ``s[B].set_scope("vdla.acc")`` ``alloc B: int32[10,
        8] @"vdla.acc"``. Nothing is copied: what writes and reads the buffer must be able to do so
        there.

        Args:
            scope: ``"global"``; ``"vdla.inp"``, ``"vdla.wgt"`` or ``"vdla.acc"`` on the
                accelerator; ``"shared"`` or ``"local"`` in a kernel.

        Raises:
            ScheduleError: the stage is an output, or its buffer has a stride from
                ``storage_align``.
        """
        self._expect("set_scope")
        old = self.schedule.buffers[self.name]
        func, new = cache.set_scope(self.schedule.mod, self.name, old, scope)
        self.schedule._commit(func, Step("set_scope", self.name, {"scope": scope}))
        self.schedule._replace_buffer(self.name, new)

    def double_buffer(self, copies: int = 2) -> None:
        """Gives the stage's buffer several copies, which the loop it is attached to takes in turn.

        Before, and after ``s[B].double_buffer()``::

            for i in 8:                 for i in 8:
                alloc B: int32[16]          alloc B: int32[16] x2
                load B                      load B
                use B                       use B

        Odd and even steps then have a place each, so that one can be filled while the other is
        read. Virtual threads give every thread a buffer of its own; copies serve one thread, step
        by step. They take as many times the buffer's entries on chip. Call it after ``compute_at``.

        Raises:
            ScheduleError: fewer than one copy, or the stage is an output.
        """
        self._expect("double_buffer")
        func, new = cache.double_buffer(self.schedule.mod, self.name, copies)
        self.schedule._commit(func, Step("double_buffer", self.name, {"copies": copies}))
        self.schedule._replace_buffer(self.name, new)

    def storage_align(self, axis: Var, factor: int, offset: int) -> None:
        """Widens the stride of ``axis``, so that its steps begin at chosen places in memory.

        It is for the CPU's caches, and for banks of memory that threads share. Elements one step of
        ``axis`` apart then lie ``offset`` modulo ``factor`` elements apart. Before, rows of
        ``alloc B: int32[10, 8]`` lie 8 elements apart; after ``s[B].storage_align(y, 16, 1)`` it is
        ``alloc B: int32[10, 8] align(0, 16, 1)``, and they lie 17 apart. Rows that begin on lines
        of their own can be loaded faster; with an odd stride, columns don't share a cache's set or
        a bank.

        Args:
            axis: one of the stage's axes, as te made them.
            factor: in elements.
            offset: in elements, 0 to ``factor - 1``.

        Raises:
            ScheduleError: the factor or the offset is out of range, the stage is an output, or its
                buffer is on chip, where entries lie densely.
        """
        self._expect("storage_align")
        if axis not in self.axis:
            raise ScheduleError(
                f"storage_align {self.name}: expected one of its axes "
                f"({', '.join(a.name for a in self.axis)}), found {axis.name}"
            )
        dim = self.axis.index(axis)
        func, new = cache.storage_align(self.schedule.mod, self.name, dim, factor, offset)
        args = {"axis": self._axis_name(axis), "factor": factor, "offset": offset}
        self.schedule._commit(func, Step("storage_align", self.name, args))
        self.schedule._replace_buffer(self.name, new)
