"""Functions of values, for the bodies of ``te.compute``.

Each builds an expression. Python numbers take the dtype of the expression beside them. The float
functions (``exp``, ``sqrt`` …) take float32 or float64; an ``TermError`` says so where they get
something else.
"""

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
    """``a`` where ``cond`` holds, else ``b``; only the chosen one is evaluated.

    So the other one may read outside of its tensor: padding is ``if_then_else(inside, A[i], 0)``.
    """
    cond = as_condition("if_then_else", cond)
    if not isinstance(a, Expr) and isinstance(b, Expr):
        return Select(cond, as_expr(a, b.dtype), b)
    left = as_expr(a)
    return Select(cond, left, as_expr(b, left.dtype))


def select(cond: Expr, a: ExprLike, b: ExprLike) -> Expr:
    """``a`` where the condition holds, else ``b``; unlike in TVM, only that one is evaluated."""
    return if_then_else(cond, a, b)


def all(*conds: Expr) -> Expr:
    """Whether every condition holds; true for none."""
    return all_of(*(as_condition("all", cond) for cond in conds))


def any(*conds: Expr) -> Expr:
    """Whether some condition holds; false for none."""
    if not conds:
        return FALSE
    result, *others = (as_condition("any", cond) for cond in conds)
    for cond in others:
        result = Binary("or", result, cond)
    return result


def as_condition(where: str, cond: object) -> Expr:
    """A condition as it is.

    Raises:
        TEError: it is no expression but Python's True or False, as trees compared by ``==`` are.
    """
    if isinstance(cond, Expr):
        return cond
    raise TEError(
        f"{where}: expected a condition, as i.equal(j), found {cond!r}; outside of a function "
        "that te calls, == compares two expressions as trees"
    )


def equal(a: ExprLike, b: ExprLike) -> Expr:
    """Whether two values are equal, as a bool; as ``a == b`` is in functions that te calls."""
    return binary("eq", a, b)


def not_equal(a: ExprLike, b: ExprLike) -> Expr:
    """Whether two values differ, as a bool."""
    return binary("ne", a, b)


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """The quotient of two integers, rounded towards minus infinity: ``-7 // 2`` is ``-4``."""
    return binary("floordiv", a, b)


def floormod(a: ExprLike, b: ExprLike) -> Expr:
    """The remainder of ``floordiv``, with the sign of the divisor: ``-7 % 2`` is ``1``."""
    return binary("floormod", a, b)


def rq(acc: Expr, scale: Expr) -> Expr:
    """Exact requantization of an int32: ``acc * m / 2**k``, half to even, saturated to int32.

    Args:
        acc: the value.
        scale: an int32 word: ``m`` in its low 24 bits (unsigned), ``k`` (0 to 63) in the 8 above.
            ``scale_word`` makes one.
    """
    return call("rq", acc, scale)


def requantize(acc: Expr, scale: Expr, zero: int = 0, low: int = -128, high: int = 127) -> Expr:
    """``rq(acc, scale) + zero`` between ``low`` and ``high``, in int32; what RQ and STORE compute.

    The zero point moves into the bounds, so that the addition can't overflow. ``scale`` is as in
    ``rq``; ``zero``, ``low`` and ``high`` are those of the quantized output.
    """
    bounded = binary("min", binary("max", rq(acc, scale), low - zero), high - zero)
    return bounded + zero if zero else bounded


def reciprocal(y: Expr) -> Expr:
    """The scale word of 1 / y for an int32, as ``rq`` takes it; 0, a scale of zero, for y ≤ 0.

    The mantissa is normalized, from 2**22 to 2**23, and rounded down: the number that the word
    stands for is below 1 / y by less than 2**-22 of it, or equal to it.
    """
    return call("reciprocal", y)


def rsqrt(y: Expr) -> Expr:
    """The scale word of 1 / √y for an int32, as ``rq`` takes it; 0, a scale of zero, for y ≤ 0.

    The mantissa is normalized, from 2**22 to 2**23. The number that the word stands for differs
    from 1 / √y by less than 2**-22 of it.
    """
    return call("rsqrt", y)


def scale_word(mantissa: int, shift: int) -> int:
    """The int32 word that ``rq`` takes for the scale ``mantissa / 2**shift``.

    Raises:
        TEError: the mantissa isn't one of 24 bits, or the shift isn't in 0 to 63.
    """
    if not 0 <= mantissa < 1 << 24:
        raise TEError(f"scale_word: expected a mantissa of 24 bits, found {mantissa}")
    if not 0 <= shift < 64:
        raise TEError(f"scale_word: expected a shift in 0..63, found {shift}")
    return shift << 24 | mantissa


def exp(x: Expr) -> Expr:
    """e to the power of a float."""
    return call("exp", x)


def log(x: Expr) -> Expr:
    """The natural logarithm of a float."""
    return call("log", x)


def sqrt(x: Expr) -> Expr:
    """The square root of a float."""
    return call("sqrt", x)


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent of a float."""
    return call("tanh", x)


def erf(x: Expr) -> Expr:
    """The error function of a float, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)``."""
    return call("erf", x)


def sin(x: Expr) -> Expr:
    """The sine of a float, in radians."""
    return call("sin", x)


def cos(x: Expr) -> Expr:
    """The cosine of a float, in radians."""
    return call("cos", x)


def tan(x: Expr) -> Expr:
    """The tangent of a float, in radians."""
    return call("tan", x)


def asin(x: Expr) -> Expr:
    """The angle in radians whose sine a float is; NaN beyond -1 to 1."""
    return call("asin", x)


def acos(x: Expr) -> Expr:
    """The angle in radians whose cosine a float is; NaN beyond -1 to 1."""
    return call("acos", x)


def atan(x: Expr) -> Expr:
    """The angle in radians whose tangent a float is."""
    return call("atan", x)


def sinh(x: Expr) -> Expr:
    """The hyperbolic sine of a float."""
    return call("sinh", x)


def cosh(x: Expr) -> Expr:
    """The hyperbolic cosine of a float."""
    return call("cosh", x)


def asinh(x: Expr) -> Expr:
    """The inverse of ``sinh``."""
    return call("asinh", x)


def acosh(x: Expr) -> Expr:
    """The inverse of ``cosh``; NaN below 1."""
    return call("acosh", x)


def atanh(x: Expr) -> Expr:
    """The inverse of ``tanh``; NaN beyond -1 to 1."""
    return call("atanh", x)


def floor(x: Expr) -> Expr:
    """A float rounded towards minus infinity; it stays a float."""
    return call("floor", x)


def rint(x: Expr) -> Expr:
    """A float rounded to the nearest integer, ties to the even one; it stays a float."""
    return call("rint", x)


def fma(x: Expr, y: Expr, z: Expr) -> Expr:
    """``x * y + z`` of float32, rounded once."""
    return call("fma", x, y, z)


def power(x: Expr, y: ExprLike) -> Expr:
    """``x`` to the power of ``y``, two floats."""
    return call("pow", x, as_expr(y, x.dtype))


def abs(x: Expr) -> Expr:
    """The absolute value of an integer or a float; that of the least integer wraps to itself."""
    return call("abs", x)


def sigmoid(x: Expr) -> Expr:
    """The logistic function of a float, ``1 / (1 + exp(-x))``."""
    one = as_expr(1.0, x.dtype)
    return one / (one + exp(-x))
