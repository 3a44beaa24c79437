"""Numbers of every type for kernels, and their comparison with the interpreter's."""

from __future__ import annotations

import numpy as np

from tests.support.kernels import plain
from vdla import te

RNG = np.random.default_rng(3)
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def random(shape, dtype):
    """Floats between 0 and 1, or any integers."""
    if dtype in FLOATS:
        return RNG.uniform(0.1, 0.9, shape).astype(dtype)
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def check_equal(arrays, wanted, tolerances):
    """Integers are equal, and floats within the tolerance of their type."""
    for found, want in zip(arrays, wanted, strict=True):
        if want.dtype.kind == "f":
            tolerance = tolerances[want.dtype.name]
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(found, want)


def requantization():
    """A schedule that requantizes any integers by any words, and its arrays."""
    x = te.placeholder((300,), "int32", "X")
    w = te.placeholder((300,), "int32", "W")
    s = plain(te.compute((300,), lambda i: te.rq(x[i], w[i]), "out"))
    words = ((RNG.integers(0, 64, 300) << 24) | RNG.integers(0, 1 << 24, 300)).astype(np.int32)
    return s, (random((300,), "int32"), words, np.zeros(300, np.int32))


def corners(count):
    """Integers of 32 bits: some below 1, powers of two and what lies beside them, and any."""
    powers = (1 << np.arange(31))[:, None] + np.arange(-1, 2)
    some = np.concatenate([np.arange(-3, 9), [-(1 << 31), (1 << 31) - 1], powers.reshape(-1)])
    return np.concatenate([some, random((count,), "int32")])[:count].astype(np.int32)


def reciprocals():
    """A schedule that makes scale words of 1 / y and 1 / √y, and its arrays."""
    y = te.placeholder((300,), "int32", "Y")
    s = plain(te.compute((300,), lambda i: te.reciprocal(y[i]) ^ te.rsqrt(y[i]), "out"))
    return s, (corners(300), np.zeros(300, np.int32))
