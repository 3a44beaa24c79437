"""Calls of tensor intrinsics as loops: to run them where there is no such instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vdla.compiler.tir.ir import (
    FALSE,
    Block,
    BlockIter,
    Buffer,
    Const,
    Evaluate,
    Expr,
    For,
    IntrinCall,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.visitor import rewrite, rewrite_expr


def expand_intrinsics(stmt: Stmt) -> Stmt:
    """A statement with every intrinsic call replaced by its behaviour."""
    return rewrite(stmt, lambda s: expand(s.call) if isinstance(s, Evaluate) else s)


def initial(call: IntrinCall) -> Stmt:
    """Statement that sets what a reduction's first step starts from, as loops over the vector."""
    intrin = call.intrin
    assert intrin.init is not None
    spatial = [(var, extent) for var, extent, kind in intrin.axes if kind == "spatial"]
    fresh = {var: Var(var.name) for var, _ in spatial}
    body: Stmt = _placing(call, fresh)(intrin.init)
    for var, extent in reversed(spatial):
        kind = "vectorized" if var is spatial[-1][0] else "serial"
        body = For(fresh[var], extent, kind, body)
    return body


def expand(call: IntrinCall) -> Stmt:
    """The behaviour as loops on the call's operands, with a block for the init's condition."""
    intrin = call.intrin
    fresh = {var: Var(var.name) for var, _, _ in intrin.axes}
    store = _placing(call, fresh)
    body: Stmt = store(intrin.update)
    if intrin.init is not None:
        first = FALSE if call.first is None else call.first
        body = _guarded(intrin, body, store(intrin.init), first, fresh)
    for var, extent, _ in reversed(intrin.axes):
        body = For(fresh[var], extent, "serial", body)
    return body


def _placing(call: IntrinCall, fresh: Mapping[Var, Var]) -> Callable[[Expr], Store]:
    """Function that stores a value of the behaviour on the call's operands, with new loop
    variables.
    """
    intrin = call.intrin
    refs = dict(zip(intrin.operands, call.operands, strict=True))
    values: dict[Var, Expr] = {p: call.params[p.name] for p in intrin.params}
    values.update(fresh)

    def placed(operand: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        ref = refs[operand]
        lead = len(ref.indices) - len(indices)
        tail = (base + i for base, i in zip(ref.indices[lead:], indices, strict=True))
        return ref.buffer, (*ref.indices[:lead], *tail)

    def bound(e: Expr) -> Expr:
        if isinstance(e, Load):
            return Load(*placed(e.buffer, e.indices))
        return values.get(e, e) if isinstance(e, Var) else e

    def store(value: Expr) -> Store:
        where = tuple(rewrite_expr(i, bound) for i in intrin.indices)
        return Store(*placed(intrin.output, where), rewrite_expr(value, bound))

    return store


def _guarded(
    intrin: TensorIntrin, body: Stmt, init: Stmt, first: Expr, fresh: Mapping[Var, Var]
) -> Block:
    """A block whose init runs on the first step of the reduction inside and outside."""
    later = Select(first, Const(0, "int32"), Const(1, "int32"))
    iters = [BlockIter(Var("later"), 2, "reduce", later)]
    for var, extent, kind in intrin.axes:
        if kind == "reduce":
            iters.append(BlockIter(Var(var.name), extent, "reduce", fresh[var]))
    return Block(intrin.name, tuple(iters), (), (), body, init)
