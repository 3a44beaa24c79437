"""The user's handle: a function, its stages by tensor, and what has been done to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vdla.compiler.schedule import annotate, attach, cache, inline, loops, rfactor, tensorize
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step, Trace
from vdla.compiler.schedule.tree import block_path, get_block, get_loop, loop_path, loops_of
from vdla.compiler.te.func import Built, build
from vdla.compiler.te.scan import ScanOp
from vdla.compiler.te.tensor import ComputeOp, Operation, Tensor, ThreadAxis, producers
from vdla.compiler.tir.intrin import TensorIntrin
from vdla.compiler.tir.ir import Block, Buffer, IRError, Pragma, PrimFunc, Var
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.values import value_ranges
from vdla.compiler.tir.verify import verify
from vdla.compiler.tir.visitor import walk


class Schedule:
    """`s[C]` is the stage that computes the tensor C; `mod` is the function as it stands.

    Every primitive rewrites `mod`, which is verified and can be interpreted at every point.
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
            self.add_stage(name, op)
        for op in built.stages.values():
            if isinstance(op, ScanOp):
                self.claim(op)

    def __getitem__(self, key: Tensor | Operation | str) -> Stage:
        """The stage of a tensor; tensors that are computed together have one stage."""
        name = self.name_of(key)
        name = self.writers.get(name, name)
        if name not in self.stages:
            known = ", ".join(self.stages)
            raise ScheduleError(f"stage: expected one of {known}, found {name}")
        return self.stages[name]

    def name_of(self, key: Tensor | Operation | str) -> str:
        if isinstance(key, str):
            return key
        tensor = key.outputs[0] if isinstance(key, Operation) else key
        return self.names.get(tensor, tensor.name)

    def lower(self) -> PrimFunc:
        """`mod` without blocks: loops, conditions, stores and intrinsic calls in loop variables."""
        return verify(flatten_blocks(self.mod))

    # --- memories ---

    def cache_read(
        self, tensor: Tensor | str, scope: str, readers: Sequence[Tensor | str]
    ) -> Tensor:
        """A copy of `tensor` in `scope` that the `readers` read instead; a stage of its own."""
        source = self.name_of(tensor)
        if source not in self.buffers:
            raise ScheduleError(
                f"cache_read: expected one of {', '.join(self.buffers)}, found {source}"
            )
        group = [self[r].expect("cache_read").name for r in readers]
        name = self.fresh_name(f"{source}_{scope.rsplit('.', 1)[-1]}")
        func, copy = cache.cache_read(self.mod, self.buffers[source], scope, group, name)
        self.commit(func, Step("cache_read", source, {"scope": scope, "readers": group}))
        self.add_buffer(copy)
        return copy

    def cache_write(self, tensor: Tensor | str, scope: str) -> Tensor:
        """`tensor` is computed in `scope` and copied; the new stage computes, the old one copies.

        Call it before other primitives on the stage.
        """
        stage = self[tensor].expect("cache_write")
        name = self.fresh_name(f"{stage.name}_{scope.rsplit('.', 1)[-1]}")
        assert isinstance(stage.op, ComputeOp)
        func, new = cache.cache_write(
            self.mod, stage.name, self.buffers[stage.name], stage.op, scope, name
        )
        self.commit(func, Step("cache_write", stage.name, {"scope": scope}))
        self.add_buffer(new)
        return new

    # --- reductions ---

    def rfactor(
        self, tensor: Tensor | str, axis: Var, factor_axis: int = 0
    ) -> Tensor | tuple[Tensor, ...]:
        """Partial results, one for each step of a loop of a reduction; a stage of their own.

        The new tensor has that loop as dimension `factor_axis`. The stage then combines the parts;
        its loops, and the new stage's, are those that te makes: `s[C].op.reduce_axis` is the loop
        over the parts. Of a stage of several tensors it gives as many. Call it after splitting the
        reduction and before other primitives on the stage.
        """
        stage = self[tensor].expect("rfactor")
        stage.check(axis, "rfactor")
        op, old = stage.op, stage.leaf_iter_vars
        assert isinstance(op, ComputeOp)
        name = self.fresh_name(f"{stage.name}_rf")
        targets = [self.buffers[self.names[t]] for t in op.outputs]
        made = rfactor.rfactor(self.mod, stage.name, op, targets, axis, factor_axis, name)
        args = {"axis": stage.axis_name(axis), "factor_axis": factor_axis}
        self.commit(made.func, Step("rfactor", stage.name, args))
        stage.op = made.whole
        self.name_axis(stage.name, made.whole.reduce_axis[0])
        stage.reset_axes(old, f"factored out into {name}")
        for part in made.parts.outputs:
            self.names[part] = part.name
            self.buffers[part.name] = part
        self.add_stage(name, made.parts)
        parts = tuple(made.parts.outputs)
        return parts[0] if len(parts) == 1 else parts

    # --- replay ---

    def replay(self, trace: Trace, intrinsics: Mapping[str, TensorIntrin] | None = None) -> None:
        """Applies the steps of another schedule of the same tensors."""
        for step in trace:
            self.apply(step, intrinsics or {})

    def apply(self, step: Step, intrinsics: Mapping[str, TensorIntrin]) -> None:
        args: dict[str, Any] = dict(step.args)
        if step.primitive in ("cache_read", "cache_write"):
            getattr(self, step.primitive)(step.stage, **args)
            return
        if step.primitive == "rfactor":
            self.rfactor(step.stage, self.axis_named(args["axis"]), args["factor_axis"])
            return
        stage = self[step.stage]
        if step.primitive not in PRIMITIVES:
            raise ScheduleError(
                f"replay: expected a primitive of {', '.join(PRIMITIVES)}, found {step.primitive!r}"
            )
        if "axes" in args:
            getattr(stage, step.primitive)(*(self.axis_named(a) for a in args["axes"]))
            return
        if "axis" in args:
            args["axis"] = self.axis_named(args["axis"])
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
        """The least and greatest value of every buffer that something is known of, by name."""
        self.known_values = value_ranges(self.mod, self.known_values)
        return self.known_values

    # --- bookkeeping ---

    def add_stage(self, name: str, op: Operation) -> None:
        self.stages[name] = Stage(self, name, op)
        for tensor in op.outputs:
            if len(op.outputs) == 1:
                self.names[tensor] = name
            self.writers[self.names[tensor]] = name
        for axis in op.axes:
            self.name_axis(name, axis)

    def add_buffer(self, tensor: Tensor) -> None:
        """A tensor that a primitive made, and its stage."""
        assert tensor.op is not None
        self.names[tensor] = tensor.name
        self.buffers[tensor.name] = tensor
        self.add_stage(tensor.name, tensor.op)

    def claim(self, scan: ScanOp) -> None:
        """The leading axes of a scan's steps are its loop."""
        stage = self[scan]
        for tensor in scan.members:
            self[tensor].owner = stage
        for tensor in scan.body:
            loop = self.axis_names[scan.scan_axis]
            self.gone[tensor.axis[0]] = f"made the scan's loop {loop}"

    def fresh_name(self, base: str) -> str:
        name, n = base, 1
        while name in self.buffers or name in self.stages:
            name, n = f"{base}_{n}", n + 1
        return name

    def name_axis(self, stage: str, var: Var) -> None:
        base = name = f"{stage}.{var.name}"
        n = 1
        while name in self.axes:
            name, n = f"{base}_{n}", n + 1
        self.axes[name] = var
        self.axis_names[var] = name

    def axis_named(self, name: str) -> Var:
        if name not in self.axes:
            raise ScheduleError(f"loop: expected one of {', '.join(self.axes)}, found {name}")
        return self.axes[name]

    def commit(self, func: PrimFunc, step: Step) -> None:
        try:
            self.mod = verify(func)
        except IRError as error:
            raise ScheduleError(f"{step.primitive} {step.stage}: {error}") from error
        self.trace.append(step)

    def replace_buffer(self, stage: str, new: Buffer) -> None:
        self.buffers[stage] = new


@dataclass(slots=True, eq=False)
class Stage:
    """The loops of one operation. Loops are given and returned as their variables.

    `owner` is the stage of the scan that it is a step of, or None.
    """

    schedule: Schedule
    name: str
    op: Operation
    owner: Stage | None = None

    @property
    def tensor(self) -> Tensor:
        """What it computes; the first of several tensors."""
        return self.op.outputs[0]

    @property
    def axis(self) -> tuple[Var, ...]:
        return self.op.axis if isinstance(self.op, ComputeOp) else ()

    @property
    def reduce_axis(self) -> tuple[Var, ...]:
        return self.op.reduce_axis if isinstance(self.op, ComputeOp) else ()

    @property
    def block(self) -> Block:
        return get_block(self.schedule.mod, self.name)

    @property
    def leaf_iter_vars(self) -> tuple[Var, ...]:
        """The stage's own loops as they stand, outermost first."""
        func = self.schedule.mod
        path = walk(func.body) if isinstance(self.op, ScanOp) else block_path(func, self.name)
        return tuple(x.var for x in loops_of(path) if self.owns(x.var))

    def extent(self, axis: Var) -> int:
        self.check(axis, "extent")
        return get_loop(self.schedule.mod, axis).extent

    # --- loop shape ---

    def split(
        self, axis: Var, factor: int | None = None, nparts: int | None = None
    ) -> tuple[Var, Var]:
        """(outer, inner) of a loop, `factor` steps in the inner or `nparts` in the outer one."""
        self.expect("split")
        where = self.check(axis, "split")
        func, outer, inner = loops.split(self.schedule.mod, where, axis, factor, nparts)
        size = {"factor": factor} if factor is not None else {"nparts": nparts}
        step = Step("split", self.name, {"axis": self.axis_name(axis), **size})
        self.schedule.commit(func, step)
        self.replace_axes((axis,), (outer, inner), "split")
        return outer, inner

    def tile(self, y: Var, x: Var, y_factor: int, x_factor: int) -> tuple[Var, Var, Var, Var]:
        """(y outer, x outer, y inner, x inner) in this order: two splits and a reorder."""
        yo, yi = self.split(y, factor=y_factor)
        xo, xi = self.split(x, factor=x_factor)
        self.reorder(yo, xo, yi, xi)
        return yo, xo, yi, xi

    def fuse(self, *axes: Var) -> Var:
        """Loops directly inside one another as one."""
        self.expect("fuse")
        if not axes:
            raise ScheduleError(f"fuse {self.name}: expected at least one loop, found none")
        fused = axes[0]
        for axis in axes[1:]:
            where = self.check(fused, "fuse")
            self.check(axis, "fuse")
            func, new = loops.fuse(self.schedule.mod, where, fused, axis)
            names = [self.axis_name(fused), self.axis_name(axis)]
            self.schedule.commit(func, Step("fuse", self.name, {"axes": names}))
            self.replace_axes((fused, axis), (new,), "fused")
            fused = new
        return fused

    def reorder(self, *axes: Var) -> None:
        """The named loops in this order, outermost first, in the places they hold."""
        self.expect("reorder")
        for axis in axes:
            self.check(axis, "reorder")
        if len(axes) < 2:
            return
        func = loops.reorder(self.schedule.mod, self.name, axes)
        names = [self.axis_name(a) for a in axes]
        self.schedule.commit(func, Step("reorder", self.name, {"axes": names}))

    # --- where it is computed ---

    def compute_at(self, parent: Stage | Tensor | str, axis: Var | str) -> None:
        """Computed in each step of a loop of its reader, as much as that step needs."""
        self.expect("compute_at")
        schedule = self.schedule
        stage = parent if isinstance(parent, Stage) else schedule[parent]
        var = axis if isinstance(axis, Var) else schedule.axis_named(axis)
        stage.check(var, f"compute_at {self.name} at")
        func, buffer = attach.compute_at(schedule.mod, self.name, stage.name, var)
        args = {"parent": stage.name, "axis": stage.axis_name(var)}
        schedule.commit(func, Step("compute_at", self.name, args))
        schedule.replace_buffer(self.name, buffer)

    def compute_root(self) -> None:
        """Computed by itself again, before its readers: undoes compute_at.

        Its loops are then those that te made; what was done to them is gone. A stage that isn't
        attached stays as it is.
        """
        schedule, step = self.schedule, Step("compute_root", self.name)
        if isinstance(self.op, ScanOp):
            schedule.commit(schedule.mod, step)
            return
        old = self.leaf_iter_vars
        func, buffer = attach.compute_root(schedule.mod, self.name, self.op.axes)
        attached = func is not schedule.mod
        schedule.commit(func, step)
        if attached:
            schedule.replace_buffer(self.name, buffer)
            self.reset_axes(old, "made whole by compute_root")

    def compute_inline(self) -> None:
        """Computed wherever it is read, and nowhere stored."""
        self.expect("compute_inline")
        schedule = self.schedule
        func = inline.compute_inline(schedule.mod, self.name)
        schedule.commit(func, Step("compute_inline", self.name))
        del schedule.stages[self.name], schedule.buffers[self.name]

    def set_scope(self, scope: str) -> None:
        """The memory that holds the stage's buffer."""
        self.expect("set_scope")
        old = self.schedule.buffers[self.name]
        func, new = cache.set_scope(self.schedule.mod, self.name, old, scope)
        self.schedule.commit(func, Step("set_scope", self.name, {"scope": scope}))
        self.schedule.replace_buffer(self.name, new)

    def double_buffer(self, copies: int = 2) -> None:
        """As many copies of the stage's buffer, which the loop it is attached to takes in turn.

        While one is read the next can be filled. Virtual threads give every thread a buffer of its
        own; copies serve one thread, step by step. Call it after compute_at.
        """
        self.expect("double_buffer")
        func, new = cache.double_buffer(self.schedule.mod, self.name, copies)
        self.schedule.commit(func, Step("double_buffer", self.name, {"copies": copies}))
        self.schedule.replace_buffer(self.name, new)

    def storage_align(self, axis: Var, factor: int, offset: int) -> None:
        """Elements one step of `axis` apart lie `offset` modulo `factor` elements apart.

        Rows that begin on lines of their own can be loaded faster; with an odd stride columns don't
        share a cache's set. For buffers of the CPU: on chip entries lie densely.
        """
        self.expect("storage_align")
        if axis not in self.axis:
            raise ScheduleError(
                f"storage_align {self.name}: expected one of its axes "
                f"({', '.join(a.name for a in self.axis)}), found {axis.name}"
            )
        dim = self.axis.index(axis)
        func, new = cache.storage_align(self.schedule.mod, self.name, dim, factor, offset)
        args = {"axis": self.axis_name(axis), "factor": factor, "offset": offset}
        self.schedule.commit(func, Step("storage_align", self.name, args))
        self.schedule.replace_buffer(self.name, new)

    # --- how its loops run ---

    def unroll(self, axis: Var) -> None:
        self.set_kind("unroll", axis, "unrolled")

    def vectorize(self, axis: Var) -> None:
        self.set_kind("vectorize", axis, "vectorized")

    def parallel(self, axis: Var) -> None:
        self.set_kind("parallel", axis, "parallel")

    def bind(self, axis: Var, thread: ThreadAxis) -> None:
        """`te.thread_axis("vthread")` makes a virtual thread of each step.

        `te.thread_axis("vthread", threads=2)` deals the steps to two that take turns.
        """
        self.expect("bind")
        where = self.check(axis, "bind")
        func = annotate.bind(self.schedule.mod, where, axis, thread)
        threads = {"threads": thread.threads} if thread.threads else {}
        args = {"axis": self.axis_name(axis), "thread": thread.tag, **threads}
        self.schedule.commit(func, Step("bind", self.name, args))

    def pragma(self, axis: Var, key: str, value: Pragma = True) -> None:
        """A note on a loop for later passes."""
        self.expect("pragma")
        self.check(axis, "pragma")
        func = annotate.pragma(self.schedule.mod, axis, key, value)
        args = {"axis": self.axis_name(axis), "key": key, "value": value}
        self.schedule.commit(func, Step("pragma", self.name, args))

    def prefetch(self, tensor: Tensor | str, axis: Var, offset: int = 1) -> None:
        """Each step of a loop asks for what the step `offset` further on reads of a tensor.

        A hint to the CPU's caches. The accelerator's loads run ahead of what computes by tokens;
        there `double_buffer` gives them room. Call it after split, fuse and reorder.
        """
        self.expect("prefetch")
        where = self.check(axis, "prefetch")
        source = self.schedule.name_of(tensor)
        if source not in self.schedule.buffers:
            raise ScheduleError(
                f"prefetch {where}: expected one of "
                f"{', '.join(self.schedule.buffers)}, found {source}"
            )
        buffer = self.schedule.buffers[source]
        func = annotate.prefetch(self.schedule.mod, where, buffer, axis, offset)
        args = {"tensor": source, "axis": self.axis_name(axis), "offset": offset}
        self.schedule.commit(func, Step("prefetch", self.name, args))

    def tensorize(self, axis: Var, intrin: TensorIntrin | Iterable[TensorIntrin]) -> None:
        """The loop and all inside it as one call of an intrinsic.

        Given several intrinsics, such as all of a target, the cheapest that does the same is taken.
        An intrinsic that holds for some values only is refused unless dtypes, clamps, constants and
        `value_range`s prove that no others occur.
        """
        self.expect("tensorize")
        where = self.check(axis, "tensorize")
        intrins = (intrin,) if isinstance(intrin, TensorIntrin) else tuple(intrin)
        values = self.schedule.value_ranges()
        func, chosen = tensorize.tensorize(self.schedule.mod, where, axis, intrins, values)
        args = {"axis": self.axis_name(axis), "intrin": chosen.name}
        self.schedule.commit(func, Step("tensorize", self.name, args))

    def set_kind(self, primitive: str, axis: Var, kind: str) -> None:
        self.expect(primitive)
        where = self.check(axis, primitive)
        func = annotate.set_kind(self.schedule.mod, where, primitive, axis, kind)
        step = Step(primitive, self.name, {"axis": self.axis_name(axis)})
        self.schedule.commit(func, step)

    # --- bookkeeping ---

    def expect(self, primitive: str) -> Stage:
        """Itself, if the primitive can handle such a stage."""
        kind, what = self.kind()
        if kind is not None and primitive not in kind:
            takes = f"it takes {', '.join(kind)}" if kind else "give it as a te.compute"
            raise ScheduleError(
                f"{primitive} {self.name}: expected a stage of one tensor by "
                f"te.compute, found {what}; {takes}"
            )
        return self

    def kind(self) -> tuple[tuple[str, ...] | None, str]:
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

    def owns(self, axis: Var) -> bool:
        return self.schedule.axis_names.get(axis, "").rpartition(".")[0] == self.name

    def axis_name(self, axis: Var) -> str:
        return self.schedule.axis_names[axis]

    def check(self, axis: Var, primitive: str) -> str:
        """The loop's full name, if it is one of this stage's present loops."""
        if not self.owns(axis):
            found = self.schedule.axis_names.get(axis, axis.name)
            mine = ", ".join(v.name for v in self.leaf_iter_vars)
            raise ScheduleError(
                f"{primitive} {self.name}: expected one of its loops ({mine}), found {found}"
            )
        name = self.axis_name(axis)
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

    def replace_axes(self, old: Sequence[Var], new: Sequence[Var], verb: str) -> None:
        for var in new:
            self.schedule.name_axis(self.name, var)
        into = ", ".join(self.axis_name(v) for v in new)
        for var in old:
            self.schedule.gone[var] = f"{verb} into {into}"

    def reset_axes(self, old: Sequence[Var], what: str) -> None:
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
    """A schedule of the function that computes ``outputs``.

    Its parameters are ``inputs`` (by default the placeholders in order of first use), then outputs.
    """
    group = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    given = [t for t in producers(group) if t.op is None] if inputs is None else list(inputs)
    return Schedule(build(given, group, name))
