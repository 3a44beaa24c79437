"""Primitives that say how a stage's loops run: as copies, vectors, threads, instructions."""

from __future__ import annotations

from collections.abc import Iterable

from vdla.compiler.schedule import annotate, tensorize
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.state import StageBase
from vdla.compiler.schedule.trace import Step
from vdla.compiler.te.tensor import Tensor, ThreadAxis
from vdla.compiler.tir.ir import Pragma, Var
from vdla.compiler.tir.ir.intrin import TensorIntrin


class Running(StageBase):
    """Primitives that choose how a stage's loops run."""

    __slots__ = ()

    def unroll(self, axis: Var) -> None:
        """A copy of the loop's body for each of its steps, in order.

        On the accelerator each step is then an instruction of its own; a loop that isn't unrolled
        folds into one instruction where it fits. On the CPU it is done for up to 64 copies.
        """
        self._set_kind("unroll", axis, "unrolled")

    def vectorize(self, axis: Var) -> None:
        """The loop's steps as lanes of vector instructions.

        On the CPU a loop of 2, 4, 8, … 64 steps becomes vector instructions, wherever its lanes
        read and write; on the accelerator, ``tensorize`` makes a vector's instruction.

        Raises:
            ScheduleError: the stage reduces over the loop, so that its steps depend on each other.
        """
        self._set_kind("vectorize", axis, "vectorized")

    def parallel(self, axis: Var) -> None:
        """Allows the loop's steps to run at the same time.

        On the CPU threads share them, where a module runs with more than one; the accelerator runs
        them one after another.

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

        ``te.thread_axis("blockIdx.x")`` makes each step a group of a kernel's threads, and
        ``te.thread_axis("threadIdx.x")`` each step a thread of a group; ``.y`` and ``.z`` are the
        other dimensions of grid and group. Stages that one group computes share its threads: where
        a loop bound to ``threadIdx.x`` stands inside another one, the threads deal its steps out
        among themselves, which is how they load into shared memory together. Bind the loops of a
        reader before a stage in shared memory is attached to it.

        Raises:
            ScheduleError: the loop is bound already, or the stage reduces over it.
        """
        self._expect("bind")
        where = self._check(axis, "bind")
        if not isinstance(thread, ThreadAxis):
            raise ScheduleError(
                f'bind {where}: expected a thread, as te.thread_axis("vthread"), found {thread!r}'
            )
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
        intrins = _listed(where, intrin)
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


def _listed(where: str, intrin: object) -> tuple[TensorIntrin, ...]:
    """One intrinsic, or all of several."""
    several = intrin if isinstance(intrin, Iterable) else (intrin,)
    intrins = tuple(several)
    for each in intrins:
        if not isinstance(each, TensorIntrin):
            raise ScheduleError(
                f"tensorize {where}: expected an intrinsic, or several as vdla.intrinsics gives "
                f"them, found {intrin!r}"
            )
    return intrins
