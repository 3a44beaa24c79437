"""Primitives that say where a stage is computed: in its readers, by itself, or nowhere."""

from __future__ import annotations

from vdla.compiler.schedule import attach, inline
from vdla.compiler.schedule.state import StageBase
from vdla.compiler.schedule.trace import Step
from vdla.compiler.te.tensor import Tensor
from vdla.compiler.tir.ir import Var


class Place(StageBase):
    """Primitives that choose the place where a stage is computed."""

    __slots__ = ()

    def compute_at(self, parent: StageBase | Tensor | str, axis: Var | str) -> None:
        """Computes the stage inside a loop of its reader: in each step, as much as it needs.

        Before::

            for i in 64: B[i] = f(i)
            for io in 8: for ii in 8: C[io*8 + ii] = B[io*8 + ii]

        After ``s[B].compute_at(s[C], io)``::

            for io in 8:
                alloc B: int32[8]
                for i in 8: B[i] = f(io*8 + i)
                for ii in 8: C[io*8 + ii] = B[ii]

        Neighbouring steps may need the same elements (a convolution's rows); these are computed
        again.

        Args:
            parent: the reader.
            axis: the loop of the reader, as a variable or by its full name ``stage.loop``.

        Raises:
            ScheduleError: the stage is an output, is attached or tensorized already, has split or
                fused spatial loops, or is read outside of that loop.
        """
        self._expect("compute_at")
        schedule = self.schedule
        stage = parent if isinstance(parent, StageBase) else schedule._stage(parent)
        var = axis if isinstance(axis, Var) else schedule._axis_named(axis)
        stage._check(var, f"compute_at {self.name} at")
        func, buffer = attach.compute_at(schedule.mod, self.name, stage.name, var)
        args = {"parent": stage.name, "axis": stage._axis_name(var)}
        schedule._commit(func, Step("compute_at", self.name, args))
        schedule._replace_buffer(self.name, buffer)

    def compute_root(self) -> None:
        """The stage is computed by itself again, before its readers: undoes ``compute_at``.

        Its loops are again those that te made; splits and the like are gone. A stage that isn't
        attached stays as it is.

        Raises:
            ScheduleError: the stage is tensorized, another stage is attached to it, or it reads
                what is computed inside the loop that it leaves.
        """
        schedule, step = self.schedule, Step("compute_root", self.name)
        if self.op.members:
            schedule._commit(schedule.mod, step)
            return
        old = self.leaf_iter_vars
        func, buffer = attach.compute_root(schedule.mod, self.name, self.op.axes)
        attached = func is not schedule.mod
        schedule._commit(func, step)
        if attached:
            schedule._replace_buffer(self.name, buffer)
            self._reset_axes(old, "made whole by compute_root")

    def compute_inline(self) -> None:
        """Puts the stage's expression wherever its tensor is read; the stage is then gone.

        Before::

            for i in 64: B[i] = A[i] + 1
            for i in 64: C[i] = B[i] * 2

        After ``s[B].compute_inline()``::

            for i in 64: C[i] = (A[i] + 1) * 2

        Raises:
            ScheduleError: the stage is an output, a reduction, tensorized or attached, has a
                condition (inline before splitting), or a reader is tensorized.
        """
        self._expect("compute_inline")
        schedule = self.schedule
        func = inline.compute_inline(schedule.mod, self.name)
        schedule._commit(func, Step("compute_inline", self.name))
        del schedule.stages[self.name], schedule.buffers[self.name]
