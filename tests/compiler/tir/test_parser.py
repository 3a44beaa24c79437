"""The loop IR's text: read back it is the same tree; a wrong one is refused where it is wrong."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_functions import functions
from readback import difference, reads_back

from vdla import te
from vdla.compiler import tir
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.pairwise import VectorTile
from vdla.compiler.text import ParseError
from vdla.compiler.tir import show
from vdla.compiler.tir.ir import (
    ARITHMETIC,
    BITWISE,
    COMPARISONS,
    Alloc,
    Binary,
    Buffer,
    Cast,
    Const,
    For,
    Not,
    PrimFunc,
    Store,
    Var,
    const,
    seq,
)
from vdla.compiler.tir.parser import parse
from vdla.isa.config import load_config

TINY = load_config("tiny")
MANY = settings(max_examples=200, derandomize=True, suppress_health_check=list(HealthCheck))


def test_a_promise_of_the_greatest_integers_is_read_back():
    x = Buffer("x", (), "uint64", value_range=(0, 2**64 - 1))
    reads_back(PrimFunc("f", (x,), Store(x, (), Const(0, "uint64"))))


@MANY
@given(func=functions())
def test_any_tree_is_read_back(func):
    try:
        tir.verify(func)
    except tir.IRError:
        with pytest.raises(ParseError):
            parse(show(func), bounds=False)
    else:
        reads_back(func)


# --- programs -------------------------------------------------------------------------------------


@lru_cache
def program() -> str:
    """A program of the accelerator: allocations, copies, threads, padding, calls of every kind."""
    shape = Add(12, 9000, -7000, 3, -8, 2, -128, 127)
    return show(shape.schedule(VectorTile(4, 2), TINY).mod)


@lru_cache
def conv() -> str:
    """A program with blocks: predicate, regions, init, a cast, a select."""
    data = te.placeholder((4, 9), "int8", "data", (-7, 9))
    weight = te.placeholder((3,), "float32", "weight")
    r = te.reduce_axis((0, 3), "r")
    acc = te.compute(
        (4, 7),
        lambda y, x: te.sum(
            te.if_then_else(x >= 1, data[y, x + r - 1], te.const(3, "int8")).astype("float32")
            * weight[r],
            axis=r,
        ),
        "acc",
    )
    out = te.compute((4, 7), lambda y, x: te.exp(-acc[y, x]) / 1.5, "out")
    s = te.create_schedule(out, [data, weight])
    outer, _ = s[out].split(s[out].axis[1], factor=4)
    s[acc].compute_at(s[out], outer)
    s[out].vectorize(s[out].axis[0])
    s[out].pragma(outer, "note", 'a "b"')
    return show(s.mod)


def test_the_same_numbers():
    func = parse(conv())
    data = np.random.default_rng(0).integers(-7, 9, (4, 9), np.int8)
    weight = np.array([0.5, -1.25, 2], np.float32)
    (found,) = tir.evaluate(func, data, weight)
    acc = np.zeros((4, 7), np.float32)
    for x in range(7):
        for r in range(3):
            acc[:, x] += (data[:, x + r - 1] if x >= 1 else np.int8(3)) * weight[r]
    np.testing.assert_allclose(found, np.exp(-acc) / 1.5, rtol=1e-6)


@pytest.mark.parametrize("text", [conv, program])
def test_comments_blank_lines_and_other_indentation(text):
    lines = text().splitlines()
    wide = "\r\n".join(
        " " * (len(line) - len(line.lstrip())) + line + "  # a comment\r\n\r\n# another one"
        for line in lines
    )
    assert show(parse(wide, intrinsics(TINY))) == text()


def test_names_may_come_again_after_their_scope():
    func = parse("""
func f(a: int32[4]):
    for i in 4:
        a[i] = i
    for i in 4:
        a[i] = a[i] + 1
""")
    assert show(func).count("i_1") == 3
    assert tir.evaluate(func)[0].tolist() == [1, 2, 3, 4]


def test_an_allocation_ends_where_its_block_ends():
    a, b = Buffer("a", (1,), "int32"), Buffer("b", (1,), "int32")
    out = Buffer("out", (1,), "int32")
    zero = (const(0),)
    func = PrimFunc(
        "f", (out,), seq(Alloc(a, Store(a, zero, const(1))), Alloc(b, Store(b, zero, const(2))))
    )
    assert show(func).splitlines()[1:] == [
        "    alloc a: int32[1]:",
        "        a[0] = 1",
        "    alloc b: int32[1]",
        "    b[0] = 2",
    ]
    assert difference(func, parse(show(func))) is None


@pytest.mark.parametrize(("expr", "text"), [
    (Cast(const(3), "int8"), "int8(int32(3))"),
    (const(3, "int8"), "int8(3)"),
    (Cast(const(1.5) + const(2.5), "int8"), "int8(1.5 + 2.5)"),
    (Cast(const(1.5), "int8"), "int8(float32(1.5))"),
    (Cast(const(True), "int8"), "int8(True)"),
    (const(3.0), "3.0"),
    (const(float("-inf")), "-inf"),
    (const(float("nan"), "float64"), "float64(nan)"),
    (const(1) - const(-1), "1 - -1"),
    (Binary("and", Not(const(2) < 1), Not(Not(const(True)))), "not (2 < 1) and not (not True)"),
    (Binary("bitor", Binary("bitand", const(1), const(2)), const(4)), "1 & 2 | 4"),
    (Binary("bitand", const(1), Binary("bitor", const(2), const(4))), "1 & (2 | 4)"),
])  # fmt: skip
def test_what_could_be_taken_for_something_else(expr, text):
    assert show(expr) == text
    out = Buffer("out", (), expr.dtype)
    body = Store(out, (), expr)
    reads_back(PrimFunc("f", (out,), For(Var("x"), 2, "serial", body)))


def test_python_reads_operators_as_we_do():
    symbols = [op for op in (*ARITHMETIC, *BITWISE) if op not in ("div", "min", "max")]
    x, y, z = (const(n) for n in (3, 7, 2))
    out = Buffer("out", (), "int64")
    for a in (*symbols, *COMPARISONS):
        for b in symbols:
            for tree in (Binary(a, Binary(b, x, y), z), Binary(a, x, Binary(b, y, z))):
                func = PrimFunc("f", (out,), Store(out, (), Cast(tree, "int64")))
                assert eval(show(tree)) == int(tir.evaluate(func)[0])


# --- refusals -------------------------------------------------------------------------------------

HEAD = "func f(a: int32[4], b: int8[4, 4]):\n    for i in 4:\n        "
REFUSED = {
    "a[i] = b[i, i]": "line 3, column 16: expected a value for a of int32, found int8",
    "a[i, i] = 1": "line 3, column 9: expected 1 indices of a, found 2",
    "a[1.5] = 1": "line 3, column 11: expected an index of int32 or int64, found float32",
    "a[k] = 1": "line 3, column 11: expected a variable of i, found k",
    "c[i] = 1": "line 3, column 9: expected a buffer of a, b, found c",
    "a[i] = a": "line 3, column 16: expected a variable of i, found a",
    "a[i] = i[0]": "line 3, column 16: expected a buffer of a, b, found i",
    "a[i] = ": "line 3, column 16: expected a value, found the end of the line",
    "a[i] = 1 +": "line 3, column 19: expected a value, found the end of the line",
    "a[i] = (1": "line 3, column 18: expected ')', found the end of the line",
    "a[i] = 1 2": "line 3, column 18: expected the end of the line, found '2'",
    "a[i] = -i": "line 3, column 17: expected a number after '-'; an expression is negated as "
                 "0 - x, found 'i'",
    "a[i] = 9999999999": "line 3, column 16: constant: expected int32 (-2147483648 to 2147483647)",
    "a[i] = i + int8(1)": "line 3, column 18: add: expected operands of one dtype, found int32 "
                          "and int8; cast one of them",
    "a[i] = int8(1.5)": "line 3, column 21: constant: expected int8, found 1.5",
    "a[i] = gamma(i)": "line 3, column 16: expected a function (bool, int8,",
    "a[i] = min(i)": "line 3, column 16: expected 2 arguments of min, found 1",
    "a[i] = exp(i)": "line 3, column 16: exp: expected float operands, found int32",
    "a[i] = select(i, 1, 2)": "line 3, column 16: select: expected a bool condition, found int32",
    "a[i] = int32(1 < i < 2)": "line 3, column 28: expected 'and', 'or' or brackets: "
                               "comparisons don't chain, found '<'",
    "a[i] + 1": "line 3, column 14: expected '=', found '+'",
    "a": "line 3, column 10: expected '[' of a store or '(' of a call, found the end of the line",
    "for": "line 3, column 12: expected the loop's variable, found the end of the line",
    "for i in 4:": "line 3, column 13: expected a new name, found i, which line 2 binds",
    "for j in 0:": "line 3, column 18: expected a whole number from 1 to 2147483647, found 0",
    "for j in 4 twice:": "line 3, column 20: expected ':', '@' or a kind of serial, parallel,",
    "for j in 4:": "line 3, column 20: expected an indented line, a statement, found the end of",
    "if i:": "line 3, column 12: expected a condition of bool, found int32",
    "else:": "line 3, column 9: expected a statement, found 'else'",
    "alloc c: int9[4]": "line 3, column 18: expected a dtype of bool, int8,",
    "alloc c: int8[0]": "line 3, column 23: expected a whole number from 1 to 2147483647, found 0",
    "alloc c: int8[4] in 0..300": "line 3, column 15: buffer c: expected a value_range (low, high) "
                                  "within int8, found (0, 300)",
    "alloc c: int8[4] y2": "line 3, column 26: expected a number of copies (x2), found 'y2'",
    "block c(v: q4 = i): pass": "line 3, column 20: expected an extent (s8 spatial, r8 reduce), "
                                "found 'q4'",
    "block c(v: s4 = v): pass": "line 3, column 25: expected a variable of i, found v",
    "block c(v: s4 = i):\n            writes a[v]": "line 4, column 24: expected the block's body,",
    "block c(v: s4 = i):\n            a[v] = 1": "line 3, column 9: f / for i / block c: "
        "writes a[v], which its declared regions don't cover",
    "block c(v: s4 = i + 4):\n            pass": "line 3, column 9: f / for i / block c: v: "
        "expected a binding in 0..3, found i + 4 in 4..7",
    "alloc c: int8[4] @global": "line 3, column 27: expected the buffer's memory in double quotes, "
                                "found 'global'",
    'alloc c: int8[4] @"a': "line 3, column 27: expected a closing double quote, found",
    "`a[i] = 1": "line 3, column 9: expected a closing backquote, found '`a[i] = 1'",
    "a[i] = $": "line 3, column 16: expected a name, a number or a mark, found '$'",
    "gemm(x=a[i])": "line 3, column 9: expected an intrinsic (none: no target was given), "
                    "found gemm",
    "a[i] = 1\n      a[i] = 1": "line 4, column 7: expected an indentation of 4 spaces or those of "
                                "an outer block, found 6",
    "a[i] = 1\n\ta[i] = 1": "line 4, column 1: expected spaces before the line, found a tab",
    "a[i] = 1\nfunc g():\n    pass": "line 4, column 1: expected the end of the text, found 'func'",
    "a[i] = " + "(" * 2000: "expected fewer levels of nesting",
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_refusals(line):
    with pytest.raises(ParseError) as caught:
        parse(HEAD + line)
    assert REFUSED[line] in str(caught.value)


CALL = 'func f(p: int32[2, 4]):\n    alloc x: int32[4] @"vdla.acc"\n    '
CALLS = {
    "alu_ad(dst=x[0])": "column 5: expected an intrinsic (load_inp, load_inp_pad,",
    "alu_add(dst=x[0], x=x[0])": "column 5: expected alu_add's arguments, found none for y",
    "alu_add(dst=x[0], z=x[0])": "column 23: expected an argument of alu_add (dst, x, y), found z",
    "alu_add(dst=x[0], dst=x[0])": "column 23: expected each argument once, found dst twice",
    "alu_add_imm(dst=x[0], x=x[0], imm=True)": "column 39: expected imm: of int32, found bool",
    "load_inp(dst=x[0], src=x[0])": "column 18: expected dst: a buffer of int8, found x of int32",
    "alu_add(dst=p[0, 0], x=x[0], y=x[0])": "column 5: f: alu_add: dst: expected a buffer in "
        "vdla.acc, found p in global",
    "alu_shr_imm(dst=x[0], x=x[0], imm=32)": "column 5: f: alu_shr_imm: imm: expected 0 to 31, "
        "found 32",
    "alu_add_reduce(dst=x[0], y=x[0])": "column 5: expected alu_add_reduce's arguments, found none "
        "for first",
}  # fmt: skip


@pytest.mark.parametrize("line", CALLS)
def test_refused_calls(line):
    with pytest.raises(ParseError) as caught:
        parse(CALL + line, intrinsics(TINY))
    assert f"line 3, {CALLS[line]}" in str(caught.value)


def test_a_refusal_shows_the_place():
    with pytest.raises(ParseError) as caught:
        parse(HEAD + "a[i] = 1 + k")
    assert (caught.value.line, caught.value.column) == (3, 20)
    assert str(caught.value) == (
        "line 3, column 20: expected a variable of i, found k\n"
        "            a[i] = 1 + k\n"
        "                       ^"
    )


def test_a_long_line_is_shown_in_part():
    with pytest.raises(ParseError) as caught:
        parse(HEAD + "a[i] = " + "1 + " * 60 + "k" + " + 1" * 60)
    _, line, caret = str(caught.value).split("\n")
    assert line[caret.index("^")] == "k"
    assert len(line) < 100


# --- corruption -----------------------------------------------------------------------------------

PIECES = ("(", ")", "[", "]", ",", ":", "+:", "..", "=", "@", "->", "-", "*", "//", "%", "<<", ">>",
          "0", "3", "99999999999", "1.5", "1e999", "inf", "True", "not", "and", "for", "in", "if",
          "else", "alloc", "block", "where", "init", "pass", "select", "int8", "abs", "x", "y", "i",
          "\n", "    ", "\t", "#", '"', "`", "\\", "\0", "é", "²", "x2", "s0", "r4")  # fmt: skip


@pytest.mark.parametrize("text", [conv, program])
@settings(MANY, max_examples=400)
@given(data=st.data())
def test_a_corrupted_text_is_a_function_or_refused(text, data):
    text = text()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from((0, 0, 1, 1, 2, 5, 40))))
        text = text[:start] + data.draw(st.sampled_from(("", *PIECES))) + text[end:]
    refused = None
    try:
        func = parse(text, intrinsics(TINY))
    except ParseError as error:
        refused = error
    if refused:
        assert 1 <= refused.line <= text.count("\n") + 1
        assert refused.column >= 1
    else:
        reads_back(func)


# --- barriers -------------------------------------------------------------------------------------


def test_barriers_are_read_back():
    text = """func f(a: int32[4]):
    for t in 4 thread("threadIdx.x"):
        a[t] = t
        barrier
        for i in 2:
            barrier"""
    assert show(tir.verify(parse(text))) == text


def test_a_barrier_has_nothing_behind_it():
    with pytest.raises(
        ParseError, match=r"^line 2, column 13: expected the end of the line, found"
    ):
        parse("func f(a: int32[4]):\n    barrier a")


def test_a_refused_barrier_shows_its_place():
    text = (
        'func f():\n    for t in 4 thread("threadIdx.x"):\n        if t < 2:\n            barrier'
    )
    with pytest.raises(ParseError, match=r"^line 4, column 13: f / for t: barrier: expected all"):
        parse(text)
