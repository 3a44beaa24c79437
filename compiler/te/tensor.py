"""Tensors and how they are computed, under TVM's names.

A Tensor is a Buffer with a recipe, so `A[i, j]` is an ordinary Load expression of the loop IR.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from vdla.compiler.tir.ir import (
    INT_RANGES,
    Buffer,
    Const,
    Expr,
    ExprLike,
    Load,
    Var,
    as_expr,
    binary,
    const,
    is_float,
)
from vdla.compiler.tir.visitor import loads, walk_expr

COMBINERS = ("add", "min", "max")


class TEError(Exception):
    """A tensor expression is not well formed."""


@dataclass(frozen=True, slots=True, eq=False)
class IterVar(Var):
    """An axis: a variable that runs over 0 .. extent-1."""

    extent: int = 1
    kind: str = "spatial"


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """What `Stage.bind` binds a loop to; `threads` is 0 where each step is a thread."""

    tag: str
    threads: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expr):
    """`combiner` over `axes` from `init` on; only as the whole body of a compute."""

    combiner: str
    source: Expr
    axes: tuple[IterVar, ...]
    init: Expr

    @property
    def dtype(self) -> str:
        return self.source.dtype


@dataclass(frozen=True, slots=True, eq=False)
class ComputeOp:
    """The recipe of a tensor: the element at `axis` is `body`."""

    axis: tuple[IterVar, ...]
    body: Expr

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        return self.body.axes if isinstance(self.body, Reduce) else ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the body loads, in order of appearance."""
        exprs = (self.body.init, self.body.source) if isinstance(self.body, Reduce) \
            else (self.body,)
        found = (x.buffer for e in exprs for x in loads(e))
        return tuple(dict.fromkeys(t for t in found if isinstance(t, Tensor)))


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    """A placeholder (op is None) or a computed tensor."""

    op: ComputeOp | None = None

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Load:
        group = indices if isinstance(indices, tuple) else (indices,)
        if len(group) != len(self.shape):
            raise TEError(f"{self.name}: expected {len(self.shape)} indices, found {len(group)}")
        return Load(self, tuple(as_expr(i, "int32") for i in group))

    def __call__(self, *indices: ExprLike) -> Load:
        return self[indices]

    def __iter__(self) -> Iterator[Load]:
        raise TypeError(f"tensor {self.name} can't be iterated; index it in te.compute")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        return self.compute_op.axis

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        return self.compute_op.reduce_axis

    @property
    def compute_op(self) -> ComputeOp:
        if self.op is None:
            raise TEError(f"{self.name} is a placeholder and has no axes")
        return self.op


Shape = int | Sequence[int]


def as_shape(shape: Shape) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, int) else tuple(int(n) for n in shape)


def placeholder(
    shape: Shape,
    dtype: str = "float32",
    name: str = "placeholder",
    value_range: tuple[int, int] | None = None,
) -> Tensor:
    """An input of `shape`; `value_range` promises the least and greatest of its integers.

    Instructions that take fewer bits than the dtype has need that promise, or a clamp; calls of a
    built kernel are held to it.
    """
    return Tensor(name, as_shape(shape), dtype, value_range=value_range)


def compute(shape: Shape, fcompute: Callable[..., ExprLike], name: str = "compute") -> Tensor:
    """The tensor whose element at the indices is what `fcompute` gives for them."""
    dims = as_shape(shape)
    names = axis_names(fcompute, len(dims), name)
    axis = tuple(IterVar(n, "int32", extent) for n, extent in zip(names, dims, strict=True))
    body = as_expr(fcompute(*axis))
    check_body(name, body, axis)
    return Tensor(name, dims, body.dtype, op=ComputeOp(axis, body))


def axis_names(fcompute: Callable[..., ExprLike], rank: int, name: str) -> list[str]:
    params = list(inspect.signature(fcompute).parameters.values())
    fixed = [p.name for p in params if p.kind is not p.VAR_POSITIONAL and p.default is p.empty]
    if any(p.kind is p.VAR_POSITIONAL for p in params):
        return fixed + [f"i{n}" for n in range(len(fixed), rank)]
    if len(fixed) != rank:
        raise TEError(f"{name}: expected a function of {rank} indices, found {len(fixed)}")
    return fixed


def check_body(name: str, body: Expr, axis: tuple[IterVar, ...]) -> None:
    known: set[Expr] = set(axis)
    parts = [body]
    if isinstance(body, Reduce):
        parts = [body.source]
        for expr in walk_expr(body.init):
            if isinstance(expr, IterVar) and expr not in known:
                raise TEError(f"{name}: init uses axis {expr.name}, which isn't one of its own")
        known |= set(body.axes)
    for part in parts:
        for expr in walk_expr(part):
            if isinstance(expr, Reduce):
                raise TEError(f"{name}: a reduction must be the whole body of a compute")
            if isinstance(expr, IterVar) and expr not in known:
                raise TEError(f"{name}: uses axis {expr.name}, which isn't one of its own")


def reduce_axis(dom: tuple[int, int], name: str = "rv") -> IterVar:
    """An axis to reduce over, from 0 on."""
    low, high = dom
    if low != 0 or high < 1:
        raise TEError(f"{name}: expected a domain (0, n) with n >= 1, found {dom}")
    return IterVar(name, "int32", int(high), "reduce")


def thread_axis(tag: str, threads: int | None = None) -> ThreadAxis:
    """`"vthread"`, a virtual thread; or a hardware thread's name.

    Without `threads` each step of the loop is a virtual thread, and the threads' instructions
    interleave. With `threads` the steps are dealt to that many virtual threads, which take turns
    step by step: a thread of a large tile computes while another one's is stored.
    """
    if threads is not None and (tag != "vthread" or threads < 1):
        raise TEError(f"thread_axis: expected threads >= 1 and the tag vthread, found {threads} "
                      f"and {tag}")
    return ThreadAxis(tag, threads or 0)


Axes = IterVar | Sequence[IterVar]


def reduction(
    combiner: str, expr: ExprLike, axis: Axes, init: ExprLike | None, identity: Const
) -> Reduce:
    source = as_expr(expr)
    axes = (axis,) if isinstance(axis, IterVar) else tuple(axis)
    for a in axes:
        if a.kind != "reduce":
            raise TEError(f"{a.name}: expected a reduce_axis, found a spatial one")
    start = identity if init is None else as_expr(init, source.dtype)
    if start.dtype != source.dtype:
        raise TEError(f"reduction: expected an init of {source.dtype}, found {start.dtype}")
    return Reduce(combiner, source, axes, start)


def sum(expr: ExprLike, axis: Axes, init: ExprLike | None = None) -> Reduce:
    """The sum over `axis`, from zero or from `init` (an expression of the spatial axes) on."""
    return reduction("add", expr, axis, init, const(0, as_expr(expr).dtype))


def max(expr: ExprLike, axis: Axes | ExprLike, init: ExprLike | None = None) -> Expr:
    """The greatest value over `axis`; with an expression for `axis`, the greater of the two."""
    if is_pair(expr, axis):
        return maximum(expr, axis)  # type: ignore[arg-type]
    dtype = as_expr(expr).dtype
    return reduction("max", expr, axis, init, lowest(dtype))  # type: ignore[arg-type]


def min(expr: ExprLike, axis: Axes | ExprLike, init: ExprLike | None = None) -> Expr:
    """The least value over `axis`; with an expression for `axis`, the lesser of the two."""
    if is_pair(expr, axis):
        return minimum(expr, axis)  # type: ignore[arg-type]
    dtype = as_expr(expr).dtype
    return reduction("min", expr, axis, init, highest(dtype))  # type: ignore[arg-type]


def is_pair(expr: ExprLike, other: object) -> bool:
    """Whether min/max got two values rather than a value and reduce axes."""
    if isinstance(other, IterVar):
        return other.kind != "reduce"
    return isinstance(other, Expr | int | float)


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    return binary("min", a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    return binary("max", a, b)


def lowest(dtype: str) -> Const:
    return Const(-float("inf"), dtype) if is_float(dtype) else Const(INT_RANGES[dtype][0], dtype)


def highest(dtype: str) -> Const:
    return Const(float("inf"), dtype) if is_float(dtype) else Const(INT_RANGES[dtype][1], dtype)


def producers(outputs: Iterable[Tensor]) -> list[Tensor]:
    """The outputs and all they need, inputs before users, in order of first need."""
    order: dict[Tensor, None] = {}

    def visit(tensor: Tensor) -> None:
        if tensor in order:
            return
        if tensor.op is not None:
            for source in tensor.op.inputs:
                visit(source)
        order[tensor] = None

    for tensor in outputs:
        visit(tensor)
    return list(order)
