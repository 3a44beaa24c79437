"""Functions as decorated Python: read back they are the same tree; a wrong one is refused where it
is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_functions import functions
from readback import difference

from vdla.compiler import te, tir
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.pairwise import VectorTile
from vdla.compiler.text import ParseError
from vdla.compiler.tir import show
from vdla.compiler.tir.ir import Evaluate, PrimFunc
from vdla.compiler.tir.script import read_script
from vdla.compiler.tir.script_printer import show_script
from vdla.compiler.tir.script_source import Source
from vdla.compiler.tir.visitor import walk
from vdla.isa.config import load_config

TINY = load_config("tiny")
MANY = settings(max_examples=200, derandomize=True, suppress_health_check=list(HealthCheck))


def read(text, known=(), around=None, bounds=True):
    return read_script(Source(text.split("\n"), around=around or {}), lambda: known, bounds=bounds)


def reads_back(func):
    """The function read back from Python, which is the same function with the same text."""
    script = show_script(func)
    calls = {s.call.intrin for s in walk(func.body) if isinstance(s, Evaluate)}
    name = "" if func.name in script.split("\n")[1] else func.name
    source = Source(script.split("\n"))
    again = read_script(source, lambda: calls, name, bounds=False)
    assert difference(PrimFunc(again.name, func.params, func.body), again) is None, script
    assert show(again) == show(PrimFunc(again.name, func.params, func.body)), script
    assert show_script(again).split("\n")[1:] == script.split("\n")[1:]


@MANY
@given(func=functions())
def test_any_tree_is_read_back(func):
    try:
        tir.verify(func)
    except tir.IRError:
        with pytest.raises(ParseError):
            read(show_script(func), bounds=False)
    else:
        reads_back(func)


def conv():
    """Blocks with a predicate, regions, an init; a note, a cast, a select."""
    data = te.placeholder((4, 9), "int8", "data", (-7, 9))
    r = te.reduce_axis((0, 3), "r")
    acc = te.compute(
        (4, 7),
        lambda y, x: te.sum(
            te.if_then_else(x >= 1, data[y, x + r - 1], te.const(3, "int8")).astype("int32"), axis=r
        ),
        "acc",
    )
    out = te.compute((4, 7), lambda y, x: te.exp(acc[y, x].astype("float32")) / 1.5, "out")
    s = create_schedule(out, [data])
    outer, _ = s[out].split(s[out].axis[1], factor=4)
    s[acc].compute_at(s[out], outer)
    s[out].vectorize(s[out].axis[0])
    s[out].pragma(outer, "note", 'a "b"')
    return s.mod


def test_programs_of_every_kind_are_read_back():
    reads_back(conv())
    for threads in (1, 2):
        add = Add(12, 9000, -7000, 3, -8, 2, -128, 127).schedule(VectorTile(4, threads), TINY)
        reads_back(add.mod)


def test_a_block_as_python():
    lines = show_script(conv()).splitlines()
    assert lines[:2] == [
        "@vdla.prim_func",
        'def main(data: vdla.Buffer((4, 9), "int8", value_range=(-7, 9)), '
        'out: vdla.Buffer((4, 7), "float32")):',
    ]
    start = next(n for n, line in enumerate(lines) if "vdla.block" in line)
    assert [line.strip() for line in lines[start : start + 9]] == [
        'with vdla.block("acc"):',
        "v_y = vdla.spatial(4, y + y_1)",
        "v_x = vdla.spatial(7, x_o * 4 + x)",
        "v_r = vdla.reduce(3, r)",
        "vdla.where(x_o * 4 + x < 7)",
        "vdla.reads(data[v_y, v_x + v_r - 1])",
        "vdla.writes(acc[v_y - y, v_x - x_o * 4])",
        "with vdla.init():",
        "acc[v_y - y, v_x - x_o * 4] = 0",
    ]


HEAD = """@vdla.prim_func
def f(a: vdla.Buffer((4,), "int32"), b: vdla.Buffer((4, 4), "int8")):
    for i in range(4):
        """


def test_python_numbers_take_the_dtype_of_what_they_meet():
    func = read(HEAD + "b[i, 0] = b[i, 1] * 2 + 1\n        a[i] = N - i", around={"N": 7})
    assert show(func).splitlines()[2:] == [
        "        b[i, 0] = b[i, 1] * int8(2) + int8(1)",
        "        a[i] = 7 - i",
    ]


def test_what_stands_around_gives_extents_shapes_and_numbers():
    text = """def f(a: vdla.Buffer((N, N // 2), "int32")):
    for i in vdla.parallel(N // 2):
        a[i, 0] = N"""
    assert show(read(text, around={"N": 8})) == (
        "func f(a: int32[8, 4]):\n    for i in 4 parallel:\n        a[i, 0] = 8"
    )


def test_the_short_forms_of_python():
    text = HEAD + (
        "a[i] += 1 if i < 2 and not i == 1 else -i\n"
        "        if i > 2:\n            a[i] = min(a[i], 3)\n"
        "        elif i < 1:\n            pass\n        else:\n            a[i] <<= 1"
    )
    func = read(text)
    assert show(func).splitlines()[2:] == [
        "        a[i] = a[i] + select(i < 2 and not (i == 1), 1, 0 - i)",
        "        if i > 2:",
        "            a[i] = min(a[i], 3)",
        "        else:",
        "            if i < 1:",
        "                pass",
        "            else:",
        "                a[i] = a[i] << 1",
    ]
    a = np.zeros(4, np.int32)
    tir.run(func, [a, np.zeros((4, 4), np.int8)])
    assert a.tolist() == [1, -2, -4, -3]


REFUSED = {
    "a[i] = b[i, i]": "line 4, column 16: expected a value for a of int32, found int8",
    "a[i, i] = 1": "line 4, column 9: expected 1 indices of a, found 2",
    "a[1.5] = 1": "line 4, column 11: expected an index of int32 or int64, found float32",
    "a[k] = 1": "line 4, column 11: expected a variable of i, found k",
    "c[i] = 1": "line 4, column 9: expected a buffer of a, b, found c",
    "a[i] = a": "line 4, column 16: expected a variable of i, found a",
    "a[i] = i[0]": "line 4, column 16: expected a buffer of a, b, found i",
    "a[i] = ": "line 4, column 16: expected Python, found invalid syntax",
    "a[i] = 9999999999": "line 4, column 16: constant: expected int32 (-2147483648 to 2147483647)",
    "a[i] = i + vdla.int8(1)": "line 4, column 16: add: expected operands of one dtype, found "
                               "int32 and int8; cast one of them",
    "a[i] = int8(1.5)": "line 4, column 21: constant: expected int8, found 1.5",
    "a[i] = gamma(i)": "line 4, column 16: expected a function (bool, int8,",
    "a[i] = min(i)": "line 4, column 16: expected 2 arguments of min, found 1",
    "a[i] = vdla.exp(i)": "line 4, column 16: exp: expected float operands, found int32",
    "a[i] = int32(1 < i < 2)": "line 4, column 22: expected 'and', 'or' or brackets: comparisons "
                               "don't chain, found 1 < i < 2",
    "a[i] = i ** 2": "line 4, column 16: expected a value, found i ** 2",
    "a[i] = [1]": "line 4, column 16: expected a value, found [1]",
    "x = 3": "line 4, column 9: expected a statement: for, if, with, pass, A[i] = …, name = "
             "vdla.alloc(…) or a call, found x = 3",
    "while True:\n            pass": "line 4, column 9: expected a statement:",
    "return 3": "line 4, column 9: expected a statement:",
    "for i in range(4):\n            pass": "line 4, column 13: expected a new name, found i, "
                                            "which line 3 binds",
    "for j in range(0):\n            pass": "line 4, column 24: expected a whole number from 1 to "
                                            "2147483647, found 0",
    "for j in range(i):\n            pass": "line 4, column 24: expected a whole number from 1 to "
        "2147483647 that is known before the function runs, found i",
    "for j in range(1, 4):\n            pass": "line 4, column 18: expected one number of steps, "
                                               "found range(1, 4)",
    "for j in vdla.twice(4):\n            pass": "line 4, column 18: expected range or a kind of "
                                                 "serial, parallel,",
    "if i:\n            pass": "line 4, column 12: expected a condition of bool, found int32",
    'c = vdla.alloc((4,), "int9")': "line 4, column 13: buffer c: expected a dtype of bool, int8,",
    'c = vdla.alloc((4,), "int8", sope="x")': "line 4, column 43: expected each of shape, dtype, "
                                              "scope,",
    'c = vdla.alloc((4,), "int8", copies="x")': "line 4, column 13: buffer c: expected copies of 1 "
                                                "or more, found 'x'",
    'c = vdla.alloc((4,), "int8", value_range=(0, 300))': "buffer c: expected a value_range (low, "
                                                          "high) within int8, found (0, 300)",
    'with vdla.block("c"):\n            v = vdla.spatial(4, v)': "line 5, column 33: expected a "
                                                                 "variable of i, found v",
    'with vdla.block("c"):\n            v = vdla.spatial(4, i)\n            a[v] = 1':
        "line 4, column 9: f / for i / block c: writes a[v], which its declared regions",
    "vdla.gemm(x=a[i])": "line 4, column 9: expected an intrinsic (none: the target has none), "
                         "found gemm",
    "a[i + 1] = 1": "line 4, column 9: f: a[i + 1]: expected index 0 in 0..3, found i + 1 in "
                    "1..4",
    "for j in range(9**9**9**9):\n            pass": "line 4, column 24: expected a whole number",
    'c = vdla.alloc((3 * 9**99,), "int8")': "line 4, column 24: expected a buffer's shape, found",
    "vdla.prefetch(a[i : 4])": "line 4, column 25: expected a slice as y : y + 4, found i:4",
    "a[i] = " + "(" * 300: "line 4, column",
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_refusals(line):
    with pytest.raises(ParseError) as caught:
        read(HEAD + line)
    assert REFUSED[line] in str(caught.value)


CALL = """def f(p: vdla.Buffer((2, 4), "int32")):
    x = vdla.alloc((4,), "int32", scope="vdla.acc")
    """
CALLS = {
    "vdla.alu_ad(dst=x[0])": "column 5: expected an intrinsic (load_inp, load_inp_pad,",
    "vdla.alu_add(dst=x[0], x=x[0])": "column 5: expected alu_add's arguments, found none for y",
    "vdla.alu_add(dst=x[0], z=x[0])": "column 30: expected an argument of alu_add (dst, x, y), "
                                      "found z",
    "vdla.alu_add_imm(dst=x[0], x=x[0], imm=True)": "column 44: expected imm: of int32, found bool",
    "vdla.load_inp(dst=x[0], src=x[0])": "column 23: expected dst: a buffer of int8, found x of "
                                         "int32",
    "vdla.alu_add(x[0])": "column 18: expected arguments by name, found x[0]",
    "vdla.alu_shr_imm(dst=x[0], x=x[0], imm=32)": "column 5: f: alu_shr_imm: imm: expected 0 to "
                                                  "31, found 32",
}  # fmt: skip


@pytest.mark.parametrize("line", CALLS)
def test_refused_calls(line):
    with pytest.raises(ParseError) as caught:
        read(CALL + line, intrinsics(TINY))
    assert f"line 3, {CALLS[line]}" in str(caught.value)


def test_parameters_that_are_none():
    for text, message in {
        "def f(a): pass": 'line 1, column 7: expected a parameter\'s type, as vdla.Buffer((4, 16), '
                          '"int8"), found a',
        "def f(a: int): pass": "line 1, column 10: expected a parameter's type",
        "def f(*a): pass": "expected parameters as A: vdla.Buffer(shape, dtype), found others",
        "x = 3": "line 1, column 1: expected one function, found something else",
        "def f(a: vdla.Buffer((4,))): pass": "line 1, column 10: expected a buffer's dtype",
    }.items():  # fmt: skip
        with pytest.raises(ParseError) as caught:
            read(text)
        assert message in str(caught.value)
