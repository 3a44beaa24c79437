"""Declaring tensor intrinsics by what they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vdla.compiler.te.tensor import TEError, Tensor
from vdla.compiler.tir.intrin import Param, TensorIntrin
from vdla.compiler.tir.ir import Expr, Load
from vdla.compiler.tir.visitor import walk_expr


def param(name: str, dtype: str = "int32", kind: str = "const") -> Param:
    """A hole in an intrinsic's behaviour, bound by what it matches.

    Kind "const" matches a constant; "expr" any expression that doesn't use the intrinsic's loops.
    """
    return Param(name, dtype, kind)


def decl_intrin(
    name: str,
    output: Tensor,
    params: Sequence[Param] = (),
    scopes: Mapping[Tensor, str] | None = None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
    lowering: object = None,
    cost: int = 1,
    swaps: tuple[tuple[str, str], ...] = (),
) -> TensorIntrin:
    """An intrinsic that does what `output`'s compute says, on one vector.

    `output` must read placeholders only. A reduction becomes an accumulation in place: its init
    runs on the first step, later steps update what is there; with `axis=[]` one step is
    `dst = op(dst, src)`. `scopes` says in which memory each tensor must lie. The rest is as in
    `TensorIntrin`.
    """
    op = output.compute_op
    for tensor in op.inputs:
        if tensor.op is not None:
            raise TEError(f"{name}: expected placeholders as inputs, found computed {tensor.name}")
    if len(op.body) > 1:
        raise TEError(f"{name}: expected one output, found {len(op.body)} computed together")
    axes = tuple((a, a.extent, a.kind) for a in op.axes)
    update: Expr = op.body[0]
    init: Expr | None = None
    if op.reduce is not None:
        (init,) = op.reduce.init
        (update,) = op.reduce.reducer.combine([Load(output, op.axis)], op.reduce.source)
    check_params(name, output, params)
    where = {t.name: scope for t, scope in (scopes or {}).items()}
    operands = (output, *op.inputs)
    unknown = set(where) - {t.name for t in operands}
    if unknown:
        raise TEError(f"{name}: scopes name {', '.join(sorted(unknown))}, which it doesn't touch")
    return TensorIntrin(
        name,
        operands,
        tuple(params),
        axes,
        op.axis,
        update,
        init,
        where,
        dict(ranges or {}),
        cost,
        swaps,
        lowering,
    )


def check_params(name: str, output: Tensor, params: Sequence[Param]) -> None:
    op = output.compute_op
    parts = op.body if op.reduce is None else (*op.reduce.init, *op.reduce.source)
    used = {e for part in parts for e in walk_expr(part) if isinstance(e, Param)}
    for p in params:
        if p not in used:
            raise TEError(f"{name}: param {p.name} isn't used by the behaviour")
    for p in used:
        if p not in params:
            raise TEError(f"{name}: param {p.name} is used but not declared")
