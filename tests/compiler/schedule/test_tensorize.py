"""tensorize finds an intrinsic's behaviour in a stage, or says what differs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import ScheduleError, from_json, to_json

RNG = np.random.default_rng(0)
L = 4


def i32(expr):
    return expr.astype("int32")


def gemm():
    inp, wgt = te.placeholder((L,), "int8", "inp"), te.placeholder((L, L), "int8", "wgt")
    bias = te.placeholder((L,), "int32", "bias")
    k = te.reduce_axis((0, L), "k")
    acc = te.compute(
        (L,), lambda l: te.sum(i32(inp[k]) * i32(wgt[l, k]), axis=k, init=bias[l]), "acc"
    )
    return te.decl_intrin("gemm", acc, scopes={acc: "vdla.acc"})


def load():
    src = te.placeholder((L,), "int8", "src")
    inside, fill = te.param("inside", "bool", kind="expr"), te.param("fill", "int8")
    dst = te.compute((L,), lambda l: te.select(inside, src[l], fill), "dst")
    return te.decl_intrin("load", dst, [inside, fill])


def store():
    acc, mult = te.placeholder((L,), "int32", "acc"), te.placeholder((L,), "int32", "mult")
    zero, low, high = te.param("zero"), te.param("low"), te.param("high")
    out = te.compute(
        (L,),
        lambda l: te.min(te.max(te.rq(acc[l], mult[l]) + zero, low), high).astype("int8"),
        "out",
    )
    return te.decl_intrin("store", out, [zero, low, high])


def alu_max():
    src = te.placeholder((L,), "int8", "src")
    return te.decl_intrin("max", te.compute((L,), lambda l: te.max(src[l], axis=[]), "dst"))


INTRINSICS = {i.name: i for i in (gemm(), load(), store(), alu_max())}


def calls(s):
    """The lowered intrinsic calls, by name."""
    found = {}
    for stmt in tir.walk(s.lower().body):
        if isinstance(stmt, tir.Evaluate):
            found[stmt.call.intrin.name] = stmt.call
    return found


def check(s):
    func = s.built.func
    arrays = [RNG.integers(-99, 99, p.shape).astype(p.dtype) for p in func.params[:-1]]
    (expected,) = tir.evaluate(func, *arrays)
    for mod in (s.mod, s.lower()):
        np.testing.assert_array_equal(tir.evaluate(mod, *arrays)[0], expected)


def dense(transposed=True, dtype="int8", start=True):
    """x (n, kb, L) by w (m, kb, L, L): a blocked matrix product."""
    x = te.placeholder((3, 2, L), dtype, "x")
    w = te.placeholder((2, 2, L, L), dtype, "w")
    b = te.placeholder((2, L), "int32", "b")
    kb, k = te.reduce_axis((0, 2), "kb"), te.reduce_axis((0, L), "k")

    def element(n, m, l):
        lane = w[m, kb, l, k] if transposed else w[m, kb, k, l]
        return te.sum(i32(lane) * i32(x[n, kb, k]), axis=[kb, k], init=b[m, l] if start else None)

    c = te.compute((3, 2, L), element, "c")
    d = te.compute((3, 2, L), lambda n, m, l: c[n, m, l] + 1, "d")
    s = te.create_schedule(d, [x, w, b])
    s[c].set_scope("vdla.acc")
    n, m, l = c.axis
    s[c].reorder(n, m, kb, l, k)
    return s, c, l, k


def rejects(action, text):
    with pytest.raises(ScheduleError) as error:
        action()
    assert str(error.value) == text


def test_gemm():
    s, c, l, _ = dense()
    s[c].tensorize(l, INTRINSICS["gemm"])
    call = calls(s)["gemm"]
    assert tir.show(tir.Evaluate(call)) == (
        "gemm(acc=c[n, m, 0], bias=b[m, 0], inp=x[n, kb, 0], wgt=w[m, kb, 0, 0], first=kb == 0)"
    )
    check(s)


def test_the_order_of_the_inner_loops_does_not_matter():
    s, c, l, k = dense()
    s[c].reorder(k, l)
    s[c].tensorize(k, INTRINSICS["gemm"])
    check(s)


def test_outer_reduce_loops_may_be_split():
    s, c, l, _ = dense()
    kbo, _ = s[c].split(c.reduce_axis[0], factor=1)
    s[c].tensorize(l, INTRINSICS["gemm"])
    assert tir.show(calls(s)["gemm"].first) == "kb_o == 0"
    s[c].reorder(kbo, c.axis[0])
    check(s)


def test_gemm_mismatches():
    s, c, l, _ = dense(transposed=False)
    rejects(
        lambda: s[c].tensorize(l, INTRINSICS["gemm"]),
        "tensorize c.l: gemm expects acc[...] = acc[l] + int32(inp[k]) * int32(wgt[l, k]) from "
        "bias[l], found c[...] = c[n, m, l] + int32(w[m, kb, k, l]) * int32(x[n, kb, k]) from "
        "b[m, l]: expected wgt[l, k], found w[m, kb, k, l]",
    )
    s, c, l, _ = dense(start=False)
    rejects(
        lambda: s[c].tensorize(l, INTRINSICS["gemm"]),
        "tensorize c.l: gemm expects acc[...] = acc[l] + int32(inp[k]) * int32(wgt[l, k]) from "
        "bias[l], found c[...] = c[n, m, l] + int32(w[m, kb, l, k]) * int32(x[n, kb, k]) from "
        "0: expected bias[l], found 0",
    )
    s, c, _, k = dense()
    rejects(
        lambda: s[c].tensorize(k, INTRINSICS["gemm"]),
        "tensorize c.k: gemm expects loops l in 4 (spatial), k in 4 (reduce), found k in 4 "
        "(reduce)",
    )
    s, c, l, _ = dense(dtype="int16")
    with pytest.raises(ScheduleError, match=r"expected inp\[k\] of int8, found w\[.*\] of int16"):
        s[c].tensorize(l, INTRINSICS["gemm"])


def test_scopes_are_checked():
    s, c, l, _ = dense()
    s[c].set_scope("global")
    with pytest.raises(ScheduleError, match=r"expected acc in scope vdla\.acc, found c in global"):
        s[c].tensorize(l, INTRINSICS["gemm"])


def requantized(offset, order=min):
    acc, mult = te.placeholder((3, L), "int32", "a"), te.placeholder((3, L), "int32", "m")
    del order

    def element(y, l):
        scaled = te.rq(acc[y, l], mult[y, l])
        moved = scaled if offset is None else offset + scaled
        return te.min(127, te.max(moved, -128)).astype("int8")

    out = te.compute((3, L), element, "q")
    return te.create_schedule(out, [acc, mult]), out


@pytest.mark.parametrize(("offset", "bound"), [(5, 5), (None, 0), (0, 0)])
def test_params_bind_constants_or_the_neutral_element(offset, bound):
    s, out = requantized(offset)
    s[out].tensorize(out.axis[1], INTRINSICS["store"])
    params = {name: e.value for name, e in calls(s)["store"].params.items()}
    assert params == {"zero": bound, "low": -128, "high": 127}
    check(s)


@pytest.mark.parametrize(
    ("clamp", "low", "high"),
    [
        (lambda x: te.min(127, x), -(1 << 31), 127),
        (lambda x: te.max(x, -128), -128, (1 << 31) - 1),
        (lambda x: x, -(1 << 31), (1 << 31) - 1),
    ],
)
def test_of_a_clamp_that_is_not_there_the_bound_is_the_dtypes(clamp, low, high):
    acc, mult = te.placeholder((3, L), "int32", "a"), te.placeholder((3, L), "int32", "m")
    out = te.compute((3, L), lambda y, l: clamp(te.rq(acc[y, l], mult[y, l])).astype("int8"), "q")
    s = te.create_schedule(out, [acc, mult])
    s[out].tensorize(out.axis[1], INTRINSICS["store"])
    params = {name: e.value for name, e in calls(s)["store"].params.items()}
    assert params == {"zero": 0, "low": low, "high": high}
    check(s)


def test_no_float_bounds_every_float():
    src, low = te.placeholder((L,), "float32", "src"), te.param("low", "float32")
    clamp = te.decl_intrin("clamp", te.compute((L,), lambda l: te.max(src[l], low), "dst"), [low])
    a = te.placeholder((3, L), "float32", "a")
    out = te.compute((3, L), lambda y, l: a[y, l], "c")
    with pytest.raises(ScheduleError, match=r"expected max\(src\[l\], low\), found a\[y, l\]"):
        te.create_schedule(out)[out].tensorize(out.axis[1], clamp)


@pytest.mark.parametrize(("factor", "offset"), [(3, 3), (3, 4)])
def test_a_param_has_one_value_wherever_it_stands(factor, offset):
    src, p = te.placeholder((L,), "int32", "src"), te.param("p")
    line = te.decl_intrin("line", te.compute((L,), lambda l: src[l] * p + p, "dst"), [p])
    a = te.placeholder((3, L), "int32", "a")
    out = te.compute((3, L), lambda y, l: a[y, l] * factor + offset, "b")
    s = te.create_schedule(out)
    if factor == offset:
        s[out].tensorize(out.axis[1], line)
        assert calls(s)["line"].params["p"].value == factor
        check(s)
    else:
        with pytest.raises(ScheduleError, match=r"expected p, found 4"):
            s[out].tensorize(out.axis[1], line)


def padded(pad):
    data = te.placeholder((4, L), "int8", "data")
    out = te.compute(
        (4 + 2 * pad, L),
        lambda y, l: te.if_then_else(
            te.all(y >= pad, y < 4 + pad), data[y - pad, l], te.const(7, "int8")
        ),
        "p",
    )
    return te.create_schedule(out), out


def test_expression_params_take_conditions():
    s, out = padded(1)
    yo, _ = s[out].split(out.axis[0], factor=3)
    s[out].tensorize(out.axis[1], INTRINSICS["load"])
    assert tir.show(tir.Evaluate(calls(s)["load"])) == (
        "load(dst=p[y_o * 3 + y_i, 0], src=data[y_o * 3 + y_i - 1, 0], inside=y_o * 3 + y_i >= 1 "
        "and y_o * 3 + y_i < 5, fill=int8(7))"
    )
    s[out].unroll(yo)
    check(s)


def test_a_select_that_always_holds_matches_a_plain_load():
    s, out = padded(0)
    s[out].tensorize(out.axis[1], INTRINSICS["load"])
    call = calls(s)["load"]
    assert [tir.show(e) for e in call.params.values()] == ["True", "int8(0)"]
    check(s)


def test_conditions_on_the_intrinsics_own_loops_do_not_match():
    data = te.placeholder((4, L), "int8", "data")
    out = te.compute((4, L), lambda y, l: te.if_then_else(l < 2, data[y, l], 0), "p")
    s = te.create_schedule(out)
    with pytest.raises(ScheduleError, match=r"expected inside, found l < 2"):
        s[out].tensorize(out.axis[1], INTRINSICS["load"])


def test_accumulation_without_an_inner_reduce_axis():
    data = te.placeholder((6, L), "int8", "data")
    k = te.reduce_axis((0, 3), "k")
    pool = te.compute((4, L), lambda y, l: te.max(data[y + k, l], axis=k), "pool")
    s = te.create_schedule(pool)
    y, l = pool.axis
    s[pool].reorder(y, k, l)
    s[pool].tensorize(l, INTRINSICS["max"])
    assert tir.show(tir.Evaluate(calls(s)["max"])) == (
        "max(dst=pool[y, 0], src=data[y + k, 0], first=k == 0)"
    )
    check(s)


def test_kinds_must_agree():
    data = te.placeholder((6, L), "int8", "data")
    plain = te.compute((6, L), lambda y, l: te.max(data[y, l], 0), "plain")
    s = te.create_schedule(plain)
    rejects(
        lambda: s[plain].tensorize(plain.axis[1], INTRINSICS["max"]),
        "tensorize plain.l: max expects a reduction, found a plain store",
    )


def test_guards_must_not_cut_the_intrinsic():
    data = te.placeholder((2, 10), "int8", "data")
    out = te.compute((2, 10), lambda y, x: data[y, x], "out")
    s = te.create_schedule(out)
    _, xi = s[out].split(out.axis[1], factor=L)
    rejects(
        lambda: s[out].tensorize(xi, INTRINSICS["load"]),
        "tensorize out.x_i: expected a predicate outside of the intrinsic's loops, found "
        "x_o * 4 + x_i < 10; split evenly",
    )


def test_operands_must_be_windows_of_the_innermost_dimensions():
    data = te.placeholder((L, L), "int8", "data")
    out = te.compute((L, L), lambda y, l: data[l, y], "out")
    s = te.create_schedule(out)
    with pytest.raises(ScheduleError, match=r"expected src\[l\], found data\[l, y\]"):
        s[out].tensorize(out.axis[1], INTRINSICS["load"])
    narrow = te.placeholder((8, 2), "int8", "narrow")
    out = te.compute((2, L), lambda y, l: narrow[l, y], "out")
    s = te.create_schedule(out)
    with pytest.raises(
        ScheduleError,
        match=r"expected src of innermost dimensions \[4\], found "
        r"narrow of \[8, 2\]",
    ):
        s[out].tensorize(out.axis[1], INTRINSICS["load"])


def test_one_stage_is_tensorized_once():
    s, c, l, _ = dense()
    s[c].tensorize(l, INTRINSICS["gemm"])
    rejects(
        lambda: s[c].tensorize(l, INTRINSICS["gemm"]),
        "tensorize c.l: expected a present loop, found that it was tensorized",
    )
    rejects(
        lambda: s[c].tensorize(c.axis[0], INTRINSICS["gemm"]),
        "tensorize c.n: expected a stage not yet tensorized",
    )


def test_a_table_says_where_an_operand_is():
    """The block reads the table, too: passes that rename a buffer look for it there."""
    inp = te.placeholder((3, L), "int8", "inp")
    wgt, bias = te.placeholder((L, L), "int8", "wgt"), te.placeholder((L,), "int32", "bias")
    table = te.placeholder((2,), "int32", "table", value_range=(0, 2))
    k = te.reduce_axis((0, L), "k")

    def value(y, l):
        return te.sum(i32(inp[table[y], k]) * i32(wgt[l, k]), axis=k, init=bias[l])

    acc = te.compute((2, L), value, "acc")
    out = te.compute((2, L), lambda y, l: acc[y, l] + 1, "out")
    s = te.create_schedule(out, [inp, wgt, bias, table])
    s[acc].set_scope("vdla.acc")
    s[acc].tensorize(s[acc].axis[1], INTRINSICS["gemm"])
    block = next(block for block in tir.blocks(s.mod.body) if block.name == "acc")
    assert [region.buffer.name for region in block.reads] == ["bias", "inp", "wgt", "table"]


def test_stages_attach_to_tensorized_readers():
    s, c, l, _ = dense()
    copy = s.cache_read("b", "vdla.acc", [c])
    s[c].tensorize(l, INTRINSICS["gemm"])
    s[copy].compute_at(s[c], c.axis[1])
    call = calls(s)["gemm"]
    assert tir.show(tir.Evaluate(call)) == (
        "gemm(acc=c[n, m, 0], bias=b_acc[0, 0], inp=x[n, kb, 0], wgt=w[m, kb, 0, 0], first=kb == 0)"
    )
    assert call.operand("bias").buffer.shape == (1, L)
    check(s)


# --- the accelerator's flow ---------------------------------------------------------------------


def convolution(h, w, kernel, stride, pad, ci=2, co=4):
    oh, ow = (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1
    data = te.placeholder((1, ci, h, w, L), "int8", "data")
    wgt = te.placeholder((co, ci, kernel, kernel, L, L), "int8", "wgt")
    bias, mult = (te.placeholder((co, L), "int32", n) for n in ("bias", "mult"))
    padded = te.compute(
        (1, ci, h + 2 * pad, w + 2 * pad, L),
        lambda n, c, y, x, i: te.if_then_else(
            te.all(y >= pad, y < h + pad, x >= pad, x < w + pad),
            data[n, c, y - pad, x - pad, i],
            te.const(3, "int8"),
        ),
        "padded",
    )
    axes = [
        te.reduce_axis((0, n), name)
        for n, name in ((ci, "c"), (kernel, "ky"), (kernel, "kx"), (L, "i"))
    ]
    c, ky, kx, i = axes
    acc = te.compute(
        (1, co, oh, ow, L),
        lambda n, o, y, x, l: te.sum(
            i32(padded[n, c, y * stride + ky, x * stride + kx, i]) * i32(wgt[o, c, ky, kx, l, i]),
            axis=axes,
            init=bias[o, l],
        ),
        "acc",
    )
    out = te.compute(
        acc.shape,
        lambda n, o, y, x, l: te.min(
            te.max(te.rq(acc[n, o, y, x, l], mult[o, l]) + 5, -128), 127
        ).astype("int8"),
        "out",
    )
    return [data, wgt, bias, mult], padded, acc, out


def accelerated(inputs, padded, acc, out, tile, threads):
    """The schedule of a convolution for the accelerator, everything tensorized but the copies."""
    _, wgt, bias, mult = inputs
    s = te.create_schedule(out, inputs)
    s[acc].set_scope("vdla.acc")
    inp = s.cache_read(padded, "vdla.inp", [acc])
    s[padded].compute_inline()
    weights = s.cache_read(wgt, "vdla.wgt", [acc])
    starts, scales = s.cache_read(bias, "vdla.acc", [acc]), s.cache_read(mult, "vdla.acc", [out])
    n, o, y, x, l = out.axis
    oo, oi = s[out].split(o, factor=tile[0])
    yo, yi = s[out].split(y, factor=tile[1])
    xo, xi = s[out].split(x, factor=tile[2])
    s[out].reorder(oo, n, yo, xo, oi, yi, xi, l)
    at = xo
    if threads > 1:
        virtual, at = s[out].split(xo, nparts=min(threads, s[out].extent(xo)))
        s[out].bind(virtual, te.thread_axis("vthread"))
    s[acc].compute_at(s[out], at)
    for copy in (scales, starts):
        s[copy].compute_at(s[out], at)
    c, ky, kx, i = acc.reduce_axis
    co, ci = s[acc].split(c, factor=tile[3])
    n, o, y, x, l = acc.axis
    s[acc].reorder(co, n, o, ci, ky, kx, y, x, l, i)
    for copy in (inp, weights):
        s[copy].compute_at(s[acc], co)
    s[acc].tensorize(l, INTRINSICS["gemm"])
    s[inp].tensorize(inp.axis[-1], INTRINSICS["load"])
    s[out].tensorize(out.axis[-1], INTRINSICS["store"])
    s[out].pragma(yi, "dma", True)
    return s


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((6, 7, 3, 1, 1), (2, 4, 7, 1)),
        ((5, 9, 3, 2, 1), (3, 2, 2, 2)),
        ((6, 6, 1, 2, 0), (4, 2, 3, 1)),
        ((4, 4, 3, 1, 2), (1, 4, 4, 2)),
    ],
)
def test_the_accelerators_flow(shape, tile, threads):
    tensors = convolution(*shape)
    s = accelerated(*tensors, tile, threads)
    assert set(calls(s)) == {"gemm", "load", "store"}
    check(s)
    again = te.create_schedule(tensors[-1], tensors[0])
    again.replay(from_json(json.loads(json.dumps(to_json(s.trace)))), INTRINSICS)
    assert tir.show(again.mod) == tir.show(s.mod)


@pytest.mark.parametrize("lanes", [L // 2, 2 * L])
def test_as_many_lanes_as_the_intrinsic_has(lanes):
    """No fewer and no more, of the right kind or not."""
    src = te.placeholder((8, lanes), "int8", "src")
    out = te.compute((8, lanes), lambda y, x: src[y, x], "out")
    s = te.create_schedule(out, [src])
    with pytest.raises(ScheduleError, match=rf"expects loops l in {L} \(spatial\), found"):
        s[out].tensorize(s[out].axis[-1], load())
