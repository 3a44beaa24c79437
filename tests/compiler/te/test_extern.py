"""Tensors given by a statement."""

from __future__ import annotations

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import ScheduleError
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.te import TEError


def running_maximum(ins, outs):
    ib = te.ir_builder.create()
    out, seen = ib.buffer_ptr(outs[0]), ib.allocate("int32", 1, "seen")
    seen[0] = ins[0][0]
    with ib.for_range(0, 8, "i") as i:
        with ib.if_scope(ins[0][i] > seen[0]):
            seen[0] = ins[0][i]
        with ib.else_scope():
            out[i] = 0
        out[i] = seen[0]
    return ib.get()


def program():
    a = te.placeholder((8,), "int32", "A")
    b = te.compute((8,), lambda i: a[i] * 3 % 11, "B")
    c = te.extern((8,), [b], running_maximum, "C")
    d = te.compute((8,), lambda i: c[i] + a[i], "D")
    return a, b, c, d, te.create_schedule(d)


X = np.array([3, 1, 4, 1, 5, 9, 2, 6], "int32")
WANT = np.maximum.accumulate(X * 3 % 11) + X


def check(s):
    for func in (s.mod, s.lower()):
        np.testing.assert_array_equal(tir.evaluate(func, X)[0], WANT)
    found = np.zeros_like(X)
    llvm.jit([s.mod])["main"](X, found)
    np.testing.assert_array_equal(found, WANT)


def test_a_statement_between_computes():
    *_, s = program()
    check(s)


def test_schedules_place_it_and_inline_into_it():
    _, b, c, d, s = program()
    s[b].compute_inline()
    assert s[c].leaf_iter_vars == ()
    do, _ = s[d].split(d.axis[0], factor=4)
    s[c].compute_at(s[d], do)
    assert "for i_o in 2:" in tir.show(s.lower()).splitlines()[1]
    check(s)
    again = te.create_schedule(d)
    again.replay(s.trace)
    assert tir.show(again.mod) == tir.show(s.mod)


def test_its_tensors_can_be_copied():
    _, b, c, d, s = program()
    s.cache_read(c, "global", [d])
    s.cache_read(b, "global", [c])
    check(s)


def test_several_outputs():
    a = te.placeholder((4,), "int32", "A")

    def split(ins, outs):
        ib = te.ir_builder.create()
        low, high = (ib.buffer_ptr(o) for o in outs)
        with ib.for_range(1, 5, "i") as i:
            low[i - 1] = (ins[0][i - 1] % 16).astype("int8")
            high[0, i - 1] = ins[0][i - 1] // 16
        return ib.get()

    low, high = te.extern([(4,), (1, 4)], [a], split, "nibbles", ["int8", "int32"])
    s = te.create_schedule([low, high])
    assert s[low] is s[high] is s["nibbles"]
    assert s[high].tensor is low
    x = np.array([0x12, 0x34, 0x56, 0x78], "int32")
    found = tir.evaluate(s.mod, x)
    assert found[0].tolist() == [2, 4, 6, 8]
    assert found[1].tolist() == [[1, 3, 5, 7]]


def test_statements_of_the_loop_ir_will_do():
    a = te.placeholder((4,), "int32", "A")
    i = tir.Var("i")
    c = te.extern((4,), [a], lambda ins, outs: tir.For(i, 4, "serial", tir.Store(
        outs[0], (3 - i,), ins[0][i])), "A")  # fmt: skip
    func = te.create_prim_func([a], c)
    assert [p.name for p in func.params] == ["A", "A_1"]
    assert tir.evaluate(func, np.arange(4, dtype="int32"))[0].tolist() == [3, 2, 1, 0]


def test_what_it_does_not_take():
    _, _, c, _, s = program()
    for primitive, action in {
        "compute_inline": lambda: s[c].compute_inline(),
        "cache_write": lambda: s.cache_write(c, "near"),
        "set_scope": lambda: s[c].set_scope("near"),
    }.items():
        with pytest.raises(ScheduleError) as error:
            action()
        assert str(error.value) == (
            f"{primitive} C: expected a stage of one tensor by te.compute, found a te.extern, "
            "whose statement stays as it is; it takes compute_at, cache_read"
        )


A, B = te.placeholder((4,), "int32", "A"), te.placeholder((4,), "int8", "B")


def built(make, inputs=(A,), **more):
    def fcompute(ins, outs):
        ib = te.ir_builder.create()
        make(ib, ins, outs)
        return ib.get()

    return lambda: te.extern((4,), inputs, fcompute, "C", **more)


def leave_open(ib, ins, outs):
    ib.if_scope(ins[0][0] > 0).__enter__()


def store(ib, buffer, index, value):
    ib.buffer_ptr(buffer)[index] = value


BAD = {
    "nothing": (lambda: te.extern((4,), [A], lambda ins, outs: None, "C"),
                "C: expected fcompute to return a statement, found NoneType; te.ir_builder makes "
                "one"),
    "dtype": (built(lambda *_: None, (A, B)),
              "C: expected a dtype, as its inputs don't have one in common, found none (int32, "
              "int8)"),
    "dtypes": (built(lambda *_: None, dtype=["int8", "int8"]),
               "C: expected 1 dtypes, one for each output, found 2"),
    "no store": (built(lambda *_: None), "C: expected stores to C, found none"),
    "to an input": (built(lambda ib, ins, outs: store(ib, ins[0], 0, 1)),
                    "C: expected stores to its outputs alone, found one to the input A"),
    "another's": (built(lambda ib, ins, outs: store(ib, outs[0], 0, B[0].astype("int32"))),
                  "C: buffer B is neither a parameter nor allocated here"),
    "rank": (built(lambda ib, ins, outs: store(ib, outs[0], (0, 0), 1)),
             "C: expected 1 indices, found 2"),
    "stored dtype": (built(lambda ib, ins, outs: store(ib, outs[0], 0, te.const(1, "int8"))),
                     "C: store to C: expected int32, found int8"),
    "open": (built(leave_open), "get: expected every scope to be closed, found an open one"),
    "else": (built(lambda ib, ins, outs: ib.else_scope().__enter__()),
             "else_scope: expected an if_scope directly before, found none"),
    "range": (built(lambda ib, ins, outs: ib.for_range(3, 3).__enter__()),
              "for_range i: expected end > begin, found 3 to 3"),
    "loop": (built(lambda ib, ins, outs: ib.for_range(0, 3, for_type="wild").__enter__()),
             "for_range i: expected int32 and a kind of serial, parallel, vectorized, unrolled, "
             "thread, vthread, found int32 and wild"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_errors(case):
    build, text = BAD[case]
    with pytest.raises(TEError) as error:
        build()
    assert str(error.value) == text
