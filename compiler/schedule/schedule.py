"""What users hold: a ``Schedule`` of a function, and its stages by tensor.

The rewriting itself is in the modules beside this one (``loops``, ``attach``, ``cache`` …), which
know functions, blocks and loops but no tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vdla.compiler.schedule import annotate, attach, cache, inline, loops, rfactor, tensorize
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step, Trace
from vdla.compiler.schedule.tree import block_path, get_loop, loop_path, loops_of
from vdla.compiler.te.func import Built, build
from vdla.compiler.te.scan import ScanOp
from vdla.compiler.te.tensor import ComputeOp, Operation, Tensor, ThreadAxis, producers
from vdla.compiler.tir.intrin import TensorIntrin
from vdla.compiler.tir.ir import Buffer, IRError, Pragma, PrimFunc, Var
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.values import value_ranges
from vdla.compiler.tir.verify import verify
from vdla.compiler.tir.visitor import walk


class Schedule:
    """How the computation of some tensors runs; ``s[C]`` is the stage that computes ``C``.

    Every primitive rewrites the function ``mod``, which is verified and can be interpreted after
    each of them. A primitive that doesn't apply raises a ``ScheduleError``.

    Attributes:
        built: the function as it was before any primitive, with its tensors and operations.
        mod: the function as it stands.
        trace: the primitives applied so far, which ``replay`` applies to another schedule.
        stages: the stages by name.
        buffers: the buffers by name, as they stand.
    """

    def __init__(self, built: Built) -> None:
        self.built = built
        self.mod = verify(built.func)
        self.trace: Trace = []
        self.stages: dict[str, Stage] = {}
        self.names: dict[Tensor, str] = {t: b.name for t, b in built.buffers.items()}
        self.buffers: dict[str, Buffer] = {b.name: b for b in built.buffers.values()}
        self.writers: dict[str, str] = {}
        self.axes: dict[str, Var] = {}
        self.axis_names: dict[Var, str] = {}
        self.gone: dict[Var, str] = {}
        self.known_values: dict[str, tuple[int, int]] = {}
        for name, op in built.stages.items():
            self._add_stage(name, op)
        for op in built.stages.values():
            if isinstance(op, ScanOp):
                self._claim(op)

    def __getitem__(self, key: Tensor | Operation | str) -> Stage:
        """The stage of a tensor; tensors that are computed together have one stage."""
        name = self._name_of(key)
        name = self.writers.get(name, name)
        if name not in self.stages:
            known = ", ".join(self.stages)
            raise ScheduleError(f"stage: expected one of {known}, found {name}")
        return self.stages[name]

    def _name_of(self, key: Tensor | Operation | str) -> str:
        """The name of the buffer of a tensor, or of an operation's first output."""
        if isinstance(key, str):
            return key
        tensor = key.outputs[0] if isinstance(key, Operation) else key
        return self.names.get(tensor, tensor.name)

    def lower(self) -> PrimFunc:
        """``mod`` without blocks: loops, conditions, stores and intrinsic calls remain."""
        return verify(flatten_blocks(self.mod))

    # --- memories ---

    def cache_read(
        self, tensor: Tensor | str, scope: str, readers: Sequence[Tensor | str]
    ) -> Tensor:
        """Copies a tensor to the memory ``scope`` for its readers; the copy is a stage of its own.

        Before::

            for i in 64: C[i] = A[i] + 1

        After ``A_acc = s.cache_read(A, "vdla.acc", [C])``::

            alloc A_acc: int32[64] @"vdla.acc"
            for i0 in 64: A_acc[i0] = A[i0]
            for i in 64: C[i] = A_acc[i] + 1

        ``s[A_acc].compute_at(...)`` then shrinks the copy to what one step of a reader's loop
        needs.

        Args:
            tensor: an input, or a stage's tensor.
            scope: the memory: ``"vdla.inp"``, ``"vdla.wgt"``, ``"vdla.acc"`` or ``"global"``.
            readers: the stages that are to read the copy; others go on reading the tensor.

        Returns:
            The copy, whose axes are ``i0``, ``i1`` … It is called as the tensor with the scope's
            last word behind: ``A_acc``.

        Raises:
            ScheduleError: there is no such tensor, a reader doesn't read it, or it is made in the
                same loops that read it.
        """
        source = self._name_of(tensor)
        if source not in self.buffers:
            raise ScheduleError(
                f"cache_read: expected one of {', '.join(self.buffers)}, found {source}"
            )
        group = [self[r]._expect("cache_read").name for r in readers]
        name = self._fresh_name(f"{source}_{scope.rsplit('.', 1)[-1]}")
        func, copy = cache.cache_read(self.mod, self.buffers[source], scope, group, name)
        self._commit(func, Step("cache_read", source, {"scope": scope, "readers": group}))
        self._add_buffer(copy)
        return copy

    def cache_write(self, tensor: Tensor | str, scope: str) -> Tensor:
        """A tensor is computed in the memory ``scope``, and a copy brings it to where it was.

        The new stage computes, the old one copies. Before::

            for i in 64: C[i] = A[i] + 1

        After ``C_acc = s.cache_write(C, "vdla.acc")``::

            alloc C_acc: int32[64] @"vdla.acc"
            for i in 64: C_acc[i] = A[i] + 1
            for i in 64: C[i] = C_acc[i]

        Call it before other primitives on the stage: both stages have the loops that te made.

        Args:
            tensor: what one ``te.compute`` makes.
            scope: the memory: ``"vdla.inp"``, ``"vdla.wgt"``, ``"vdla.acc"`` or ``"global"``.

        Returns:
            The tensor that is now computed, with axes of its own.

        Raises:
            ScheduleError: the stage isn't one of one tensor by ``te.compute``, is attached, or its
                loops aren't those that te made.
        """
        stage = self[tensor]._expect("cache_write")
        name = self._fresh_name(f"{stage.name}_{scope.rsplit('.', 1)[-1]}")
        assert isinstance(stage.op, ComputeOp)
        func, new = cache.cache_write(
            self.mod, stage.name, self.buffers[stage.name], stage.op, scope, name
        )
        self._commit(func, Step("cache_write", stage.name, {"scope": scope}))
        self._add_buffer(new)
        return new

    # --- reductions ---

    def rfactor(
        self, tensor: Tensor | str, axis: Var, factor_axis: int = 0
    ) -> Tensor | tuple[Tensor, ...]:
        """Computes a reduction in parts, one for each step of one of its loops.

        The parts are a stage of their own; they can be computed in parallel or as a vector, which
        one running result can't. Before, after ``ko, ki = s[C].split(k, 4)``::

            for y in 8: for ko in 16: for ki in 4: C[y] = C[y] + A[y, ko*4 + ki]

        After ``C_rf = s.rfactor(C, ki)``::

            for ki in 4: for y in 8: for ko in 16: C_rf[ki, y] = C_rf[ki, y] + A[y, ko*4 + ki]
            for y in 8: for ki in 4: C[y] = C[y] + C_rf[ki, y]

        (inits left out). Both stages have the loops that te makes; ``s[C].op.reduce_axis`` is the
        loop over the parts. Call it after splitting the reduction and before other primitives on
        the stage.

        Args:
            tensor: what is reduced.
            axis: the loop of the reduction whose steps become parts.
            factor_axis: which dimension of the new tensor that loop is.

        Returns:
            The tensor of the parts; of a stage of several tensors, a tuple.

        Raises:
            ScheduleError: the stage isn't a reduction, is attached or tensorized, has other stages
                attached to it, or the loop isn't one of its reduction.
        """
        stage = self[tensor]._expect("rfactor")
        stage._check(axis, "rfactor")
        op, old = stage.op, stage.leaf_iter_vars
        assert isinstance(op, ComputeOp)
        name = self._fresh_name(f"{stage.name}_rf")
        targets = [self.buffers[self.names[t]] for t in op.outputs]
        made = rfactor.rfactor(self.mod, stage.name, op, targets, axis, factor_axis, name)
        args = {"axis": stage._axis_name(axis), "factor_axis": factor_axis}
        self._commit(made.func, Step("rfactor", stage.name, args))
        stage.op = made.whole
        self._name_axis(stage.name, made.whole.reduce_axis[0])
        stage._reset_axes(old, f"factored out into {name}")
        for part in made.parts.outputs:
            self.names[part] = part.name
            self.buffers[part.name] = part
        self._add_stage(name, made.parts)
        parts = tuple(made.parts.outputs)
        return parts[0] if len(parts) == 1 else parts

    # --- replay ---

    def replay(self, trace: Trace, intrinsics: Mapping[str, TensorIntrin] | None = None) -> None:
        """Applies the steps of another schedule of the same tensors, in order.

        Args:
            trace: the steps; ``schedule.trace`` or what ``from_json`` read.
            intrinsics: those that ``tensorize`` steps name, by name.

        Raises:
            ScheduleError: a step names a stage, a loop, a primitive or an intrinsic that isn't
                there, or doesn't apply.
        """
        for step in trace:
            self._apply(step, intrinsics or {})

    def _apply(self, step: Step, intrinsics: Mapping[str, TensorIntrin]) -> None:
        """Applies one step, with stages, loops and intrinsics found by their names."""
        args: dict[str, Any] = dict(step.args)
        if step.primitive in ("cache_read", "cache_write"):
            getattr(self, step.primitive)(step.stage, **args)
            return
        if step.primitive == "rfactor":
            self.rfactor(step.stage, self._axis_named(args["axis"]), args["factor_axis"])
            return
        stage = self[step.stage]
        if step.primitive not in PRIMITIVES:
            raise ScheduleError(
                f"replay: expected a primitive of {', '.join(PRIMITIVES)}, found {step.primitive!r}"
            )
        if "axes" in args:
            getattr(stage, step.primitive)(*(self._axis_named(a) for a in args["axes"]))
            return
        if "axis" in args:
            args["axis"] = self._axis_named(args["axis"])
        if "intrin" in args:
            if args["intrin"] not in intrinsics:
                raise ScheduleError(
                    f"replay: expected an intrinsic of {', '.join(intrinsics)}, "
                    f"found {args['intrin']!r}"
                )
            args["intrin"] = intrinsics[args["intrin"]]
        if "thread" in args:
            args["thread"] = ThreadAxis(args["thread"], args.pop("threads", 0))
        getattr(stage, step.primitive)(**args)

    def value_ranges(self) -> dict[str, tuple[int, int]]:
        """The least and greatest value that each buffer of integers can hold, by name.

        What is known of a stage stays known after it is tensorized.
        """
        self.known_values = value_ranges(self.mod, self.known_values)
        return self.known_values

    # --- bookkeeping ---

    def _add_stage(self, name: str, op: Operation) -> None:
        """A stage for an operation, with names for its loops."""
        self.stages[name] = Stage(self, name, op)
        for tensor in op.outputs:
            if len(op.outputs) == 1:
                self.names[tensor] = name
            self.writers[self.names[tensor]] = name
        for axis in op.axes:
            self._name_axis(name, axis)

    def _add_buffer(self, tensor: Tensor) -> None:
        """A tensor that a primitive made, and its stage."""
        assert tensor.op is not None
        self.names[tensor] = tensor.name
        self.buffers[tensor.name] = tensor
        self._add_stage(tensor.name, tensor.op)

    def _claim(self, scan: ScanOp) -> None:
        """Makes inits and steps parts of the scan's stage; the steps' leading axis is its loop."""
        stage = self[scan]
        for tensor in scan.members:
            self[tensor].owner = stage
        for tensor in scan.body:
            loop = self.axis_names[scan.scan_axis]
            self.gone[tensor.axis[0]] = f"made the scan's loop {loop}"

    def _fresh_name(self, base: str) -> str:
        """``base``, or ``base_1``, ``base_2`` … where a buffer or a stage has that name."""
        name, n = base, 1
        while name in self.buffers or name in self.stages:
            name, n = f"{base}_{n}", n + 1
        return name

    def _name_axis(self, stage: str, var: Var) -> None:
        """Names a loop ``stage.loop``, with a number behind where that name is taken."""
        base = name = f"{stage}.{var.name}"
        n = 1
        while name in self.axes:
            name, n = f"{base}_{n}", n + 1
        self.axes[name] = var
        self.axis_names[var] = name

    def _axis_named(self, name: str) -> Var:
        """The variable of the loop that is called ``stage.loop``."""
        if name not in self.axes:
            raise ScheduleError(f"loop: expected one of {', '.join(self.axes)}, found {name}")
        return self.axes[name]

    def _commit(self, func: PrimFunc, step: Step) -> None:
        """Takes ``func``, if it is well formed, as the function, and records how it was made."""
        try:
            self.mod = verify(func)
        except IRError as error:
            raise ScheduleError(f"{step.primitive} {step.stage}: {error}") from error
        self.trace.append(step)

    def _replace_buffer(self, stage: str, new: Buffer) -> None:
        """A stage's buffer after a primitive has changed its shape or memory."""
        self.buffers[stage] = new


@dataclass(slots=True, eq=False)
class Stage:
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

    schedule: Schedule
    name: str
    op: Operation
    owner: Stage | None = None

    @property
    def tensor(self) -> Tensor:
        """The tensor that the stage computes; the first of several."""
        return self.op.outputs[0]

    @property
    def axis(self) -> tuple[Var, ...]:
        """The spatial axes that te made, one per dimension; none for ``te.extern`` and ``te.scan``.

        After ``split`` and ``fuse`` not all of them are loops any more: see ``leaf_iter_vars``.
        """
        return self.op.axis if isinstance(self.op, ComputeOp) else ()

    @property
    def reduce_axis(self) -> tuple[Var, ...]:
        """The reduce axes that te made; after ``rfactor``, the loop over the parts."""
        return self.op.reduce_axis if isinstance(self.op, ComputeOp) else ()

    @property
    def leaf_iter_vars(self) -> tuple[Var, ...]:
        """The stage's own loops as they stand, outermost first."""
        func = self.schedule.mod
        path = walk(func.body) if isinstance(self.op, ScanOp) else block_path(func, self.name)
        return tuple(x.var for x in loops_of(path) if self._owns(x.var))

    def extent(self, axis: Var) -> int:
        """How many steps one of the stage's loops has."""
        self._check(axis, "extent")
        return get_loop(self.schedule.mod, axis).extent

    # --- loop shape ---

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

    # --- where it is computed ---

    def compute_at(self, parent: Stage | Tensor | str, axis: Var | str) -> None:
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
        stage = parent if isinstance(parent, Stage) else schedule[parent]
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
        if isinstance(self.op, ScanOp):
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

    def set_scope(self, scope: str) -> None:
        """Moves the stage's buffer to another memory.

        Before ``alloc B: int32[10, 8]``; after ``s[B].set_scope("vdla.acc")`` ``alloc B: int32[10,
        8] @"vdla.acc"``. Nothing is copied: what writes and reads the buffer must be able to do so
        there.

        Args:
            scope: ``"vdla.inp"``, ``"vdla.wgt"``, ``"vdla.acc"`` or ``"global"``.

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

        It is for the CPU's caches. Elements one step of ``axis`` apart then lie ``offset`` modulo
        ``factor`` elements apart. Before, rows of ``alloc B: int32[10, 8]`` lie 8 elements apart;
        after ``s[B].storage_align(y, 16, 1)`` it is ``alloc B: int32[10, 8] align(0, 16, 1)``, and
        they lie 17 apart. Rows that begin on lines of their own can be loaded faster; with an odd
        stride, columns don't share a cache's set.

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

    # --- how its loops run ---

    def unroll(self, axis: Var) -> None:
        """A copy of the loop's body for each of its steps, in order.

        On the accelerator each step is then an instruction of its own; a loop that isn't unrolled
        folds into one instruction where it fits. On the CPU it is done for up to 64 copies.
        """
        self._set_kind("unroll", axis, "unrolled")

    def vectorize(self, axis: Var) -> None:
        """The loop's steps as lanes of vector instructions.

        That is a hint to the CPU, whose compiler finds vectors by itself; on the accelerator,
        ``tensorize`` makes a vector's instruction.

        Raises:
            ScheduleError: the stage reduces over the loop, so that its steps depend on each other.
        """
        self._set_kind("vectorize", axis, "vectorized")

    def parallel(self, axis: Var) -> None:
        """Allows the loop's steps to run at the same time.

        The targets here run them one after another all the same.

        Raises:
            ScheduleError: the stage reduces over the loop, so that its steps depend on each other.
        """
        self._set_kind("parallel", axis, "parallel")

    def bind(self, axis: Var, thread: ThreadAxis) -> None:
        """Makes threads of the loop's steps.

        ``te.thread_axis("vthread")`` makes a virtual thread of each step: each has buffers of its
        own, and the threads' instructions interleave one by one, so that one thread computes while
        another one loads (TVM, OSDI'18, section 4.4)::

            for v in 2 vthread: load a (v); gemm a (v)

        becomes::

            load a0 (v = 0); load a1 (v = 1); gemm a0 (v = 0); gemm a1 (v = 1)

        ``te.thread_axis("vthread", threads=2)`` deals the steps to two threads that take turns, a
        step each.

        Raises:
            ScheduleError: the loop is bound already, or the stage reduces over it.
        """
        self._expect("bind")
        where = self._check(axis, "bind")
        func = annotate.bind(self.schedule.mod, where, axis, thread)
        threads = {"threads": thread.threads} if thread.threads else {}
        args = {"axis": self._axis_name(axis), "thread": thread.tag, **threads}
        self.schedule._commit(func, Step("bind", self.name, args))

    def pragma(self, axis: Var, key: str, value: Pragma = True) -> None:
        """A note on a loop, by key; a second note under the same key replaces the first.

        It is kept in the program's text (``for y in 8 @key=value``). The passes here read one key,
        ``"threads"``, which ``bind`` writes.
        """
        self._expect("pragma")
        self._check(axis, "pragma")
        func = annotate.pragma(self.schedule.mod, axis, key, value)
        args = {"axis": self._axis_name(axis), "key": key, "value": value}
        self.schedule._commit(func, Step("pragma", self.name, args))

    def prefetch(self, tensor: Tensor | str, axis: Var, offset: int = 1) -> None:
        """Each step of a loop asks for what the step ``offset`` further on reads of a tensor.

        Before::

            for y in 8: for x in 64: C[y, x] = A[y, x]

        After ``s[C].prefetch(A, y, 2)``::

            for y in 8:
                prefetch A[y + 2, 0 +: 64]
                for x in 64: C[y, x] = A[y, x]

        A hint to the CPU's caches, which changes no result. The accelerator's loads run ahead of
        what computes by themselves; there ``double_buffer`` gives them room. Call it after
        ``split``, ``fuse`` and ``reorder``.

        Raises:
            ScheduleError: the loop doesn't read the tensor, or makes it, the tensor is on chip, or
                the offset is less than 1.
        """
        self._expect("prefetch")
        where = self._check(axis, "prefetch")
        source = self.schedule._name_of(tensor)
        if source not in self.schedule.buffers:
            raise ScheduleError(
                f"prefetch {where}: expected one of "
                f"{', '.join(self.schedule.buffers)}, found {source}"
            )
        buffer = self.schedule.buffers[source]
        func = annotate.prefetch(self.schedule.mod, where, buffer, axis, offset)
        args = {"tensor": source, "axis": self._axis_name(axis), "offset": offset}
        self.schedule._commit(func, Step("prefetch", self.name, args))

    def tensorize(self, axis: Var, intrin: TensorIntrin | Iterable[TensorIntrin]) -> None:
        """Makes a loop and all inside it one call of a tensor intrinsic: an instruction.

        Before::

            for l in 16: acc[y, l] = max(acc[y, l], 0)

        After ``s[acc].tensorize(l, ins)``, where ``ins`` has an intrinsic that does this::

            alu_max_imm(dst=acc[y, 0], x=acc[y, 0], imm=0)

        The intrinsic's behaviour is matched against the loops, so the result can't be another one.
        It is refused where it holds for some values only, unless dtypes, clamps, constants and
        ``value_range`` promises prove that no others occur.

        Args:
            axis: the outermost loop of the vector.
            intrin: an intrinsic; or several, such as all of a target, of which the cheapest that
                does the same is taken.

        Raises:
            ScheduleError: none of them does what the loops do, and the message says what kept the
                closest one from it; more than one stage is inside; or a condition depends on these
                loops.
        """
        self._expect("tensorize")
        where = self._check(axis, "tensorize")
        intrins = (intrin,) if isinstance(intrin, TensorIntrin) else tuple(intrin)
        values = self.schedule.value_ranges()
        func, chosen = tensorize.tensorize(self.schedule.mod, where, axis, intrins, values)
        args = {"axis": self._axis_name(axis), "intrin": chosen.name}
        self.schedule._commit(func, Step("tensorize", self.name, args))

    def _set_kind(self, primitive: str, axis: Var, kind: str) -> None:
        """Changes how a loop runs, and records it as ``primitive``."""
        self._expect(primitive)
        where = self._check(axis, primitive)
        func = annotate.set_kind(self.schedule.mod, where, primitive, axis, kind)
        step = Step(primitive, self.name, {"axis": self._axis_name(axis)})
        self.schedule._commit(func, step)

    # --- bookkeeping ---

    def _expect(self, primitive: str) -> Stage:
        """Itself, if the primitive can handle a stage of this kind."""
        kind, what = self._kind()
        if kind is not None and primitive not in kind:
            takes = f"it takes {', '.join(kind)}" if kind else "give it as a te.compute"
            raise ScheduleError(
                f"{primitive} {self.name}: expected a stage of one tensor by "
                f"te.compute, found {what}; {takes}"
            )
        return self

    def _kind(self) -> tuple[tuple[str, ...] | None, str]:
        """(the primitives that can handle it, or None for all; what it is)."""
        if self.op.kind == "extern":
            return EXTERN, "a te.extern, whose statement stays as it is"
        if self.op.kind == "scan":
            scopes = ("set_scope",) if len(self.op.outputs) == 1 else ()
            return (*SCAN, *scopes), "a te.scan, whose steps follow one another"
        if self.owner is not None:
            return STEP, f"a part of the te.scan {self.owner.name}"
        if len(self.op.outputs) > 1:
            return JOINT, f"{', '.join(t.name for t in self.op.outputs)}, computed together"
        return None, ""

    def _owns(self, axis: Var) -> bool:
        """Whether a variable is, or once was, a loop of this stage."""
        return self.schedule.axis_names.get(axis, "").rpartition(".")[0] == self.name

    def _axis_name(self, axis: Var) -> str:
        """The full name of a loop, ``stage.loop``."""
        return self.schedule.axis_names[axis]

    def _check(self, axis: Var, primitive: str) -> str:
        """The loop's full name, if it is one of this stage's present loops."""
        if not self._owns(axis):
            found = self.schedule.axis_names.get(axis, axis.name)
            mine = ", ".join(v.name for v in self.leaf_iter_vars)
            raise ScheduleError(
                f"{primitive} {self.name}: expected one of its loops ({mine}), found {found}"
            )
        name = self._axis_name(axis)
        if axis in self.schedule.gone:
            raise ScheduleError(
                f"{primitive} {name}: expected a present loop, found that it was "
                f"{self.schedule.gone[axis]}"
            )
        try:
            loop_path(self.schedule.mod, axis)
        except ScheduleError as error:
            raise ScheduleError(
                f"{primitive} {name}: expected a present loop, found that it was tensorized"
            ) from error
        return name

    def _replace_axes(self, old: Sequence[Var], new: Sequence[Var], verb: str) -> None:
        """Records that loops are gone and which ones they became, for messages."""
        for var in new:
            self.schedule._name_axis(self.name, var)
        into = ", ".join(self._axis_name(v) for v in new)
        for var in old:
            self.schedule.gone[var] = f"{verb} into {into}"

    def _reset_axes(self, old: Sequence[Var], what: str) -> None:
        """The op's own axes are loops again; the others that were are not."""
        for var in old:
            self.schedule.gone[var] = what
        for axis in self.op.axes:
            self.schedule.gone.pop(axis, None)


LOOPS = (
    "split",
    "fuse",
    "reorder",
    "unroll",
    "vectorize",
    "parallel",
    "bind",
    "pragma",
    "prefetch",
)
JOINT = (*LOOPS, "cache_read", "rfactor")
STEP = (*LOOPS, "tensorize", "cache_read")
SCAN = ("split", "unroll", "pragma", "prefetch")
EXTERN = ("compute_at", "cache_read")

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


def create_schedule(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "main",
) -> Schedule:
    """A schedule, with no primitive applied yet, of the function that computes ``outputs``.

    Args:
        outputs: a tensor or several; the function's last parameters.
        inputs: its first parameters; by default the placeholders in order of first use.
        name: the function's.

    Raises:
        TEError: the outputs need a placeholder that isn't among the inputs, or are placeholders.
    """
    group = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    given = [t for t in producers(group) if t.op is None] if inputs is None else list(inputs)
    return Schedule(build(given, group, name))
