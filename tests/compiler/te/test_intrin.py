"""Intrinsics are declared by what they compute, and run as declared."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler import te, tir
from vdla.compiler.tir import Buffer, BufferRef, Evaluate, For, IntrinCall, PrimFunc, Var, run
from vdla.compiler.tir.ir import const


def dot():
    a, b = te.placeholder((4,), "int8", "a"), te.placeholder((4,), "int8", "b")
    bias = te.placeholder((1,), "int32", "bias")
    k = te.reduce_axis((0, 4), "k")
    out = te.compute(
        (1,),
        lambda i: te.sum(a[k].astype("int32") * b[k].astype("int32"), axis=k, init=bias[i]),
        "acc",
    )
    return te.decl_intrin("dot", out, scopes={out: "acc"}, lowering={"opcode": 1})


def test_declaration():
    intrin = dot()
    assert [b.name for b in intrin.operands] == ["acc", "bias", "a", "b"]
    assert intrin.is_reduction
    assert intrin.scopes == {"acc": "acc"}
    assert intrin.lowering == {"opcode": 1}


def test_a_call_runs_its_behaviour():
    intrin = dot()
    x, y = Buffer("x", (3, 4), "int8"), Buffer("y", (3, 4), "int8")
    acc, bias = Buffer("acc", (1,), "int32", "acc"), Buffer("bias", (1,), "int32")
    i = Var("i")
    zero = const(0)
    refs = (
        BufferRef(acc, (zero,)),
        BufferRef(bias, (zero,)),
        BufferRef(x, (i, zero)),
        BufferRef(y, (i, zero)),
    )
    call = IntrinCall(intrin, refs, {}, i.equal(0))
    func = tir.verify(PrimFunc("f", (x, y, bias, acc), For(i, 3, "serial", Evaluate(call))))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (3, 4)).astype("int8") for _ in range(2))
    out = np.array([99], "int32")
    run(func, [a, b, np.array([7], "int32"), out])
    assert out[0] == (a.astype(int) * b.astype(int)).sum() + 7
    assert call.operand("bias").buffer is bias
    assert tir.show(Evaluate(call)) == (
        "dot(acc=acc[0], bias=bias[0], a=x[i, 0], b=y[i, 0], first=i == 0)"
    )


SRC = te.placeholder((4,), "int32", "src")
P = te.param("p")
BAD = {
    "computed input": (
        lambda: te.decl_intrin(
            "f", te.compute((4,), lambda i: te.compute((4,), lambda j: SRC[j], "mid")[i], "dst")
        ),
        "f: expected placeholders as inputs, found computed mid",
    ),
    "undeclared": (
        lambda: te.decl_intrin("f", te.compute((4,), lambda i: SRC[i] + P, "dst")),
        "f: param p is used but not declared",
    ),
    "unused": (
        lambda: te.decl_intrin("f", te.compute((4,), lambda i: SRC[i], "dst"), [P]),
        "f: param p isn't used by the behaviour",
    ),
    "scope": (
        lambda: te.decl_intrin(
            "f",
            te.compute((4,), lambda i: SRC[i], "dst"),
            scopes={te.placeholder((1,), "int8", "q"): "acc"},
        ),
        "f: scopes name q, which it doesn't touch",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors(case):
    build, text = BAD[case]
    with pytest.raises(te.TEError) as error:
        build()
    assert str(error.value) == text
