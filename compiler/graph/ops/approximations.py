"""Sigmoid, tanh and erf of float32 as onnxruntime computes them on x86, bit for bit.

Quantized models are calibrated and compared with onnxruntime, and a table of a function has its
rounding: a value between two steps falls to the side on which onnxruntime's approximation lies. The
rational functions and their coefficients are those of MLAS (``onnxruntime/core/mlas/lib``:
``logistic.cpp``, ``tanh.cpp``, ``erf.cpp``), with a fused multiplication and addition at each step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LOGISTIC_P = (4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05,
              8.51377133304701e-03, 2.48287947061529e-01)  # fmt: skip
LOGISTIC_Q = (6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06,
              1.70198817374094e-03, 1.16817656904453e-01, 9.93151921023180e-01)  # fmt: skip
TANH_P = (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
          1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)  # fmt: skip
TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03,
          4.89352518554385e-03)  # fmt: skip
ERF_SMALL = (-5.99104969e-4, 4.99339588e-3, -2.67667342e-2, 1.12818025e-1, -3.76124859e-1,
             1.28379151e-1)  # fmt: skip
ERF_BIG = (1.72948930e-5, -3.83208680e-4, 3.88393435e-3, -2.42545605e-2, 1.06777847e-1,
           6.34846687e-1, 1.28717512e-1)  # fmt: skip
EXP = (1.38319808e-3, 8.37550033e-3, 4.16689515e-2, 1.66664466e-1, 4.99999851e-1, 1.0, 1.0)

LOGISTIC_RANGE, TANH_RANGE, ERF_RANGE = 18.0, 9.0, 3.925
ERF_SPLIT = 0.921875  # above it, erf is 1 less an exponential
LOG2_E = 1.44269504088896341
LN_2_HIGH, LN_2_LOW = -6.93145752e-1, -1.42860677e-6  # of minus ln 2
ROUNDER = 1.25829120e7  # its last bit is 1: what is added to it is rounded to an integer


def sigmoid(x: Floats) -> Floats:
    """``1 / (1 + exp(-x))``."""
    x = np.clip(x, _f(-LOGISTIC_RANGE), _f(LOGISTIC_RANGE))
    square = x * x
    ratio = _polynomial(square, LOGISTIC_P) * x / _polynomial(square, LOGISTIC_Q)
    return np.asarray(np.clip(ratio + _f(0.5), _f(0.0), _f(1.0)))


def tanh(x: Floats) -> Floats:
    """The hyperbolic tangent."""
    x = np.clip(x, _f(-TANH_RANGE), _f(TANH_RANGE))
    square = x * x
    return _polynomial(square, TANH_P) * x / _polynomial(square, TANH_Q)


def erf(x: Floats) -> Floats:
    """The error function."""
    size = np.minimum(np.abs(x), _f(ERF_RANGE))
    small = _fused(_polynomial(size * size, ERF_SMALL), size, size)
    big = _f(1.0) - _exp(-_fused(_polynomial(size, ERF_BIG), size, size))
    return np.copysign(np.where(size > _f(ERF_SPLIT), big, small), x)


def _exp(x: Floats) -> Floats:
    """The exponential of numbers that aren't positive."""
    power = _fused(_f(LOG2_E), x, _f(ROUNDER)) - _f(ROUNDER)
    rest = _fused(power, _f(LN_2_LOW), _fused(power, _f(LN_2_HIGH), x))
    return np.asarray(_polynomial(rest, EXP) * np.exp2(power))


def _polynomial(x: Floats, coefficients: Sequence[float]) -> Floats:
    """A polynomial by Horner's rule; the coefficient of the highest power is the first."""
    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = _fused(result, x, _f(coefficient))
    return result


def _fused(a: Floats | np.float32, b: Floats | np.float32, c: Floats | np.float32) -> Floats:
    """``a * b + c``, rounded once: float64 holds the product of two float32 exactly."""
    return np.asarray(np.float64(a) * np.float64(b) + np.float64(c), np.float32)


def _f(value: float) -> np.float32:
    return np.float32(value)
