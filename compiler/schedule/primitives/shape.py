"""Primitives that give a stage other loops: split, tile, fuse, reorder."""

from __future__ import annotations

from vdla.compiler.schedule import loops
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.state import StageBase
from vdla.compiler.schedule.trace import Step
from vdla.compiler.tir.ir import Var


class Shape(StageBase):
    """The loops that a stage has."""

    __slots__ = ()

    def split(
        self, axis: Var, factor: int | None = None, nparts: int | None = None
    ) -> tuple[Var, Var]:
        """One loop as two, one inside the other.

        Before::

            for y in 10: C[y] = ...

        After ``yo, yi = s[C].split(y, factor=4)``::

            for yo in 3: for yi in 4:
                if yo*4 + yi < 10: C[yo*4 + yi] = ...

        The condition is there only where the factor doesn't divide the extent. The loops are called
        ``y_o`` and ``y_i`` in the program's text.

        Args:
            axis: the loop.
            factor: the extent of the inner loop; give this or ``nparts``.
            nparts: how many steps the outer loop is to have; the inner one then has as many as
                that takes, rounded up.

        Returns:
            The variables of the outer and of the inner loop.

        Raises:
            ScheduleError: both or none of ``factor`` and ``nparts`` are given, or it isn't in 1 to
                the loop's extent.
        """
        self._expect("split")
        where = self._check(axis, "split")
        func, outer, inner = loops.split(self.schedule.mod, where, axis, factor, nparts)
        size = {"factor": factor} if factor is not None else {"nparts": nparts}
        step = Step("split", self.name, {"axis": self._axis_name(axis), **size})
        self.schedule._commit(func, step)
        self._replace_axes((axis,), (outer, inner), "split")
        return outer, inner

    def tile(self, y: Var, x: Var, y_factor: int, x_factor: int) -> tuple[Var, Var, Var, Var]:
        """Two loops as a grid of tiles: two splits and a reorder.

        Before::

            for y in 64: for x in 64: C[y, x] = ...

        After ``yo, xo, yi, xi = s[C].tile(y, x, 8, 16)``::

            for yo in 8: for xo in 4: for yi in 8: for xi in 16:
                C[yo*8 + yi, xo*16 + xi] = ...

        Args:
            y: the outer loop.
            x: the inner loop.
            y_factor: steps of ``y`` in a tile.
            x_factor: steps of ``x`` in a tile.

        Returns:
            The variables of the four loops, outermost first.

        Raises:
            ScheduleError: as ``split`` and ``reorder``.
        """
        yo, yi = self.split(y, factor=y_factor)
        xo, xi = self.split(x, factor=x_factor)
        self.reorder(yo, xo, yi, xi)
        return yo, xo, yi, xi

    def fuse(self, *axes: Var) -> Var:
        """Loops directly inside one another, outermost first, as one loop.

        Before::

            for y in 4: for x in 8: C[y, x] = ...

        After ``yx = s[C].fuse(y, x)``::

            for yx in 32: C[yx // 8, yx % 8] = ...

        Raises:
            ScheduleError: no loop is given, something stands between two of them, or a spatial and
                a reduce loop would become one.
        """
        self._expect("fuse")
        if not axes:
            raise ScheduleError(f"fuse {self.name}: expected at least one loop, found none")
        fused = axes[0]
        self._check(fused, "fuse")
        for axis in axes[1:]:
            where = self._check(fused, "fuse")
            self._check(axis, "fuse")
            func, new = loops.fuse(self.schedule.mod, where, fused, axis)
            names = [self._axis_name(fused), self._axis_name(axis)]
            self.schedule._commit(func, Step("fuse", self.name, {"axes": names}))
            self._replace_axes((fused, axis), (new,), "fused")
            fused = new
        return fused

    def reorder(self, *axes: Var) -> None:
        """Changes the order of loops of one nest.

        Before::

            for y in 4: for x in 8: for k in 16: C[y, x] = C[y, x] + ...

        After ``s[C].reorder(k, y)``::

            for k in 16: for x in 8: for y in 4: C[y, x] = C[y, x] + ...

        Args:
            axes: loops in the wanted order, outermost first. They change places among themselves;
                loops that aren't named stay where they are.

        Raises:
            ScheduleError: a loop is named twice, or the loops aren't one nest with nothing in
                between, such as a stage that is attached there.
        """
        self._expect("reorder")
        for axis in axes:
            self._check(axis, "reorder")
        if len(axes) < 2:
            return
        func = loops.reorder(self.schedule.mod, self.name, axes)
        names = [self._axis_name(a) for a in axes]
        self.schedule._commit(func, Step("reorder", self.name, {"axes": names}))
