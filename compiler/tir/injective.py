"""Whether a statement in loops goes to another element each time it runs.

The offset of the element is a linear form of the loop variables; a fused variable f, of which only
``f // c`` and ``f % c`` occur, is taken apart into these two. The form is injective where its
coefficients are those of a positional number system with gaps: in ascending order, each one exceeds
the sum of all that the smaller ones reach.
"""

from __future__ import annotations

from collections.abc import Mapping

from vdla.compiler.tir.arith import Linear, Ranges, linear
from vdla.compiler.tir.ir import Binary, Const, Expr, Stmt, Store, Var
from vdla.compiler.tir.region import scoped
from vdla.compiler.tir.visitor import substitute_expr, walk_expr


def stores_once(body: Stmt, store: Store) -> bool:
    """Whether ``store``, a statement in ``body``, provably writes no element twice."""
    for stmt, extents, env in scoped(body, {}, {}):
        if stmt is store:
            index = offset(store.buffer.shape, store.indices)
            return injective(substitute_expr(index, env), extents)
    raise ValueError(f"expected a store in the body, found one to {store.buffer.name} elsewhere")


def offset(shape: tuple[int, ...], indices: tuple[Expr, ...]) -> Expr:
    """The position of an element in row-major order, in elements; an int64 where an index is."""
    dtype = "int64" if any(index.dtype == "int64" for index in indices) else "int32"
    position: Expr = Const(0, dtype)
    for size, index in zip(shape, indices, strict=True):
        position = position * size + index.astype(dtype)
    return position


def injective(index: Expr, extents: Mapping[Var, int]) -> bool:
    """Whether an integer expression differs for any two iterations of loops, by their extents.

    False where it isn't known.
    """
    ranges = {var: (0, extent - 1) for var, extent in extents.items()}
    form = linear(index, ranges)
    while (fused := _fused(form, ranges)) is not None:
        var, divisor = fused
        outer, inner = Var(f"{var.name}_o", var.dtype), Var(f"{var.name}_i", var.dtype)
        ranges[outer], ranges[inner] = (
            (0, (ranges.pop(var)[1] + 1) // divisor - 1),
            (0, divisor - 1),
        )
        index = substitute_expr(index, {var: outer * divisor + inner})
        form = linear(index, ranges)
    return _positional(form, ranges)


def _fused(form: Linear, ranges: Ranges) -> tuple[Var, int] | None:
    """A variable that a form has a quotient or a remainder of, and the divisor; None where there
    is none whose range that divides."""
    for atom in form.terms:
        for part in walk_expr(atom):
            match part:
                case Binary("floordiv" | "floormod", Var() as var, Const(c, _)):
                    if var in ranges and (ranges[var][1] + 1) % int(c) == 0:
                        return var, int(c)
    return None


def _positional(form: Linear, ranges: Ranges) -> bool:
    """Whether the coefficients of a form of variables alone are those of a number system."""
    steps = []
    for var, (_, last) in ranges.items():
        if last:
            steps.append((abs(form.terms.get(var, 0)), last))
    if any(atom not in ranges for atom in form.terms):
        return False
    reach = 0
    for coefficient, last in sorted(steps):
        if coefficient <= reach:
            return False
        reach += coefficient * last
    return True
