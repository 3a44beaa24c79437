"""The text of trees; VDLA_UPDATE_GOLDEN=1 rewrites the golden file."""

from __future__ import annotations

import ast
import os
from itertools import product
from pathlib import Path

from vdla import te
from vdla.compiler import tir
from vdla.compiler.tir import Barrier, Buffer, For, If, Prefetch, Seq, Store, Var, show
from vdla.compiler.tir.ir import Not, Select, const, point
from vdla.compiler.tir.printer import COMPARISON, SYMBOLS

GOLDEN = Path(__file__).parent / "conv.golden.txt"


def padded_conv() -> tir.PrimFunc:
    data = te.placeholder((2, 6, 6), "int8", "data")
    weight = te.placeholder((4, 2, 3, 3), "int8", "weight")
    bias = te.placeholder((4,), "int32", "bias")
    pad = te.compute(
        (2, 8, 8),
        lambda c, y, x: te.if_then_else(
            te.all(y >= 1, y < 7, x >= 1, x < 7), data[c, y - 1, x - 1], te.const(0, "int8")
        ),
        "pad",
    )
    rc, ry, rx = (te.reduce_axis((0, n), name) for n, name in ((2, "rc"), (3, "ry"), (3, "rx")))
    acc = te.compute(
        (4, 6, 6),
        lambda o, y, x: te.sum(
            pad[rc, y + ry, x + rx].astype("int32") * weight[o, rc, ry, rx].astype("int32"),
            axis=[rc, ry, rx],
            init=bias[o],
        ),
        "acc",
    )
    out = te.compute((4, 6, 6), lambda o, y, x: te.max(acc[o, y, x], 0), "out")
    s = te.create_schedule(out, [data, weight, bias])
    s[acc].set_scope("vdla.acc")
    yo, _ = s[out].split(s[out].axis[1], factor=4)
    s[acc].compute_at(s[out], yo)
    s[pad].compute_inline()
    s[out].vectorize(s[out].axis[2])
    s[out].pragma(yo, "dma", True)
    return s.mod


def test_convolution_is_printed_as_before():
    text = show(padded_conv()) + "\n"
    if os.environ.get("VDLA_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_precedence():
    x, y = Var("x"), Var("y")
    assert show((x + y) * 2 - (x - y)) == "(x + y) * 2 - (x - y)"
    assert show(x // 2 % 3 * y) == "x // 2 % 3 * y"
    assert show(Not((x < y) | (y < x))) == "not (x < y or y < x)"
    assert show((x < 1) & ((y < 1) | (x < 2))) == "x < 1 and (y < 1 or x < 2)"
    assert show(Select(x < 1, x, y).astype("int8")) == "int8(select(x < 1, x, y))"
    assert show(const(1.5)) == "1.5"
    assert show(const(True)) == "True"
    assert show(const(3, "int8")) == "int8(3)"


def test_operators_bind_as_pythons():
    """Of two in a row, the first one is the inner where it binds as tightly or more so."""
    levels = dict(SYMBOLS.values())
    comparisons = {symbol for symbol, level in levels.items() if level == COMPARISON}
    for first, second in product(levels, repeat=2):
        if {first, second} <= comparisons:
            continue  # Python chains these
        bare = ast.dump(ast.parse(f"x {first} y {second} z"))
        left_first = ast.dump(ast.parse(f"(x {first} y) {second} z")) == bare
        if first == second and first in ("and", "or"):
            continue  # Python has one node for all of them
        assert left_first == (levels[first] >= levels[second]), (first, second)


def test_names_stay_distinct():
    x, other = Var("x"), Var("x")
    assert show(x + other) == "x + x_1"


def test_statements():
    buffer = Buffer("b", (8,), "int32")
    x = Var("x")
    store = Store(buffer, (x,), x)
    body = If(x < 3, Seq((store, Prefetch(point(buffer, (x + 1,))))), store)
    assert show(For(x, 8, "unrolled", body)).splitlines() == [
        "for x in 8 unrolled:",
        "    if x < 3:",
        "        b[x] = x",
        "        prefetch b[x + 1]",
        "    else:",
        "        b[x] = x",
    ]


def test_barriers():
    t, a = Var("t"), Buffer("a", (4,), "int32", "shared")
    body = Seq((Store(a, (t,), t), Barrier()))
    assert show(For(t, 4, "thread", body, "threadIdx.x")).splitlines() == [
        'for t in 4 thread("threadIdx.x"):',
        "    a[t] = t",
        "    barrier",
    ]


def test_a_buffer_named_as_a_barrier():
    assert (
        show(Store(Buffer("barrier", (4,), "int32"), (const(0),), const(1))) == "`barrier`[0] = 1"
    )
