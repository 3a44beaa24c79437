"""exp, log, tanh and erf of float32 as arithmetic, and scale words: for all printers of LLVM IR.

Vectors do each in all lanes at once. exp and log reduce their argument to a short range and take a
polynomial there, without branches (Muller, "Elementary Functions", Birkhäuser 2016, part 2). The
polynomials interpolate at Chebyshev's nodes, so that their error is nearly the same everywhere.
tanh and erf are onnxruntime's approximations, so that what is quantized behind them is rounded as
there. Results of exp and log are within 4 units in the last place of the true ones, those of tanh
and erf within 6; zeros, infinities and NaN are those of C's functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from llvmlite import ir as ll
from numpy.polynomial import Chebyshev, Polynomial

from vdla.compiler.graph.ops.approximations import (
    ERF_BIG,
    ERF_RANGE,
    ERF_SMALL,
    ERF_SPLIT,
    EXP,
    LN_2_HIGH,
    LN_2_LOW,
    LOG2_E,
    TANH_P,
    TANH_Q,
    TANH_RANGE,
)
from vdla.compiler.targets.lanes import constant, shaped
from vdla.compiler.tir.ir import INT_RANGES

I32, I64, DOUBLE = ll.IntType(32), ll.IntType(64), ll.DoubleType()
LN2_HIGH = 0.693145751953125  # its first 15 bits: exact in float32 times a number of 8 bits
LN2_LOW = math.log(2) - LN2_HIGH
WHOLE = 1.5 * 2**23  # added to a float32, it leaves a whole number in the lowest bits
MANTISSA, BIAS = 23, 127  # bits of a float32, and what is added to its exponent
NORMAL = 2.0**-126  # the least float32 with all of its bits

IN_LANES = frozenset({"exp", "log", "tanh", "erf"})


def requantized(b: ll.IRBuilder, acc: ll.Value, scale: ll.Value) -> ll.Value:
    """Appends ``tir.ops.rq`` of int32, in all lanes; every step is exact in 64 bits."""
    narrow, wide = acc.type, shaped(I64, acc)

    def of(kind: ll.Type, value: int) -> ll.Value:
        return constant(kind, value)

    mantissa = b.zext(b.and_(scale, of(narrow, 0xFFFFFF)), wide)
    shift = b.zext(b.and_(b.lshr(scale, of(narrow, 24)), of(narrow, 63)), wide)
    product = b.mul(b.sext(acc, wide), mantissa, flags=("nsw",))
    odd = b.and_(b.ashr(product, shift), of(wide, 1))
    half = b.lshr(b.shl(of(wide, 1), shift), of(wide, 1))
    nearest = b.add(b.sub(half, of(wide, 1)), odd)
    nearest = b.select(b.icmp_unsigned("==", shift, of(wide, 0)), of(wide, 0), nearest)
    result = b.ashr(b.add(product, nearest), shift)
    low, high = (of(wide, n) for n in INT_RANGES["int32"])
    result = b.select(b.icmp_signed("<", result, low), low, result)
    result = b.select(b.icmp_signed(">", result, high), high, result)
    return b.trunc(result, narrow)


def scale_word(
    b: ll.IRBuilder, op: str, y: ll.Value, root: Callable[[ll.Value], ll.Value]
) -> ll.Value:
    """Appends ``tir.ops.reciprocal`` or ``tir.ops.rsqrt`` of int32, in all lanes.

    Quotients and roots are rounded to float64 and then down. Both steps are exact: an integer that
    they don't reach is farther away than float64 rounds. ``root`` appends a square root.
    """
    wide, exact = shaped(I64, y), shaped(DOUBLE, y)
    number = b.sitofp(y, exact)
    length = b.sub(b.lshr(b.bitcast(number, wide), constant(wide, 52)), constant(wide, 1023))
    if op == "rsqrt":
        length = b.lshr(length, constant(wide, 1))
        whole = b.fmul(number, _two_to(b, b.sub(constant(wide, 46), b.add(length, length))))
        number = b.sitofp(b.fptosi(root(whole), wide), exact)
        power = constant(exact, 2.0**46)
    else:
        power = _two_to(b, b.add(length, constant(wide, MANTISSA)))
    mantissa = b.fptosi(b.fdiv(power, number), wide)
    shift = b.add(length, constant(wide, MANTISSA))
    word = b.trunc(b.or_(mantissa, b.shl(shift, constant(wide, 24))), y.type)
    none = constant(y.type, 0)
    return b.select(b.icmp_signed(">", y, none), word, none)


def _two_to(b: ll.IRBuilder, n: ll.Value) -> ll.Value:
    """The float64 that is two to the power of an int64."""
    bits = b.shl(b.add(n, constant(n.type, 1023)), constant(n.type, 52))
    return b.bitcast(bits, shaped(DOUBLE, n))


class Mathematics:
    """Appends what computes a function of a float32, or of a vector of them."""

    def __init__(
        self, builder: ll.IRBuilder, fused: Callable[[ll.Value, ll.Value, ll.Value], ll.Value]
    ) -> None:
        """``fused`` appends ``x * y + z``."""
        self.b, self.fused = builder, fused

    def exp(self, x: ll.Value) -> ll.Value:
        """2^n * e^r, n the nearest whole number to x / ln 2."""
        b = self.b
        x = self._select(">", x, 89.0, self._like(x, 89.0), x)
        x = self._select("<", x, -104.0, self._like(x, -104.0), x)
        shifted = self.fused(x, self._like(x, 1 / math.log(2)), self._like(x, WHOLE))
        n = b.fsub(shifted, self._like(x, WHOLE))
        rest = self.fused(n, self._like(x, -LN2_HIGH), x)
        rest = self.fused(n, self._like(x, -LN2_LOW), rest)
        power = self._polynomial(rest, polynomial("exp", -0.35, 0.35, 6))
        bits = shaped(I32, x)
        whole = b.sub(b.bitcast(shifted, bits), b.bitcast(self._like(x, WHOLE), bits))
        half = b.ashr(whole, constant(bits, 1))
        for part in (half, b.sub(whole, half)):  # one factor alone could be too large or too small
            power = b.fmul(power, self._power_of_two(part, x))
        return power

    def log(self, x: ll.Value) -> ll.Value:
        """n ln 2 + log m, m near 1: log m = 2 artanh((m - 1) / (m + 1))."""
        b, bits = self.b, shaped(I32, x)
        tiny = b.fcmp_ordered("<", x, self._like(x, NORMAL))
        scaled = b.select(tiny, b.fmul(x, self._like(x, 2.0**MANTISSA)), x)
        root = np.float32(math.sqrt(0.5)).view(np.int32)  # m is in √½ to √2
        above = b.sub(b.bitcast(scaled, bits), constant(bits, int(root)))
        exponent = b.ashr(above, constant(bits, MANTISSA))
        mantissa = b.add(
            b.and_(above, constant(bits, (1 << MANTISSA) - 1)), constant(bits, int(root))
        )
        n = b.sitofp(exponent, x.type)
        n = b.select(tiny, b.fsub(n, self._like(x, float(MANTISSA))), n)
        f = b.fsub(b.bitcast(mantissa, x.type), self._like(x, 1.0))
        s = b.fdiv(f, b.fadd(f, self._like(x, 2.0)))
        square = b.fmul(s, s)
        series = self._polynomial(square, polynomial("artanh", 0.0, 0.0296, 4))
        # f - s * (f - s² * series): 2s is f - s * f, and f is exact
        rest = b.fmul(s, b.fsub(f, b.fmul(square, series)))
        result = b.fadd(self.fused(n, self._like(x, LN2_LOW), b.fneg(rest)), f)
        result = self.fused(n, self._like(x, LN2_HIGH), result)
        result = self._select("==", x, math.inf, x, result)
        result = self._select("==", x, 0.0, self._like(x, -math.inf), result)
        wrong = b.fcmp_unordered("<", x, self._like(x, 0.0))
        return b.select(wrong, self._like(x, math.nan), result)

    def tanh(self, x: ll.Value) -> ll.Value:
        """onnxruntime's quotient."""
        return self._quotient(x, TANH_RANGE, TANH_P, TANH_Q)

    def erf(self, x: ll.Value) -> ll.Value:
        """onnxruntime's: a polynomial of x² near 0, and 1 less an exponential farther away."""
        b, bits = self.b, shaped(I32, x)
        size = b.bitcast(b.and_(b.bitcast(x, bits), constant(bits, (1 << 31) - 1)), x.type)
        size = self._select(">", size, ERF_RANGE, self._like(x, ERF_RANGE), size)
        near = self._polynomial(b.fmul(size, size), [*reversed(ERF_SMALL)])
        far = self.fused(self._polynomial(size, [*reversed(ERF_BIG)]), size, size)
        far = b.fsub(self._like(x, 1.0), self._negative_exp(b.fneg(far)))
        result = self._select(">", size, ERF_SPLIT, far, self.fused(near, size, size))
        sign = b.and_(b.bitcast(x, bits), constant(bits, -(1 << 31)))
        return b.bitcast(b.or_(b.bitcast(result, bits), sign), x.type)

    def _negative_exp(self, x: ll.Value) -> ll.Value:
        """onnxruntime's exponential of numbers from -80 to 0."""
        b, bits, whole = self.b, shaped(I32, x), self._like(x, WHOLE)
        shifted = self.fused(self._like(x, LOG2_E), x, whole)
        n = b.fsub(shifted, whole)
        rest = self.fused(n, self._like(x, LN_2_HIGH), x)
        rest = self.fused(n, self._like(x, LN_2_LOW), rest)
        power = self._power_of_two(b.sub(b.bitcast(shifted, bits), b.bitcast(whole, bits)), x)
        return b.fmul(self._polynomial(rest, [*reversed(EXP)]), power)

    def _quotient(
        self, x: ll.Value, limit: float, over: Sequence[float], under: Sequence[float]
    ) -> ll.Value:
        """x * over(x²) / under(x²) of an x that is cut to -limit to limit; -1 to 1."""
        b, near = self.b, self._cut(x, limit)
        square = b.fmul(near, near)
        above, below = (self._polynomial(square, [*reversed(each)]) for each in (over, under))
        return self._cut(b.fmul(near, b.fdiv(above, below)), 1.0)

    def _cut(self, x: ll.Value, limit: float) -> ll.Value:
        """A number that is no farther from 0 than a limit; NaN stays NaN."""
        x = self._select(">", x, limit, self._like(x, limit), x)
        return self._select("<", x, -limit, self._like(x, -limit), x)

    def _power_of_two(self, n: ll.Value, like: ll.Value) -> ll.Value:
        bits = n.type
        exponent = self.b.add(n, constant(bits, BIAS))
        return self.b.bitcast(self.b.shl(exponent, constant(bits, MANTISSA)), like.type)

    def _polynomial(self, x: ll.Value, coefficients: list[float]) -> ll.Value:
        """By Horner's rule."""
        total = self._like(x, coefficients[-1])
        for each in reversed(coefficients[:-1]):
            total = self.fused(total, x, self._like(x, each))
        return total

    def _select(
        self, symbol: str, x: ll.Value, limit: float, then: ll.Value, orelse: ll.Value
    ) -> ll.Value:
        """``then`` where x compares so with a limit; NaN never does."""
        return self.b.select(self.b.fcmp_ordered(symbol, x, self._like(x, limit)), then, orelse)

    def _like(self, x: ll.Value, value: float) -> ll.Value:
        """A constant of the type that x has."""
        return constant(x.type, float(np.float32(value)))


def _series(size: float) -> float:
    """(artanh s - s) / s³ * 2, of s²."""
    if size < 1e-6:
        return 2 / 3 + size * 2 / 5
    s = math.sqrt(size)
    return 2 * (math.atanh(s) - s) / s**3


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "artanh": _series,
}


@cache
def polynomial(name: str, low: float, high: float, degree: int) -> list[float]:
    """Coefficients, the lowest power's first, of a polynomial that is nearly a function from
    ``low`` to ``high``."""
    function = np.vectorize(FUNCTIONS[name], otypes=[np.float64])
    result = Chebyshev.interpolate(function, degree, [low, high])
    return [float(c) for c in result.convert(kind=Polynomial).coef]
