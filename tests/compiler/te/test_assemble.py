"""Tensors whose parts are computed at their own places."""

from __future__ import annotations

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import ScheduleError
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.te import TEError

X = np.arange(12, dtype=np.int32).reshape(3, 4)
Y = X * 10 + 3


def assembled():
    """Rows of two tensors by turns; one of them goes through a stage of its own."""
    x, y = te.placeholder((3, 4), "int32", "X"), te.placeholder((3, 4), "int32", "Y")
    doubled = te.compute((3, 4), lambda i, j: x[i, j] * 2, "doubled")
    even = te.compute((3, 4), lambda i, j: doubled[i, j] + 1, "even")
    odd = te.compute((3, 4), lambda i, j: y[i, j] - 1, "odd")
    parts = [(even, lambda i, j: (i * 2, j)), (odd, lambda i, j: (i * 2 + 1, j))]
    return doubled, even, odd, te.assemble((6, 4), parts, "C")


def expected():
    result = np.empty((6, 4), np.int32)
    result[::2], result[1::2] = X * 2 + 1, Y - 1
    return result


def results(s):
    """The result of a schedule as it stands, lowered, and compiled."""
    (whole,), (lowered,) = tir.evaluate(s.mod, X, Y), tir.evaluate(s.lower(), X, Y)
    native = np.zeros_like(whole)
    llvm.jit([s.mod])["main"](X, Y, native)
    return whole, lowered, native


def test_parts_lie_where_they_are_placed():
    for each in results(te.create_schedule(assembled()[-1])):
        np.testing.assert_array_equal(each, expected())


def test_the_parts_are_stages_of_their_own():
    doubled, even, odd, out = assembled()
    s = te.create_schedule(out)
    outer, _ = s[even].split(even.axis[0], factor=2)
    s[doubled].compute_at(s[even], outer)
    s[odd].reorder(odd.axis[1], odd.axis[0])
    for each in results(s):
        np.testing.assert_array_equal(each, expected())
    with pytest.raises(ScheduleError, match=r"a te\.assemble, whose parts are stages of their own"):
        s[out].split(odd.axis[0], factor=2)
    with pytest.raises(ScheduleError, match=r"found a part of the te\.assemble C; it takes split,"):
        s[odd].compute_inline()


def test_what_reads_the_whole_reads_all_parts():
    *_, out = assembled()
    last = te.compute((6, 4), lambda i, j: out[5 - i, j], "last")
    for each in results(te.create_schedule(last)):
        np.testing.assert_array_equal(each, expected()[::-1])


def test_refusals():
    x = te.placeholder((3, 4), "int32", "X")
    a = te.compute((3, 4), lambda i, j: x[i, j] + 1, "A")
    b = te.compute((3, 4), lambda i, j: a[i, j] + 1, "B")
    c = te.compute((3, 4), lambda i, j: x[i, j].astype("int8"), "D")

    def place(i, j):
        return i, j

    for parts, error in (
        ([], "C: expected at least one part, found none"),
        ([(x, place)], "C: expected parts by te.compute of one value, found X"),
        ([(a, place), (b, place)], "C: expected parts that don't read each other, found that B"),
        ([(a, place), (c, place)], "C: expected parts of int32, found D of int8"),
        ([(a, lambda i, j: (i,))], "C: expected 2 indices for A, found 1"),
    ):
        with pytest.raises(TEError, match=error):
            te.assemble((6, 4), parts, "C")
