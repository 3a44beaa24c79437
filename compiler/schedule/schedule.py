"""Schedules, as users hold them: a ``Schedule`` of a function, with the primitives that make new
stages; replay.

A stage and its primitives are in ``stage``. The rewriting itself is in the modules beside this one
(``loops``, ``attach``, ``cache`` …), which know functions, blocks and loops but no tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from vdla.compiler.schedule import cache, rfactor
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import PRIMITIVES, Stage
from vdla.compiler.schedule.state import State
from vdla.compiler.schedule.trace import Step, Trace
from vdla.compiler.te.func import Built, build
from vdla.compiler.te.scan import ScanOp
from vdla.compiler.te.tensor import (
    ComputeOp,
    Operation,
    TEError,
    Tensor,
    ThreadAxis,
    producers,
)
from vdla.compiler.tir.ir import IRError, PrimFunc, Var
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.verify import verify

_checks_each = ContextVar("verify after every primitive", default=True)


class Schedule(State[Stage]):
    """Schedule of the computation of some tensors; ``s[C]`` is the stage that computes ``C``.

    Every primitive rewrites the function ``mod``, which is verified and can be interpreted after
    each of them. A primitive that doesn't apply raises a ``ScheduleError``.

    Attributes:
        built: the function as it was before any primitive, with its tensors and operations.
        mod: the function as it stands.
        trace: the primitives applied so far, which ``replay`` applies to another schedule.
        stages: the stages by name.
        buffers: the buffers by name, as they stand.
    """

    def __init__(self, built: Built, *, checked: bool = True) -> None:
        super().__init__(built, checked=checked)
        for name, op in built.stages.items():
            self._add_stage(name, op)
        for op in built.stages.values():
            if op.members:
                self._claim(op)

    def __getitem__(self, key: Tensor | Operation | str) -> Stage:
        """The stage of a tensor; tensors that are computed together have one stage."""
        return self._stage(key)

    def check(self) -> None:
        """Verifies the function as it stands.

        Raises:
            ScheduleError: it isn't well formed.
        """
        try:
            verify(self.mod)
        except IRError as error:
            raise ScheduleError(str(error)) from error

    def lower(self) -> PrimFunc:
        """``mod`` without blocks: loops, conditions, stores and intrinsic calls remain."""
        return verify(flatten_blocks(self.mod))

    def cache_read(
        self, tensor: Tensor | str, scope: str, readers: Tensor | str | Sequence[Tensor | str]
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
            scope: the memory: ``"global"``; ``"vdla.inp"``, ``"vdla.wgt"`` or ``"vdla.acc"`` on the
                accelerator; in a kernel ``"shared"`` by the threads of a group, or ``"local"`` to a
                thread.
            readers: the stage, or stages, that are to read the copy; others go on reading the
                tensor.

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
        several = [readers] if isinstance(readers, Tensor | str) else readers
        group = [self[r]._expect("cache_read").name for r in several]
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
            scope: the memory: ``"global"``; ``"vdla.inp"``, ``"vdla.wgt"`` or ``"vdla.acc"`` on the
                accelerator; in a kernel ``"shared"`` by the threads of a group, or ``"local"`` to a
                thread.

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
        factored = rfactor.rfactor(self.mod, stage.name, op, targets, axis, factor_axis, name)
        args = {"axis": stage._axis_name(axis), "factor_axis": factor_axis}
        self._commit(factored.func, Step("rfactor", stage.name, args))
        stage.op = factored.whole
        self._name_axis(stage.name, factored.whole.reduce_axis[0])
        stage._reset_axes(old, f"factored out into {name}")
        for part in factored.parts.outputs:
            self.names[part] = part.name
            self.buffers[part.name] = part
        self._add_stage(name, factored.parts)
        parts = tuple(factored.parts.outputs)
        return parts[0] if len(parts) == 1 else parts

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

    def _claim(self, op: Operation) -> None:
        """Makes members parts of the stage; the leading axis of a scan's steps is its loop."""
        stage = self[op]
        for tensor in op.members:
            self[tensor].owner = stage
        if not isinstance(op, ScanOp):
            return
        for tensor in op.body:
            loop = self.axis_names[op.scan_axis]
            self.gone[tensor.axis[0]] = f"made the scan's loop {loop}"


def create_schedule(
    outputs: Tensor | Operation | Sequence[Tensor | Operation],
    inputs: Sequence[Tensor] | None = None,
    name: str = "main",
) -> Schedule:
    """A schedule, with no primitive applied yet, of the function that computes ``outputs``.

    Args:
        outputs: a tensor, an operation (``C.op``, as in TVM) or several; the function's last
            parameters. What is computed together with one of them is an output, too.
        inputs: its first parameters; by default the placeholders in order of first use.
        name: the function's.

    Raises:
        TEError: the outputs need a placeholder that isn't among the inputs, are placeholders, or
            are something else.
    """
    group = _outputs(outputs)
    given = [t for t in producers(group) if t.op is None] if inputs is None else list(inputs)
    return Schedule(build(given, group, name), checked=_checks_each.get())


@contextmanager
def checked_at_the_end() -> Iterator[None]:
    """Schedules made within it aren't verified after every primitive, which takes a third of the
    time of scheduling; whoever makes them calls ``check`` when all primitives are applied."""
    token = _checks_each.set(False)
    try:
        yield
    finally:
        _checks_each.reset(token)


def _outputs(given: object) -> list[Tensor]:
    """The tensors that outputs stand for, and behind them what is computed together with them."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    result: dict[Tensor, None] = {}
    for each in listed:
        if not isinstance(each, Tensor | Operation):
            what = "None, which is a placeholder's operation" if each is None else repr(each)
            raise TEError(
                "create_schedule: expected a tensor or an operation, as C or C.op, or a list of "
                f"them, found {what}"
            )
        result |= dict.fromkeys([each] if isinstance(each, Tensor) else each.outputs)
    if not result:
        raise TEError("create_schedule: expected at least one output, found none")
    return list(result | dict.fromkeys(t for one in result if one.op for t in one.op.outputs))
