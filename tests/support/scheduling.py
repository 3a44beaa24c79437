"""Small schedules for the tests of primitives, and what is checked of each."""

from __future__ import annotations

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import ScheduleError

RNG = np.random.default_rng(0)


def chain(n=10, m=8):
    """A -> B -> C, elementwise."""
    a = te.placeholder((n, m), "int32", "A")
    b = te.compute((n, m), lambda y, x: a[y, x] + 1, "B")
    c = te.compute((n, m), lambda y, x: b[y, x] * 2, "C")
    return a, b, c, te.create_schedule(c)


def matmul(n=6, m=4, k=5):
    a, b = te.placeholder((n, k), "int32", "A"), te.placeholder((k, m), "int32", "B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute((n, m), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "C")
    d = te.compute((n, m), lambda y, x: te.max(c[y, x], 0), "D")
    return a, b, c, d, te.create_schedule(d)


def check(s):
    """The schedule computes what its tensors say, before and after lowering."""
    func = s.built.func
    arrays = [RNG.integers(-9, 9, p.shape).astype(p.dtype) for p in func.params[:-1]]
    (expected,) = tir.evaluate(func, *arrays)
    for mod in (s.mod, s.lower()):
        np.testing.assert_array_equal(tir.evaluate(mod, *arrays)[0], expected)


def body(s):
    """The lowered function's lines below its head."""
    return [line[4:] for line in tir.show(s.lower()).splitlines()[1:]]


def rejects(action, text):
    with pytest.raises(ScheduleError) as error:
        action()
    assert str(error.value) == text
