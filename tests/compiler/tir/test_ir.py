"""Expressions are typed when they are built."""

from __future__ import annotations

import pytest

from vdla.compiler.tir import IRError, Var, seq, show
from vdla.compiler.tir.ir import (
    Buffer,
    Const,
    Load,
    Select,
    Seq,
    Store,
    TermError,
    all_of,
    call,
    cast,
    const,
)

X = Var("x")
F = Var("f", "float32")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda: X + F,
            "add: expected operands of one dtype, found int32 and float32; cast one of them",
        ),
        (lambda: X / 2, "div: expected float operands, found int32; use floordiv (//)"),
        (lambda: F // 2.0, "floordiv: expected integer operands, found float32"),
        (lambda: X + 1.5, "constant: expected int32, found 1.5"),
        (lambda: const(300, "int8"), "constant: expected int8 (-128 to 127), found 300"),
        (
            lambda: const(1, "int4"),
            "constant: expected a dtype of bool, int8, uint8, int16, uint16, int32, "
            "uint32, int64, uint64, float16, float32, float64, found 'int4'",
        ),
        (lambda: ~X, "not: expected a bool, found int32"),
        (lambda: Select(X, X, X), "select: expected a bool condition, found int32"),
        (
            lambda: Select(X < 1, X, F),
            "select: expected two values of one dtype, found int32 and float32; cast one of them",
        ),
        (lambda: call("exp", X), "exp: expected float operands, found int32"),
        (lambda: call("rq", X, F), "rq: expected int32 operands, found int32, float32"),
        (lambda: call("rsqrt", F), "rsqrt: expected int32 operands, found float32"),
        (lambda: call("pow", F), "pow: expected 2 arguments, found 1"),
        (
            lambda: cast(X, "complex"),
            "cast: expected a dtype of bool, int8, uint8, int16, uint16, int32, "
            "uint32, int64, uint64, float16, float32, float64, found 'complex'",
        ),
        (
            lambda: Buffer("b", (0,), "int8"),
            "buffer b: expected a shape of positive ints, found (0,)",
        ),
    ],
)
def test_errors(build, text):
    with pytest.raises(IRError) as error:
        build()
    assert str(error.value) == text


def test_conditions_have_no_truth_value():
    with pytest.raises(TermError, match="an expression has no truth value"):
        bool(X < 1)


def test_operators_take_the_dtype_of_the_expression():
    assert (F + 1).b == Const(1.0, "float32")
    assert show(1 - X) == "1 - x"
    assert show((X << 1) + (X >> 2)) == "(x << 1) + (x >> 2)"
    assert ((X < 1) & (X > 0)).op == "and"
    assert (X & 1).op == "bitand"


def test_equality_is_structural_except_for_variables():
    b = Buffer("b", (4,), "int32")
    assert Load(b, (X + 1,)) == Load(b, (X + 1,))
    assert Var("x") != X
    assert len({X + 1, X + 1, X + 2}) == 2


def test_all_of_drops_what_is_true():
    assert show(all_of(const(True), X < 1, const(True), X > 0)) == "x < 1 and x > 0"
    assert all_of() == const(True)


def test_seq_flattens():
    b = Buffer("b", (4,), "int32")
    one, two = Store(b, (X,), X), Store(b, (X,), X)
    nested = seq(one, seq(two, one))
    assert isinstance(nested, Seq)
    assert nested.stmts == (one, two, one)
    assert seq(one) is one


@pytest.mark.parametrize("alignment", [(2, 8, 0), (0, 8, 8), (0, 0, 0), (-1, 8, 0)])
def test_alignments_are_of_a_dimension(alignment):
    with pytest.raises(IRError) as error:
        Buffer("B", (4, 4), "int8", alignments=(alignment,))
    assert str(error.value) == (
        "buffer B: expected alignments (dimension, factor, offset < factor) of its 2 dimensions, "
        f"found {alignment}"
    )


def test_strides_follow_the_alignments_from_the_innermost_on():
    assert Buffer("B", (), "int8").span == 1
    assert Buffer("B", (2, 3, 5), "int8").strides == (15, 5, 1)
    aligned = Buffer("B", (2, 3, 5), "int8", alignments=((1, 8, 1), (0, 4, 2)))
    assert aligned.strides == (30, 9, 1)
    assert aligned.span == 60
