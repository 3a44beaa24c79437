"""From tensors to a PrimFunc: one loop nest with one block per operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler.te.assemble import AssembleOp
from vdla.compiler.te.extern import ExternOp
from vdla.compiler.te.scan import ScanOp
from vdla.compiler.te.tensor import ComputeOp, IterVar, Operation, TEError, Tensor, producers
from vdla.compiler.tir.ir import (
    ZERO,
    Alloc,
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
from vdla.compiler.tir.visitor import replace_buffer, rewrite_expr

Buffers = Mapping[Tensor, Buffer]
Names = Mapping[Operation, str]


@dataclass(frozen=True, slots=True)
class Built:
    """Result of ``build``: a function, and where each tensor and each operation is in it.

    The block of an operation with one output has the name of its buffer.

    Attributes:
        func: the function, one nest of loops per operation.
        buffers: the buffer of each tensor.
        stages: the operations, by the name of their block.
    """

    func: PrimFunc
    buffers: Buffers
    stages: Mapping[str, Operation]


def create_prim_func(
    inputs: Sequence[Tensor], outputs: Tensor | Sequence[Tensor], name: str = "main"
) -> PrimFunc:
    """The unscheduled function that computes ``outputs`` from ``inputs``.

    It has one nest of serial loops per operation, in the order in which they need each other; what
    lies between inputs and outputs is allocated inside.

    Args:
        inputs: its first parameters. A computed tensor may be one too: what it was made of is then
            left out.
        outputs: its last parameters.
        name: the function's.

    Raises:
        TEError: the outputs need a placeholder that isn't among the inputs, or an output is a
            placeholder itself.
    """
    group = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return build(inputs, group, name).func


def build(inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str) -> Built:
    """Makes a function, as ``create_prim_func``, with each tensor's buffer and operation's block.

    Tensors with equal names get distinct buffers: ``A``, ``A_1`` … A schedule is made from this.

    Raises:
        TEError: see ``create_prim_func``; or an operation reads a tensor that is a part of another.
    """
    order = producers(outputs)
    for tensor in order:
        if tensor.op is None and tensor not in inputs:
            raise TEError(
                f"{name}: needs {tensor.name}, which isn't one of its inputs "
                f"({', '.join(t.name for t in inputs)})"
            )
    for tensor in outputs:
        if tensor.op is None:
            raise TEError(f"{name}: expected computed outputs, found the placeholder {tensor.name}")
    ops = list(dict.fromkeys(t.op for t in order if t.op is not None and t not in inputs))
    owners = _check_members(name, ops)
    places = {t: out for op in ops for t, out in op.places.items()}
    every = [*inputs, *order, *(t for op in ops for t in op.outputs)]
    used: set[str] = set()
    buffers = _unique_buffers((t for t in every if t not in places), used)
    buffers.update({t: buffers[out] for t, out in places.items()})
    names = _stage_names(ops, buffers, used)
    whole = [op for op in ops if not owners.keys() & {*op.outputs}]
    body: Stmt = seq(*(_nest(op, buffers, names) for op in whole))
    given = {buffers[t] for t in outputs}
    computed = dict.fromkeys(buffers[t] for op in ops for t in op.outputs)
    for buffer in reversed(computed):
        if buffer not in given:
            body = Alloc(buffer, body)
    params = [*dict.fromkeys(inputs), *outputs]
    func = PrimFunc(name, tuple(buffers[t] for t in params), body)
    return Built(func, buffers, {n: op for op, n in names.items()})


def _check_members(name: str, ops: Sequence[Operation]) -> dict[Tensor, Operation]:
    """The operation of each tensor that is a part of one; others mustn't read it."""
    owners = {t: op for op in ops for t in op.members}
    inside = {t.op: op for t, op in owners.items()}
    for op in ops:
        for tensor in op.inputs:
            owner = owners.get(tensor)
            if owner is not None and inside.get(op) is not owner:
                raise TEError(
                    f"{name}: {op.name} reads {tensor.name}, which is a part of the "
                    f"{owner.kind} {owner.name}; read {owner.name}"
                )
    return owners


def _unique_buffers(tensors: Iterable[Tensor], used: set[str]) -> dict[Tensor, Buffer]:
    """Each tensor itself, or a renamed buffer where its name is taken."""
    result: dict[Tensor, Buffer] = {}
    for tensor in tensors:
        if tensor in result:
            continue
        name = _unique_name(tensor.name, used)
        plain = name == tensor.name
        result[tensor] = (
            tensor
            if plain
            else Buffer(name, tensor.shape, tensor.dtype, value_range=tensor.value_range)
        )
    return result


def _unique_name(base: str, used: set[str]) -> str:
    """``base``, or ``base_1``, ``base_2`` … where ``used`` has that already; added to ``used``."""
    name, n = base, 1
    while name in used:
        name, n = f"{base}_{n}", n + 1
    used.add(name)
    return name


def _stage_names(
    ops: Iterable[Operation], buffers: Buffers, used: set[str]
) -> dict[Operation, str]:
    """The name of each operation's block: its buffer's where it has one of its own."""
    taken: set[Buffer] = set()
    names: dict[Operation, str] = {}
    for op in sorted(ops, key=lambda op: not op.members):
        own = buffers[op.outputs[0]]
        single = len(op.outputs) == 1 and own not in taken
        names[op] = own.name if single else _unique_name(op.name, used)
        taken.add(own)
    return {op: names[op] for op in ops}


def _nest(op: Operation, buffers: Buffers, names: Names) -> Stmt:
    """The loops and the blocks of one operation."""
    if isinstance(op, ComputeOp):
        return compute_nest(op, buffers, names[op])
    if isinstance(op, ExternOp):
        return _extern_block(op, buffers, names[op])
    if isinstance(op, AssembleOp):
        parts = zip(op.parts, op.where, strict=True)
        nests = (_part_nest(part.compute_op, where, buffers, names) for part, where in parts)
        return seq(*nests)
    assert isinstance(op, ScanOp)
    return _scan_nest(op, buffers, names)


def _part_nest(op: ComputeOp, where: Sequence[Expr], buffers: Buffers, names: Names) -> Stmt:
    """A part of an assembled tensor, stored where it lies in that."""
    return compute_nest(op, buffers, names[op], where=where)


def compute_nest(
    op: ComputeOp,
    buffers: Buffers,
    name: str,
    outer: Mapping[IterVar, Expr] | None = None,
    where: Sequence[Expr] | None = None,
) -> Stmt:
    """One loop per axis around the block.

    The axes in ``outer`` are loops around it already. The elements are stored at the indices
    ``where``, in terms of the axes; at the axes themselves where there are none.
    """
    around = outer or {}
    inner = {axis: Var(f"v_{axis.name}") for axis in op.axes}
    targets = [buffers[t] for t in op.outputs]

    def bound(e: Expr) -> Expr:
        if isinstance(e, Load) and isinstance(e.buffer, Tensor):
            return Load(buffers[e.buffer], e.indices)
        return inner.get(e, e) if isinstance(e, IterVar) else e

    indices = tuple(rewrite_expr(e, bound) for e in where or op.axis)

    def stored(values: Iterable[Expr]) -> Stmt:
        return seq(*(Store(t, indices, v) for t, v in zip(targets, values, strict=True)))

    reduce, init = op.reduce, None
    if reduce is None:
        body = stored(rewrite_expr(e, bound) for e in op.body)
    else:
        init = stored(rewrite_expr(e, bound) for e in reduce.init)
        old = [Load(t, indices) for t in targets]
        source = [rewrite_expr(e, bound) for e in reduce.source]
        body = update(targets, indices, reduce.reducer.combine(old, source))
    iters = tuple(BlockIter(inner[a], a.extent, a.kind, around.get(a, a)) for a in op.axes)
    reads, writes = block_regions(body, init, {v: (0, a.extent - 1) for a, v in inner.items()})
    stmt: Stmt = Block(name, iters, reads, writes, body, init)
    for axis in reversed([a for a in op.axes if a not in around]):
        stmt = For(axis, axis.extent, "serial", stmt)
    return stmt


def update(targets: Sequence[Buffer], indices: tuple[Expr, ...], values: Sequence[Expr]) -> Stmt:
    """Stores to one place of each target, all of whose values are computed before the first."""
    if len(targets) == 1:
        return Store(targets[0], indices, values[0])
    new = [Buffer(f"{t.name}_new", (1,), t.dtype) for t in targets]
    computed = (Store(n, (ZERO,), v) for n, v in zip(new, values, strict=True))
    stored = (Store(t, indices, Load(n, (ZERO,))) for t, n in zip(targets, new, strict=True))
    body = seq(*computed, *stored)
    for buffer in reversed(new):
        body = Alloc(buffer, body)
    return body


def _extern_block(op: ExternOp, buffers: Buffers, name: str) -> Stmt:
    """The statement as it was given, on this function's buffers."""
    body = op.body
    for formal, tensor in zip((*op.inputs, *op.formals), (*op.inputs, *op.outputs), strict=True):
        body = replace_buffer(body, formal, buffers[tensor])
    reads, writes = block_regions(body, None, {})
    return Block(name, (), reads, writes, body)


def _scan_nest(op: ScanOp, buffers: Buffers, names: Names) -> Stmt:
    """The first rows, then in each step what depends on the rows before."""

    def member(tensor: Tensor, outer: Mapping[IterVar, Expr]) -> Stmt:
        return compute_nest(tensor.compute_op, buffers, names[tensor.compute_op], outer)

    step = op.scan_axis + op.rows
    steps = (member(t, {t.axis[0]: step}) for t in op.body)
    loop = For(op.scan_axis, op.scan_axis.extent, "serial", seq(*steps))
    return seq(*(member(t, {}) for t in op.init), loop)
