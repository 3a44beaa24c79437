"""Tensors and how they are computed, under TVM's names.

A Tensor is a Buffer with a recipe, so `A[i, j]` is an ordinary Load expression of the loop IR.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vdla.compiler.tir.ir import Buffer, Expr, ExprLike, Load, Var, as_expr
from vdla.compiler.tir.visitor import loads, substitute_expr, walk_expr
from vdla.support.errors import UserError


class TEError(UserError):
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
class Reducer:
    """How two values, or two tuples of values, combine; in any order, from `identity` on."""

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]

    def combine(self, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> tuple[Expr, ...]:
        mapping = dict(zip((*self.lhs, *self.rhs), (*lhs, *rhs), strict=True))
        return tuple(substitute_expr(e, mapping) for e in self.result)


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expr):
    """Value `value_index` of `reducer` over `axes` from `init` on; only the body of a compute."""

    reducer: Reducer
    source: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    init: tuple[Expr, ...]
    value_index: int = 0

    @property
    def dtype(self) -> str:
        return self.source[self.value_index].dtype


class Operation:
    """What computes tensors: ComputeOp, ExternOp, ScanOp."""

    __slots__ = ()
    kind = "compute"
    name: str
    outputs: list[Tensor]

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """The loops that it makes, spatial ones first."""
        return ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that it reads, in order of appearance."""
        raise NotImplementedError

    @property
    def members(self) -> tuple[Tensor, ...]:
        """The tensors that are computed as a part of it alone, in order."""
        return ()

    @property
    def places(self) -> Mapping[Tensor, Tensor]:
        """The output in whose buffer each of those lies that have none of their own."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class ComputeOp(Operation):
    """A recipe: the elements at `axis` of its outputs are `body`, one value for each output.

    The values of a reduction are updated together: all from the old ones.
    """

    name: str
    axis: tuple[IterVar, ...]
    body: tuple[Expr, ...]
    outputs: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def reduce(self) -> Reduce | None:
        """The reduction that is the body, if it is one; it has all the values."""
        return self.body[0] if isinstance(self.body[0], Reduce) else None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        return () if self.reduce is None else self.reduce.axes

    @property
    def axes(self) -> tuple[IterVar, ...]:
        return (*self.axis, *self.reduce_axis)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        exprs = self.body if self.reduce is None else (*self.reduce.init, *self.reduce.source)
        found = (x.buffer for e in exprs for x in loads(e))
        return tuple(dict.fromkeys(t for t in found if isinstance(t, Tensor)))


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    """A placeholder (op is None) or output `value_index` of its op."""

    op: Operation | None = None
    value_index: int = 0

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
        if not isinstance(self.op, ComputeOp):
            what = "a placeholder" if self.op is None else f"made by te.{self.op.kind}"
            raise TEError(f"{self.name} is {what} and has no axes")
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


def compute(
    shape: Shape, fcompute: Callable[..., ExprLike | tuple[ExprLike, ...]], name: str = "compute"
) -> Tensor:
    """The tensor whose element at the indices is what `fcompute` gives for them.

    Of a tuple it makes as many tensors of that shape, `name_v0`, `name_v1` …, which are one stage;
    the tuple of them is returned.
    """
    dims = as_shape(shape)
    names = axis_names(fcompute, len(dims), name)
    axis = tuple(IterVar(n, "int32", extent) for n, extent in zip(names, dims, strict=True))
    found = fcompute(*axis)
    body = (
        tuple(as_expr(e) for e in found) if isinstance(found, tuple | list) else (as_expr(found),)
    )
    check_body(name, body, axis)
    tensors = outputs_of(ComputeOp(name, axis, body), dims)
    # Types can't tell what a lambda gives, so the usual case is declared.
    return tensors if isinstance(found, tuple | list) else tensors[0]  # type: ignore[return-value]


def outputs_of(op: ComputeOp, shape: tuple[int, ...], scope: str = "global") -> tuple[Tensor, ...]:
    """The tensors that a new op computes."""
    for n, value in enumerate(op.body):
        name = op.name if len(op.body) == 1 else f"{op.name}_v{n}"
        op.outputs.append(Tensor(name, shape, value.dtype, scope, op=op, value_index=n))
    return tuple(op.outputs)


def axis_names(fcompute: Callable[..., object], rank: int, name: str) -> list[str]:
    params = list(inspect.signature(fcompute).parameters.values())
    fixed = [p.name for p in params if p.kind is not p.VAR_POSITIONAL and p.default is p.empty]
    if any(p.kind is p.VAR_POSITIONAL for p in params):
        return fixed + [f"i{n}" for n in range(len(fixed), rank)]
    if len(fixed) != rank:
        raise TEError(f"{name}: expected a function of {rank} indices, found {len(fixed)}")
    return fixed


def check_body(name: str, body: tuple[Expr, ...], axis: tuple[IterVar, ...]) -> None:
    if not body:
        raise TEError(f"{name}: expected at least one value, found none")
    known: set[Expr] = set(axis)
    parts = body
    if any(isinstance(e, Reduce) for e in body):
        reduce = whole_reduction(name, body)
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


def whole_reduction(name: str, body: tuple[Expr, ...]) -> Reduce:
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
        raise TEError(
            f"thread_axis: expected threads >= 1 and the tag vthread, found {threads} and {tag}"
        )
    return ThreadAxis(tag, threads or 0)


def producers(outputs: Iterable[Tensor]) -> list[Tensor]:
    """The outputs and all they need, inputs before users, in order of first need."""
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
