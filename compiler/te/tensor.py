"""Tensors and how they are computed, under TVM's names.

A ``Tensor`` is a ``Buffer`` of the loop IR with a recipe, so ``A[i, j]`` is an ordinary ``Load``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import cast

from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    THREAD_TAGS,
    Buffer,
    Expr,
    ExprLike,
    Load,
    Var,
    as_expr,
)
from vdla.compiler.tir.visitor import loads, substitute_expr, walk_expr
from vdla.support.errors import UserError


class TEError(UserError):
    """A tensor expression is not well formed; the message says what was expected and found."""


@dataclass(frozen=True, slots=True, eq=False)
class IterVar(Var):
    """An axis of a tensor or of a reduction: a variable that runs over 0 to ``extent - 1``.

    ``kind`` is ``"spatial"`` or ``"reduce"``. Schedules name the loop of an axis by it.
    """

    extent: int = 1
    kind: str = "spatial"


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """Thread axis that ``Stage.bind`` binds a loop to; ``te.thread_axis`` makes it.

    ``tag`` says what kind of thread it is; ``threads`` is how many threads share the loop's steps,
    or 0 where each step is a thread.
    """

    tag: str
    threads: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Reducer:
    """Combination of two values, or of two tuples of values; in any order, from ``identity`` on.

    ``lhs`` and ``rhs`` are variables that stand for the two, ``result`` is what they combine to.
    """

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]

    def combine(self, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> tuple[Expr, ...]:
        """``result`` with two given values, or tuples, in place of ``lhs`` and ``rhs``."""
        mapping = dict(zip((*self.lhs, *self.rhs), (*lhs, *rhs), strict=True))
        return tuple(substitute_expr(e, mapping) for e in self.result)


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expr):
    """One value of a reduction; it may only be the whole body of a compute.

    Attributes:
        reducer: how two steps combine.
        source: what each step contributes, one expression per value that is reduced together.
        axes: the reduce axes.
        init: what the values start from: the reducer's identity, or what the user gave.
        value_index: which of the values this is.
    """

    reducer: Reducer
    source: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    init: tuple[Expr, ...]
    value_index: int = 0

    @property
    def dtype(self) -> str:
        """The dtype of this one of the values."""
        return self.source[self.value_index].dtype


class Operation:
    """Operation that computes tensors, such as ``ComputeOp`` or ``ScanOp``; one stage of a
    schedule.
    """

    __slots__ = ()
    kind = "compute"
    name: str
    outputs: list[Tensor]

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """The loops that the operation makes, spatial ones first."""
        return ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that it reads, in order of appearance."""
        raise NotImplementedError

    @property
    def members(self) -> tuple[Tensor, ...]:
        """The tensors that are computed as a part of it alone, in order; few kinds have some."""
        return ()

    @property
    def places(self) -> Mapping[Tensor, Tensor]:
        """For a tensor without a buffer of its own, the output in whose buffer it lies."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class ComputeOp(Operation):
    """The operation of ``te.compute``: the elements at ``axis`` of its outputs are ``body``.

    ``body`` has one value for each output. The values of a reduction are updated together: all of
    them from the old ones.
    """

    name: str
    axis: tuple[IterVar, ...]
    body: tuple[Expr, ...]
    outputs: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def reduce(self) -> Reduce | None:
        """The reduction that the body is, with all of its values; None where it isn't one."""
        return self.body[0] if isinstance(self.body[0], Reduce) else None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes of the reduction; none where the body isn't one."""
        return () if self.reduce is None else self.reduce.axes

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """The loops of the unscheduled nest, outermost first: spatial axes, then reduce axes."""
        return (*self.axis, *self.reduce_axis)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the body reads, in order of appearance; a reduction's init is first."""
        exprs = self.body if self.reduce is None else (*self.reduce.init, *self.reduce.source)
        result = (x.buffer for e in exprs for x in loads(e))
        return tuple(dict.fromkeys(t for t in result if isinstance(t, Tensor)))


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    """A placeholder (``op`` is None) or output ``value_index`` of the operation ``op``.

    ``A[i, j]`` and ``A(i, j)`` are the element at these indices, one per dimension, as an
    expression.
    """

    op: Operation | None = None
    value_index: int = 0

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Load:
        group = indices if isinstance(indices, tuple) else (indices,)
        if len(group) != len(self.shape):
            raise TEError(f"{self.name}: expected {len(self.shape)} indices, found {len(group)}")
        return Load(self, tuple(as_expr(i, "int32") for i in group))

    def __call__(self, *indices: ExprLike) -> Load:
        """The element ``A[i, j]``, its indices given as arguments."""
        return self[indices]

    def __iter__(self) -> Iterator[Load]:
        raise TypeError(f"tensor {self.name} can't be iterated; index it in te.compute")

    @property
    def ndim(self) -> int:
        """Number of the tensor's dimensions."""
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The spatial axes of a ``te.compute``, one per dimension; they name the stage's loops.

        Raises:
            TEError: the tensor is a placeholder, or made by ``te.extern`` or ``te.scan``.
        """
        return self.compute_op.axis

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The reduce axes of a ``te.compute``; none where it isn't a reduction.

        Raises:
            TEError: the tensor is a placeholder, or made by ``te.extern`` or ``te.scan``.
        """
        return self.compute_op.reduce_axis

    @property
    def compute_op(self) -> ComputeOp:
        """The operation, if it is that of a ``te.compute``.

        Raises:
            TEError: the tensor is a placeholder, or made by ``te.extern`` or ``te.scan``.
        """
        if not isinstance(self.op, ComputeOp):
            what = "a placeholder" if self.op is None else f"made by te.{self.op.kind}"
            raise TEError(f"{self.name} is {what} and has no axes")
        return self.op


Shape = int | Sequence[int]


def as_shape(shape: Shape, name: str) -> tuple[int, ...]:
    """A shape as a tuple of ints; a single int is the length of a vector.

    Raises:
        TEError: it isn't one; ``name`` says whose.
    """
    try:
        return tuple(map(_integer, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        raise TEError(f"{name}: expected a shape of positive ints, found {shape!r}") from None


def _integer(value: object) -> int:
    """An integer as it is, which may be a size that is given later; another index as an int."""
    return value if isinstance(value, int) else index(cast("int", value))


def placeholder(
    shape: Shape,
    dtype: str = "float32",
    name: str = "placeholder",
    value_range: tuple[int, int] | None = None,
) -> Tensor:
    """A tensor that is given to the computation: an input, or what stands for a scan's state.

    Args:
        shape: the length of each dimension; an int for a vector.
        dtype: of the elements.
        name: of the tensor, in the program's text and in messages.
        value_range: a promise of the least and greatest integer in it, both included. Instructions
            that take fewer bits than the dtype has need that promise, or a clamp. Calls of a built
            kernel are held to it.

    Raises:
        TEError: the shape isn't of ints, or the promise isn't two of them.
        TermError: the dtype isn't known, a length isn't positive, or the range leaves the dtype.
    """
    if value_range is not None:
        value_range = _two_integers(name, value_range)
    return Tensor(name, as_shape(shape, name), dtype, value_range=value_range)


def _two_integers(name: str, value_range: object) -> tuple[int, int]:
    try:
        low, high = map(index, cast("tuple[int, int]", value_range))
    except (TypeError, ValueError):
        raise TEError(
            f"{name}: expected a value_range of two integers (low, high), found {value_range!r}"
        ) from None
    return low, high


def compute(
    shape: Shape, fcompute: Callable[..., ExprLike | tuple[ExprLike, ...]], name: str = "compute"
) -> Tensor:
    """A tensor given by an expression of its elements' indices::

        C = te.compute((64, 32), lambda y, x: A[y, x] + B[x], "C")

    which, before any schedule, is the loops::

        for y in 64: for x in 32: C[y, x] = A[y, x] + B[x]

    Args:
        shape: the length of each dimension; an int for a vector.
        fcompute: from one index per dimension to the value there. Its parameters name the axes;
            with ``*indices`` they are called ``i0``, ``i1`` … A reduction (``te.sum`` …) must be
            the whole value. A tuple of values makes as many tensors of this shape, which are one
            stage.
        name: of the tensor and of its stage; several tensors are ``name_v0``, ``name_v1`` …

    Returns:
        The tensor; of a tuple of values, a tuple of tensors.

    Raises:
        TEError: the function doesn't take one index per dimension, uses an axis that isn't one of
            its own, or has a reduction inside a larger value.
    """
    dims = as_shape(shape, name)
    if not callable(fcompute):
        raise TEError(f"{name}: expected a function of {len(dims)} indices, found {fcompute!r}")
    names = _axis_names(fcompute, len(dims), name)
    axis = tuple(IterVar(n, "int32", extent) for n, extent in zip(names, dims, strict=True))
    result = fcompute(*axis)
    body = (
        tuple(as_expr(e) for e in result)
        if isinstance(result, tuple | list)
        else (as_expr(result),)
    )
    _check_body(name, body, axis)
    tensors = outputs_of(ComputeOp(name, axis, body), dims)
    # Types can't tell what a lambda gives, so the usual case is declared.
    return tensors if isinstance(result, tuple | list) else tensors[0]  # type: ignore[return-value]


def outputs_of(op: ComputeOp, shape: tuple[int, ...], scope: str = "global") -> tuple[Tensor, ...]:
    """The tensors that a new operation computes, one per value; they are kept in ``op.outputs``."""
    for n, value in enumerate(op.body):
        name = op.name if len(op.body) == 1 else f"{op.name}_v{n}"
        op.outputs.append(Tensor(name, shape, value.dtype, scope, op=op, value_index=n))
    return tuple(op.outputs)


def _axis_names(fcompute: Callable[..., object], rank: int, name: str) -> list[str]:
    """The names of the axes: those of the function's parameters."""
    params = list(inspect.signature(fcompute).parameters.values())
    fixed = [p.name for p in params if p.kind is not p.VAR_POSITIONAL and p.default is p.empty]
    if any(p.kind is p.VAR_POSITIONAL for p in params):
        return fixed + [f"i{n}" for n in range(len(fixed), rank)]
    if len(fixed) != rank:
        raise TEError(f"{name}: expected a function of {rank} indices, found {len(fixed)}")
    return fixed


def _check_body(name: str, body: tuple[Expr, ...], axis: tuple[IterVar, ...]) -> None:
    """Raises where a body is empty, or has a reduction inside a value or another compute's axis."""
    if not body:
        raise TEError(f"{name}: expected at least one value, found none")
    known: set[Expr] = set(axis)
    parts = body
    if any(isinstance(e, Reduce) for e in body):
        reduce = _whole_reduction(name, body)
        for init in reduce.init:
            for expr in walk_expr(init):
                if isinstance(expr, IterVar) and expr not in known:
                    raise TEError(f"{name}: init uses axis {expr.name}, which isn't one of its own")
        parts = reduce.source
        known |= set(reduce.axes)
    for part in parts:
        for expr in walk_expr(part):
            if isinstance(expr, Reduce):
                raise TEError(f"{name}: a reduction must be the whole body of a compute")
            if isinstance(expr, IterVar) and expr not in known:
                raise TEError(f"{name}: uses axis {expr.name}, which isn't one of its own")


def _whole_reduction(name: str, body: tuple[Expr, ...]) -> Reduce:
    """The one reduction that all values of a body are of, each in its place."""
    first = next(e for e in body if isinstance(e, Reduce))
    values = [(e.source, e.value_index) if isinstance(e, Reduce) else None for e in body]
    if values != [(first.source, n) for n in range(len(first.source))]:
        raise TEError(
            f"{name}: expected all {len(first.source)} values of one reduction "
            f"({first.reducer.name}), in order, as the whole body, found {len(body)} "
            f"values that are not these"
        )
    return first


def reduce_axis(dom: tuple[int, int], name: str = "rv") -> IterVar:
    """An axis to reduce over, for ``te.sum`` and the like.

    Args:
        dom: the domain ``(0, n)``; the axis runs over 0 to ``n - 1``.
        name: of the axis and of its loop.

    Raises:
        TEError: the domain doesn't start at 0, or is empty.
    """
    try:
        low, high = map(_integer, dom)
    except (TypeError, ValueError):
        low, high = 0, 0
    if low != 0 or high < 1:
        raise TEError(f"{name}: expected a domain (0, n) with n >= 1, found {dom!r}")
    return IterVar(name, "int32", high, "reduce")


def thread_axis(tag: str, threads: int | None = None) -> ThreadAxis:
    """Thread axis that ``s[C].bind`` binds a loop to: a virtual thread, or a hardware thread.

    ``"vthread"`` is a virtual thread of the accelerator (TVM, OSDI'18, section 4.4): the compiler
    merges the threads into one instruction stream in which one computes while another one loads.
    Without ``threads`` each step of the loop is a virtual thread, and the threads' instructions
    interleave. With ``threads`` the steps are dealt to that many virtual threads, which take turns
    step by step: a thread of a large tile computes while another one's is stored.

    ``"blockIdx.x"`` and ``"threadIdx.x"``, with ``.y`` and ``.z``, are those of a kernel: each step
    of the loop is a group of threads, or a thread of a group. Targets that launch kernels have such
    threads; the others run their steps one after another.

    Args:
        tag: ``"vthread"``, or one of a kernel's.
        threads: how many virtual threads share the steps.

    Raises:
        TEError: there is no such tag; or ``threads`` is less than 1, or given with another tag than
            ``"vthread"``.
    """
    tags = ("vthread", *BLOCK_TAGS, *THREAD_TAGS)
    if tag not in tags:
        raise TEError(f"thread_axis: expected a tag of {', '.join(tags)}, found {tag!r}")
    few = threads is not None and (not isinstance(threads, int) or threads < 1)
    if few or (threads is not None and tag != "vthread"):
        raise TEError(
            f"thread_axis: expected threads >= 1 and the tag vthread, found {threads} and {tag}"
        )
    return ThreadAxis(tag, threads or 0)


def producers(outputs: Iterable[Tensor]) -> list[Tensor]:
    """The outputs and all they need, each after what it is made of, in order of first need."""
    order: dict[Tensor, None] = {}

    def visit(tensor: Tensor) -> None:
        if tensor in order:
            return
        if tensor.op is not None:
            for source in tensor.op.inputs:
                visit(source)
            for member in tensor.op.members:
                order[member] = None
        order[tensor] = None

    for tensor in outputs:
        visit(tensor)
    return list(order)
