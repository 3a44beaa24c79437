"""The operations of an expression, to say which of them no intrinsic has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vdla.compiler.schedule.match import Region
from vdla.compiler.tir.ir import Binary, Call, Expr, Load, Not, Select
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import expr_children, loads

BY_VALUES = "select by values"
INSTEAD = {
    "floordiv": "x // 2**n is x >> n",
    "floormod": "x % 2**n is x - (x >> n << n)",
}


def foreign_operation(intrins: Sequence[TensorIntrin], region: Region) -> str | None:
    """The first operation of a region that none of some intrinsics has, and what they have."""
    behaviours = [e for i in intrins for e in (i.update, i.init) if e is not None]
    known = {name for each in behaviours for name, _ in _operations(each)}
    for name, part in _operations(region.value):
        if name not in known:
            hint = f"; {INSTEAD[name]}" if name in INSTEAD else ""
            names = ", ".join(sorted(known))
            return f"{show(part)}: none has the operation {name}, they have {names}{hint}"
    return None


def _operations(expr: Expr) -> Iterator[tuple[str, Expr]]:
    """The operations of an expression by name, outermost first, and what each is of.

    Indices are none, nor is a condition that says which elements there are.
    """
    match expr:
        case Load():
            return
        case Select(cond, a, b):
            if any(True for _ in loads(cond)):
                yield BY_VALUES, expr
            yield from _operations(a)
            yield from _operations(b)
            return
        case Binary(op, _, _) | Call(op, _, _):
            yield op, expr
        case Not():
            yield "not", expr
    for child in expr_children(expr):
        yield from _operations(child)
