"""State that a schedule's primitives work on: the function as it stands, and the names for what is
in it.

``State`` has them for the whole function, ``StageBase`` for one stage, with the checks that every
primitive of a stage begins with. What users hold is in ``schedule`` and ``stage``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step, Trace
from vdla.compiler.schedule.tree import block_path, get_loop, loop_path, loops_of
from vdla.compiler.te.assemble import AssembleOp
from vdla.compiler.te.func import Built
from vdla.compiler.te.scan import ScanOp
from vdla.compiler.te.tensor import ComputeOp, Operation, Tensor
from vdla.compiler.tir.in_bounds import check_bounds
from vdla.compiler.tir.ir import Buffer, IRError, PrimFunc, Var
from vdla.compiler.tir.values import value_ranges
from vdla.compiler.tir.verify import Covered, verify
from vdla.compiler.tir.visitor import walk

AnyStage = TypeVar("AnyStage", bound="StageBase")

# The primitives that can handle a stage, by what it is.
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


class State(Generic[AnyStage]):
    """A function under way, and the names of its stages, buffers and loops.

    Attributes:
        built: the function as it was before any primitive, with its tensors and operations.
        mod: the function as it stands.
        trace: the primitives applied so far.
        stages: the stages by name.
        names: the name of each tensor's buffer.
        buffers: the buffers by name, as they stand.
        writers: by the name of a buffer, that of the stage that writes it.
        axes: every loop that there is or was, by its full name ``stage.loop``.
        axis_names: the full name of each loop.
        gone: what became of the loops that are no more, for messages.
        checked: whether the function is verified after every primitive; else whoever compiles it
            finds what is wrong.
        covered: the blocks that were found to stay within their regions.
        known_values: the least and the greatest value of buffers, by name, as far as known.
        valued: the buffers that there were when these were found.
    """

    def __init__(self, built: Built, *, checked: bool = True) -> None:
        self.built, self.checked = built, checked
        self.covered: Covered = {}
        self.mod = built.func
        if checked:
            self.mod = verify(built.func, self.covered)
            check_bounds(self.mod)
        self.trace: Trace = []
        self.stages: dict[str, AnyStage] = {}
        self.names: dict[Tensor, str] = {t: b.name for t, b in built.buffers.items()}
        self.buffers: dict[str, Buffer] = {b.name: b for b in built.buffers.values()}
        self.writers: dict[str, str] = {}
        self.axes: dict[str, Var] = {}
        self.axis_names: dict[Var, str] = {}
        self.gone: dict[Var, str] = {}
        self.known_values: dict[str, tuple[int, int]] = {}
        self.valued: frozenset[str] = frozenset()

    def _stage(self, key: Tensor | Operation | str) -> AnyStage:
        """The stage that computes a tensor."""
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
        if not isinstance(key, Tensor | Operation):
            raise ScheduleError(f"stage: expected a tensor, an operation or a name, found {key!r}")
        tensor = key.outputs[0] if isinstance(key, Operation) else key
        return self.names.get(tensor, tensor.name)

    def value_ranges(self) -> dict[str, tuple[int, int]]:
        """The least and greatest value that each buffer of integers can hold, by name.

        What is known of a stage stays known after it is tensorized.
        """
        if not self.valued.issuperset(self.buffers):
            self.known_values = value_ranges(self.mod, self.known_values)
            self.valued = frozenset(self.buffers)
        return self.known_values

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
            self.mod = verify(func, self.covered) if self.checked else func
        except IRError as error:
            raise ScheduleError(f"{step.primitive} {step.stage}: {error}") from error
        self.trace.append(step)

    def _replace_buffer(self, stage: str, new: Buffer) -> None:
        """A stage's buffer after a primitive has changed its shape or memory."""
        self.buffers[stage] = new


@dataclass(slots=True, eq=False)
class StageBase:
    """Fields and checks that all primitives of a stage need; the attributes are those
    of ``Stage``.
    """

    schedule: State[Any]
    name: str
    op: Operation
    owner: StageBase | None = None

    @property
    def tensor(self) -> Tensor:
        """The tensor that the stage computes; the first of several."""
        return self.op.outputs[0]

    @property
    def axis(self) -> tuple[Var, ...]:
        """The spatial axes that te made, one per dimension; none for ``te.extern`` and the like.

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
        if isinstance(self.op, AssembleOp):
            return ()
        path = walk(func.body) if isinstance(self.op, ScanOp) else block_path(func, self.name)
        return tuple(x.var for x in loops_of(path) if self._owns(x.var))

    def extent(self, axis: Var) -> int:
        """Number of steps of one of the stage's loops."""
        self._check(axis, "extent")
        return get_loop(self.schedule.mod, axis).extent

    def _expect(self, primitive: str) -> Self:
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
        if self.op.kind == "assemble":
            return (), "a te.assemble, whose parts are stages of their own"
        if self.owner is not None:
            return STEP, f"a part of the te.{self.owner.op.kind} {self.owner.name}"
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
        if not isinstance(axis, Var):
            raise ScheduleError(
                f"{primitive} {self.name}: expected a loop, as {self.name}.axis[0], found {axis!r}"
            )
        if not self._owns(axis):
            result = self.schedule.axis_names.get(axis, axis.name)
            mine = ", ".join(v.name for v in self.leaf_iter_vars)
            raise ScheduleError(
                f"{primitive} {self.name}: expected one of its loops ({mine}), found {result}"
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
