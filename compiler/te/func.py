"""From tensors to a PrimFunc: one loop nest with one block per computed tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler.te.tensor import IterVar, Reduce, TEError, Tensor, producers
from vdla.compiler.tir.ir import (
    Alloc,
    Binary,
    Block,
    BlockIter,
    Buffer,
    Expr,
    For,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Var,
    seq,
)
from vdla.compiler.tir.region import block_regions
from vdla.compiler.tir.visitor import rewrite_expr


@dataclass(frozen=True, slots=True)
class Built:
    """A function and the buffer of each tensor in it; a tensor's block has its buffer's name."""

    func: PrimFunc
    buffers: Mapping[Tensor, Buffer]


def create_prim_func(
    inputs: Sequence[Tensor], outputs: Tensor | Sequence[Tensor], name: str = "main"
) -> PrimFunc:
    """The function from `inputs` to `outputs` (its parameters, in this order), unscheduled."""
    group = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return build(inputs, group, name).func


def build(inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str) -> Built:
    order = producers(outputs)
    for tensor in order:
        if tensor.op is None and tensor not in inputs:
            raise TEError(f"{name}: needs {tensor.name}, which isn't one of its inputs "
                          f"({', '.join(t.name for t in inputs)})")
    for tensor in outputs:
        if tensor.op is None:
            raise TEError(f"{name}: expected computed outputs, found the placeholder {tensor.name}")
    buffers = unique_buffers([*inputs, *order])
    computed = [t for t in order if t.op is not None and t not in inputs]
    body: Stmt = seq(*(nest(t, buffers) for t in computed))
    for tensor in reversed(computed):
        if tensor not in outputs:
            body = Alloc(buffers[tensor], body)
    params = [*dict.fromkeys(inputs), *outputs]
    return Built(PrimFunc(name, tuple(buffers[t] for t in params), body), buffers)


def unique_buffers(tensors: Sequence[Tensor]) -> dict[Tensor, Buffer]:
    """Each tensor itself, or a renamed buffer where its name is taken."""
    used: set[str] = set()
    result: dict[Tensor, Buffer] = {}
    for tensor in tensors:
        if tensor in result:
            continue
        name, n = tensor.name, 1
        while name in used:
            name, n = f"{tensor.name}_{n}", n + 1
        used.add(name)
        plain = name == tensor.name
        result[tensor] = tensor if plain else Buffer(
            name, tensor.shape, tensor.dtype, value_range=tensor.value_range
        )
    return result


def nest(tensor: Tensor, buffers: Mapping[Tensor, Buffer]) -> Stmt:
    """The loops and the block that compute one tensor."""
    op = tensor.compute_op
    axes = (*op.axis, *op.reduce_axis)
    inner = {axis: Var(f"v_{axis.name}") for axis in axes}
    target = buffers[tensor]
    indices = tuple(inner[a] for a in op.axis)

    def bound(e: Expr) -> Expr:
        if isinstance(e, Load) and isinstance(e.buffer, Tensor):
            return Load(buffers[e.buffer], e.indices)
        return inner.get(e, e) if isinstance(e, IterVar) else e

    init: Stmt | None = None
    if isinstance(op.body, Reduce):
        init = Store(target, indices, rewrite_expr(op.body.init, bound))
        source = rewrite_expr(op.body.source, bound)
        value: Expr = Binary(op.body.combiner, Load(target, indices), source)
    else:
        value = rewrite_expr(op.body, bound)
    body = Store(target, indices, value)
    iters = tuple(BlockIter(inner[a], a.extent, a.kind, a) for a in axes)
    reads, writes = block_regions(body, init, {v: (0, a.extent - 1) for a, v in inner.items()})
    stmt: Stmt = Block(target.name, iters, reads, writes, body, init)
    for axis in reversed(axes):
        stmt = For(axis, axis.extent, "serial", stmt)
    return stmt
