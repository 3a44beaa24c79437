"""Integer reasoning over index expressions: linear forms, simplification, bounds.

A ``Linear`` is a constant plus integer multiples of atoms; an atom is a variable or an expression
that isn't linear in its variables (a quotient, a minimum, a load ...). Index arithmetic is
assumed not to overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vdla.compiler.tir import ops
from vdla.compiler.tir.ir import (
    COMPARISONS,
    FALSE,
    FLOATS,
    TRUE,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Not,
    Select,
    Var,
    const,
    is_int,
)
from vdla.compiler.tir.visitor import map_expr, walk_expr

Ranges = Mapping[Var, tuple[int, int]]
Bounds = tuple[int, int]

INDEX_DTYPES = ("int32", "int64")
NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant`` plus the sum of ``coefficient * atom`` over ``terms``; no coefficient is 0."""

    constant: int
    terms: Mapping[Expr, int]

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """The sum with ``times`` of another form."""
        terms = dict(self.terms)
        for atom, coeff in other.terms.items():
            total = terms.get(atom, 0) + coeff * times
            if total:
                terms[atom] = total
            else:
                terms.pop(atom, None)
        return Linear(self.constant + other.constant * times, terms)

    def times(self, factor: int) -> Linear:
        """The form times a constant."""
        if factor == 0:
            return Linear(0, {})
        return Linear(self.constant * factor, {a: c * factor for a, c in self.terms.items()})

    def divided(self, divisor: int) -> Linear:
        """The form over a divisor of all of its coefficients and its constant."""
        return Linear(self.constant // divisor, {a: c // divisor for a, c in self.terms.items()})


def is_index(expr: Expr) -> bool:
    """Whether index arithmetic applies: an integer expression that loads nothing."""
    return expr.dtype in INDEX_DTYPES and not any(
        isinstance(e, Load | Call) for e in walk_expr(expr)
    )


def linear(expr: Expr, ranges: Ranges | None = None) -> Linear:
    """The linear form of an integer expression."""
    match expr:
        case Var():
            return Linear(0, {expr: 1})
        case Const(value, _):
            return Linear(int(value), {})
        case Binary("add", a, b):
            return joined(linear(a, ranges).plus(linear(b, ranges)))
        case Binary("sub", a, b):
            return linear(a, ranges).plus(linear(b, ranges), -1)
        case Binary("mul", a, b):
            return _product(expr, linear(a, ranges), linear(b, ranges), ranges)
        case Binary("floordiv" | "floormod", a, Const(c, _)) if c > 0:
            return _divmod_form(expr.op, linear(a, ranges), int(c), expr.dtype, ranges)
    plain = map_expr(expr, lambda e: simplify(e, ranges))
    folded = _fold(plain, ranges)
    return Linear(0, {plain: 1}) if folded is plain else linear(folded, ranges)


def _product(expr: Expr, a: Linear, b: Linear, ranges: Ranges | None) -> Linear:
    """A product of two forms, one of which must be constant; else the product itself is an atom."""
    if not a.terms:
        return b.times(a.constant)
    if not b.terms:
        return a.times(b.constant)
    return Linear(0, {map_expr(expr, lambda e: simplify(e, ranges)): 1})


def _divmod_form(op: str, x: Linear, c: int, dtype: str, ranges: Ranges | None) -> Linear:
    """x // c or x % c: the part of x that c divides is split off."""
    whole = Linear(x.constant // c * c, {a: k for a, k in x.terms.items() if k % c == 0})
    rest = x.plus(whole, -1)
    if op == "floormod":
        if not rest.terms:
            return rest
        if _within(rest, 0, c - 1, ranges):
            return rest
        return Linear(0, {Binary("floormod", rebuild(rest, dtype), Const(c, dtype)): 1})
    quotient = whole.divided(c)
    if not rest.terms or _within(rest, 0, c - 1, ranges):
        return quotient
    return quotient.plus(Linear(0, {Binary("floordiv", rebuild(rest, dtype), Const(c, dtype)): 1}))


def joined(x: Linear) -> Linear:
    """c * (e // c) + e % c is e."""
    for atom, k in x.terms.items():
        if not (isinstance(atom, Binary) and atom.op == "floormod"):
            continue
        quotient = Binary("floordiv", atom.a, atom.b)
        divisor = atom.b.value if isinstance(atom.b, Const) else 0
        if divisor and x.terms.get(quotient) == k * divisor:
            gone = Linear(0, {atom: k, quotient: k * int(divisor)})
            return joined(x.plus(gone, -1).plus(linear(atom.a), k))
    return x


def _within(x: Linear, low: int, high: int, ranges: Ranges | None) -> bool:
    """Whether a form provably stays in ``low`` to ``high``."""
    if ranges is None:
        return False
    limits = linear_bounds(x, ranges)
    return limits is not None and limits[0] >= low and limits[1] <= high


def rebuild(x: Linear, dtype: str) -> Expr:
    """The expression of a linear form: positive terms first, the constant last."""
    result: Expr | None = None
    for atom, k in sorted(x.terms.items(), key=lambda item: item[1] < 0):
        size: Expr = atom if abs(k) == 1 else Binary("mul", atom, Const(abs(k), dtype))
        if result is None:
            result = size if k > 0 else Binary("mul", atom, Const(k, dtype))
        else:
            result = Binary("add" if k > 0 else "sub", result, size)
    if result is None:
        return Const(x.constant, dtype)
    if x.constant:
        op = "add" if x.constant > 0 else "sub"
        return Binary(op, result, Const(abs(x.constant), dtype))
    return result


def affine(expr: Expr) -> tuple[int, dict[Var, int]] | None:
    """(constant, {variable: coefficient}), or None where ``expr`` isn't affine."""
    if expr.dtype not in INDEX_DTYPES:
        return None
    form = linear(expr)
    terms = {atom: k for atom, k in form.terms.items() if isinstance(atom, Var)}
    return (form.constant, terms) if len(terms) == len(form.terms) else None


def difference(a: Expr, b: Expr, ranges: Ranges | None = None) -> int | None:
    """``a - b`` where it is the same for all values of the variables, else None."""
    delta = linear(a, ranges).plus(linear(b, ranges), -1)
    return None if delta.terms else delta.constant


def same(a: Expr, b: Expr, ranges: Ranges | None = None) -> bool:
    """Whether two expressions are provably equal."""
    if a == b:
        return True
    if a.dtype != b.dtype:
        return False
    if is_index(a) and is_index(b):
        return difference(a, b, ranges) == 0
    return bool(simplify(a, ranges) == simplify(b, ranges))


# --- bounds -------------------------------------------------------------------------------------


def bounds(expr: Expr, ranges: Ranges) -> Bounds | None:
    """The least and greatest value of an integer expression; None where they can't be told.

    ``ranges`` are the inclusive bounds of its variables.
    """
    return linear_bounds(linear(expr, ranges), ranges) if is_int(expr.dtype) else None


def linear_bounds(x: Linear, ranges: Ranges) -> Bounds | None:
    """The least and greatest value of a form, from those of its atoms."""
    low = high = x.constant
    for atom, k in x.terms.items():
        limits = _atom_bounds(atom, ranges)
        if limits is None:
            return None
        low += k * limits[0] if k > 0 else k * limits[1]
        high += k * limits[1] if k > 0 else k * limits[0]
    return low, high


def _atom_bounds(atom: Expr, ranges: Ranges) -> Bounds | None:
    """The least and greatest value of an atom; None where nothing is known."""
    match atom:
        case Var():
            return ranges.get(atom)
        case Binary("floormod", a, Const(c, _)) if c > 0:
            inner = bounds(a, ranges)
            if inner is not None and inner[0] // c == inner[1] // c:
                return int(inner[0] % c), int(inner[1] % c)
            return 0, int(c) - 1
        case Binary("floordiv", a, Const(c, _)) if c > 0:
            inner = bounds(a, ranges)
            return None if inner is None else (int(inner[0] // c), int(inner[1] // c))
        case Binary("min" | "max", a, b):
            return _minmax_bounds(atom.op, bounds(a, ranges), bounds(b, ranges))
        case Binary("mul", a, b):
            left, right = bounds(a, ranges), bounds(b, ranges)
            if left is None or right is None:
                return None
            corners = [p * q for p in left for q in right]
            return min(corners), max(corners)
        case Select(_, a, b):
            left, right = bounds(a, ranges), bounds(b, ranges)
            if left is None or right is None:
                return None
            return min(left[0], right[0]), max(left[1], right[1])
        case Cast(a, _) if a.dtype in INDEX_DTYPES:
            return bounds(a, ranges)
        case Cast(a, _) if a.dtype == "bool":
            return 0, 1
    return None


def _minmax_bounds(op: str, a: Bounds | None, b: Bounds | None) -> Bounds | None:
    if a is None or b is None:
        return None
    pick = min if op == "min" else max
    return pick(a[0], b[0]), pick(a[1], b[1])


# --- simplification -----------------------------------------------------------------------------


def simplify(expr: Expr, ranges: Ranges | None = None) -> Expr:
    """An equal expression in canonical form; ``ranges`` are the variables' inclusive bounds."""
    if isinstance(expr, Const | Var):
        return expr
    if is_index(expr):
        return rebuild(linear(expr, ranges), expr.dtype)
    return _fold(map_expr(expr, lambda e: simplify(e, ranges)), ranges)


def _fold(expr: Expr, ranges: Ranges | None) -> Expr:
    """One node whose children are simplified."""
    match expr:
        case Binary(op, a, b) if op in COMPARISONS:
            return _fold_comparison(expr, ranges)
        case Binary("and" | "or", a, b):
            return _fold_logic(expr.op, a, b)
        case Binary():
            return _fold_arithmetic(expr, ranges)
        case Not(Const(value, _)):
            return FALSE if value else TRUE
        case Not(Not(a)):
            return a
        case Not(Binary(op, a, b)) if op in NEGATED and a.dtype not in FLOATS:
            return _fold(Binary(NEGATED[op], a, b), ranges)
        case Select(Const(value, _), a, b):
            return a if value else b
        case Select(_, a, b) if a == b:
            return a
        case Cast(Const(value, source), dtype):
            folded = _fold_cast(value, source, dtype)
            return expr if folded is None else folded
    return expr


def _fold_cast(value: int | float, source: str, dtype: str) -> Const | None:
    """A constant as another dtype; None where that rounds, which is left to the program."""
    if dtype in FLOATS:
        return const(value, dtype) if source not in FLOATS or source == dtype else None
    if source in FLOATS:
        return None
    if dtype == "bool":
        return const(bool(value), dtype)
    return const(ops.wrap(int(value), dtype), dtype)


def _fold_logic(op: str, a: Expr, b: Expr) -> Expr:
    """``and`` or ``or`` of simplified conditions, without what doesn't matter."""
    unit, zero = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    if zero in (a, b):
        return zero
    if a in (unit, b):
        return b
    return a if b == unit else Binary(op, a, b)


def _fold_comparison(expr: Binary, ranges: Ranges | None) -> Expr:
    """A comparison: decided where the bounds decide it, else without terms that can't."""
    a, b = expr.a, expr.b
    if not is_int(a.dtype) or not (is_index(a) and is_index(b)):
        if isinstance(a, Const) and isinstance(b, Const):
            x, y = (np.dtype(e.dtype).type(e.value) for e in (a, b))  # float32 rounds
            return TRUE if ops.UFUNCS[expr.op](x, y) else FALSE
        return expr
    delta = linear(a, ranges).plus(linear(b, ranges), -1)
    limits = linear_bounds(delta, ranges or {})
    if limits is None:
        return expr
    decided = _decide(expr.op, limits)
    if decided is not None:
        return decided
    coarse = _coarser(expr.op, delta, a.dtype, ranges or {})
    return expr if coarse is None else coarse


def _coarser(op: str, delta: Linear, dtype: str, ranges: Ranges) -> Expr | None:
    """``delta op 0`` without the terms that can't decide it; None where there are none.

    With 0 <= i < 16, ``y * 16 + i < 48`` is ``y < 3``: a predicate over whole vectors.
    """
    if op not in ("lt", "le", "gt", "ge"):
        return None
    shifted = delta.plus(Linear(-1 if op in ("le", "gt") else 0, {}))  # decided by its sign
    for factor in sorted({abs(k) for k in shifted.terms.values()} - {1}):
        whole = {atom: k for atom, k in shifted.terms.items() if k % factor == 0}
        rest = Linear(
            shifted.constant % factor, {atom: k for atom, k in shifted.terms.items() if k % factor}
        )
        if rest.terms and _within(rest, 0, factor - 1, ranges):
            form = Linear(shifted.constant // factor, {a: k // factor for a, k in whole.items()})
            low = Linear(0, {a: -k for a, k in form.terms.items() if k < 0})
            high = Linear(0, {a: k for a, k in form.terms.items() if k > 0})
            low = low.plus(Linear(-form.constant, {}))
            negative = "lt" if op in ("lt", "le") else "ge"
            return Binary(negative, rebuild(high, dtype), rebuild(low, dtype))
    return None


def _decide(op: str, delta: Bounds) -> Expr | None:
    """The comparison of a value in ``delta`` with zero, where all values agree."""
    low, high = delta
    always, never = {
        "lt": (high < 0, low >= 0),
        "le": (high <= 0, low > 0),
        "gt": (low > 0, high <= 0),
        "ge": (low >= 0, high < 0),
        "eq": (low == high == 0, low > 0 or high < 0),
        "ne": (low > 0 or high < 0, low == high == 0),
    }[op]
    return TRUE if always else FALSE if never else None


def _fold_arithmetic(expr: Binary, ranges: Ranges | None) -> Expr:
    """Arithmetic without neutral elements, of constants done, constants on the right."""
    op, a, b = expr.op, expr.a, expr.b
    if isinstance(a, Const) and isinstance(b, Const) and is_int(expr.dtype):
        return _fold_constants(expr, int(a.value), int(b.value))
    if op in ("add", "mul") and isinstance(a, Const):
        a, b = b, a
        expr = Binary(op, a, b)
    if op == "sub" and isinstance(b, Const) and is_int(expr.dtype) and expr.dtype != "uint8":
        op, b = "add", const(ops.wrap(-int(b.value), expr.dtype), expr.dtype)
        expr = Binary(op, a, b)
    if isinstance(b, Const):
        if b.value == 0 and is_int(expr.dtype) and op in ("add", "sub", "shl", "shr"):
            return a
        if b.value == 1 and op in ("mul", "floordiv", "div"):
            return a
    if op in ("min", "max") and is_index(expr):
        return _fold_minmax(expr, ranges)
    return expr


def _fold_constants(expr: Binary, a: int, b: int) -> Expr:
    """An operation on two integer constants; not done where dividing or shifting is undefined."""
    op = expr.op
    if op in ("floordiv", "floormod"):
        if b == 0:
            return expr
        value = a // b if op == "floordiv" else a % b
    elif op in ("shl", "shr"):
        if not 0 <= b < 64:
            return expr
        value = a << b if op == "shl" else a >> b
    else:
        value = {
            "add": a + b,
            "sub": a - b,
            "mul": a * b,
            "min": min(a, b),
            "max": max(a, b),
            "bitand": a & b,
            "bitor": a | b,
            "bitxor": a ^ b,
        }[op]
    return const(ops.wrap(value, expr.dtype), expr.dtype)


def _fold_minmax(expr: Binary, ranges: Ranges | None) -> Expr:
    """A minimum or maximum, decided where the bounds of the difference decide it."""
    delta = linear(expr.a, ranges).plus(linear(expr.b, ranges), -1)
    limits = linear_bounds(delta, ranges or {})
    if limits is None:
        return expr
    if limits[1] <= 0:
        return expr.a if expr.op == "min" else expr.b
    if limits[0] >= 0:
        return expr.b if expr.op == "min" else expr.a
    return expr
