"""Functions of values."""

from __future__ import annotations

from vdla.compiler.te.tensor import TEError
from vdla.compiler.tir.ir import (
    FALSE,
    Binary,
    Expr,
    ExprLike,
    Select,
    all_of,
    as_expr,
    binary,
    call,
)


def if_then_else(cond: Expr, a: ExprLike, b: ExprLike) -> Expr:
    """`a` where `cond` holds, else `b`; only the chosen one is evaluated."""
    if not isinstance(a, Expr) and isinstance(b, Expr):
        return Select(cond, as_expr(a, b.dtype), b)
    left = as_expr(a)
    return Select(cond, left, as_expr(b, left.dtype))


def select(cond: Expr, a: ExprLike, b: ExprLike) -> Expr:
    return if_then_else(cond, a, b)


def all(*conds: Expr) -> Expr:
    """The conjunction of the conditions."""
    return all_of(*conds)


def any(*conds: Expr) -> Expr:
    """The disjunction of the conditions."""
    if not conds:
        return FALSE
    result = conds[0]
    for cond in conds[1:]:
        result = Binary("or", result, cond)
    return result


def equal(a: ExprLike, b: ExprLike) -> Expr:
    return binary("eq", a, b)


def not_equal(a: ExprLike, b: ExprLike) -> Expr:
    return binary("ne", a, b)


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    return binary("floordiv", a, b)


def floormod(a: ExprLike, b: ExprLike) -> Expr:
    return binary("floormod", a, b)


def rq(acc: Expr, scale: Expr) -> Expr:
    """Exact requantization of an int32: acc * m / 2**k, half to even, saturated to int32.

    `scale` is an int32 word: m in its low 24 bits (unsigned), k (0..63) in the 8 above.
    """
    return call("rq", acc, scale)


def requantize(acc: Expr, scale: Expr, zero: int = 0, low: int = -128, high: int = 127) -> Expr:
    """`rq(acc, scale) + zero` between `low` and `high`, in int32; what RQ and STORE compute.

    The zero point moves into the bounds, so that the addition can't overflow.
    """
    bounded = binary("min", binary("max", rq(acc, scale), low - zero), high - zero)
    return bounded + zero if zero else bounded


def pack_scale(mantissa: int, shift: int) -> int:
    """The int32 word that `rq` takes for `mantissa / 2**shift`."""
    if not 0 <= mantissa < 1 << 24:
        raise TEError(f"pack_scale: expected a mantissa of 24 bits, found {mantissa}")
    if not 0 <= shift < 64:
        raise TEError(f"pack_scale: expected a shift in 0..63, found {shift}")
    return shift << 24 | mantissa


def exp(x: Expr) -> Expr:
    return call("exp", x)


def log(x: Expr) -> Expr:
    return call("log", x)


def sqrt(x: Expr) -> Expr:
    return call("sqrt", x)


def tanh(x: Expr) -> Expr:
    return call("tanh", x)


def erf(x: Expr) -> Expr:
    return call("erf", x)


def floor(x: Expr) -> Expr:
    return call("floor", x)


def rint(x: Expr) -> Expr:
    """To the nearest integer, ties to the even one."""
    return call("rint", x)


def power(x: Expr, y: ExprLike) -> Expr:
    return call("pow", x, as_expr(y, x.dtype))


def abs(x: Expr) -> Expr:
    return call("abs", x)


def sigmoid(x: Expr) -> Expr:
    one = as_expr(1.0, x.dtype)
    return one / (one + exp(-x))
