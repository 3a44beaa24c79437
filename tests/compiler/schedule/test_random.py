"""Any sequence of primitives that a schedule accepts leaves the result as it was."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readback import reads_back

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import Schedule, ScheduleError, Stage, from_json, to_json
from vdla.compiler.targets.processor.codegen import llvm

SETTINGS = settings(max_examples=30, suppress_health_check=list(HealthCheck), derandomize=True)
SPATIAL_STEPS = ("split", "fuse", "reorder", "unroll", "vectorize", "parallel", "bind", "pragma")
STEPS = (
    *SPATIAL_STEPS,
    "split",
    "reorder",
    "compute_at",
    "compute_at",
    "compute_at",
    "compute_root",
    "compute_inline",
    "cache_read",
    "cache_write",
    "rfactor",
    "set_scope",
    "storage_align",
    "prefetch",
)


# --- programs -----------------------------------------------------------------------------------


def elementwise(draw):
    n, m = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    a = te.placeholder((n, m), "int32", "A")
    b = te.placeholder((n, m), "int32", "B")
    c = te.compute((n, m), lambda y, x: a[y, x] * 3 - b[y, x], "C")
    d = te.compute((n, m), lambda y, x: te.max(c[y, x], 0) + c[n - 1 - y, x], "D")
    e = te.compute((m, n), lambda x, y: te.if_then_else(y < n // 2, d[y, x], -d[y, x]), "E")
    return [a, b], e


def matmul(draw):
    n, m, k = (draw(st.integers(1, 8)) for _ in range(3))
    a = te.placeholder((n, k), "int8", "A")
    b = te.placeholder((m, k), "int8", "B")
    bias = te.placeholder((m,), "int32", "bias")
    r = te.reduce_axis((0, k), "r")
    start = draw(st.booleans())
    c = te.compute(
        (n, m),
        lambda y, x: te.sum(
            a[y, r].astype("int32") * b[x, r].astype("int32"),
            axis=r,
            init=bias[x] if start else None,
        ),
        "C",
    )
    d = te.compute((n, m), lambda y, x: te.max(c[y, x] + bias[x], 0), "D")
    return [a, b, bias], d


def conv(draw):
    c, o, h, w, k = (draw(st.integers(1, n)) for n in (3, 3, 6, 6, 3))
    stride, pad, dilation = (draw(st.integers(1, 2)) for _ in range(3))
    span = (k - 1) * dilation + 1
    h, w = max(h, span), max(w, span)
    oh, ow = (h + 2 * pad - span) // stride + 1, (w + 2 * pad - span) // stride + 1
    data = te.placeholder((c, h, w), "int8", "data")
    weight = te.placeholder((o, c, k, k), "int8", "weight")
    padded = te.compute(
        (c, h + 2 * pad, w + 2 * pad),
        lambda ci, y, x: te.if_then_else(
            te.all(y >= pad, y < h + pad, x >= pad, x < w + pad),
            data[ci, y - pad, x - pad],
            te.const(3, "int8"),
        ),
        "padded",
    )
    rc, ry, rx = (te.reduce_axis((0, n), name) for n, name in ((c, "rc"), (k, "ry"), (k, "rx")))
    acc = te.compute(
        (o, oh, ow),
        lambda oc, y, x: te.sum(
            padded[rc, y * stride + ry * dilation, x * stride + rx * dilation].astype("int32")
            * weight[oc, rc, ry, rx].astype("int32"),
            axis=[rc, ry, rx],
        ),
        "acc",
    )
    out = te.compute(
        (o, oh, ow),
        lambda oc, y, x: te.min(
            te.max(te.rq(acc[oc, y, x], te.const(te.scale_word(3, 4))) + 1, -128), 127
        ).astype("int8"),
        "out",
    )
    return [data, weight], out


def reductions(draw):
    n, m = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    a = te.placeholder((n, m), "int32", "A")
    r, q = te.reduce_axis((0, m), "r"), te.reduce_axis((0, m), "q")
    top = te.compute((n,), lambda y: te.max(a[y, r], axis=r), "top")
    shifted = te.compute((n, m), lambda y, x: a[y, x] - top[y], "shifted")
    total = te.compute((n,), lambda y: te.sum(shifted[y, q], axis=q), "total")
    out = te.compute((n, m), lambda y, x: shifted[y, x] + total[y] // 3 + top[y] % 5, "out")
    return [a], out


def reducers(draw):
    """A product, and the place of the greatest value, which two tensors hold together."""
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    a = te.placeholder((n, m), "int32", "A")
    r, q = te.reduce_axis((0, m), "r"), te.reduce_axis((0, m), "q")
    argmax = te.comm_reducer(
        lambda x, y: (
            te.select(te.any(x[1] > y[1], te.all(te.equal(x[1], y[1]), x[0] < y[0])), x[0], y[0]),
            te.max(x[1], y[1]),
        ),
        lambda t0, t1: (te.max_value(t0), te.min_value(t1)),
    )
    shifted = te.compute((n, m), lambda y, x: a[y, x] // 7, "shifted")
    index, value = te.compute((n,), lambda y: argmax((r, shifted[y, r]), axis=r), "T")
    product = te.compute((n,), lambda y: te.prod(shifted[y, q], axis=q, where=q > 1), "product")
    out = te.compute(
        (n, m), lambda y, x: te.select(te.equal(index[y], x), product[y], value[y] + a[y, x]), "out"
    )
    return [a], out


def recurrence(draw):
    n, m = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    a = te.placeholder((n, m), "int32", "A")
    b = te.placeholder((m, m), "int32", "B")
    state = te.placeholder((n, m), "int32", "state")
    k = te.reduce_axis((0, m), "k")
    twice = te.compute((n, m), lambda t, i: a[t, i] * 2, "twice")
    init = te.compute((1, m), lambda t, i: twice[t, i] + 1, "init")
    mixed = te.compute((n, m), lambda t, i: te.sum(state[t - 1, k] * b[k, i], axis=k), "mixed")
    update = te.compute((n, m), lambda t, i: mixed[t, i] - a[t, i], "update")
    rows = te.scan(init, update, state, name="rows")

    def turned(ins, outs):
        ib = te.ir_builder.create()
        with ib.for_range(0, n, "t") as t, ib.for_range(0, m, "i") as i:
            ib.buffer_ptr(outs[0])[n - 1 - t, i] = ins[0][t, i] // 3
        return ib.get()

    back = te.extern((n, m), [rows], turned, "back")
    out = te.compute((n, m), lambda y, x: back[y, x] + rows[y, x], "out")
    return [a, b], out


PROGRAMS = {f.__name__: f for f in (elementwise, matmul, conv, reductions, reducers, recurrence)}


# --- schedules ----------------------------------------------------------------------------------


def pick(draw, items):
    return draw(st.sampled_from(list(items)))


def one_step(draw, s: Schedule, scopes: bool) -> None:
    stage = s[pick(draw, s.stages)]
    step = pick(draw, STEPS)
    axes = stage.leaf_iter_vars
    if not axes and step in (*SPATIAL_STEPS, "rfactor", "prefetch"):
        return
    if step == "split":
        stage.split(pick(draw, axes), factor=draw(st.integers(1, 4)))
    elif step == "fuse":
        at = draw(st.integers(0, max(0, len(axes) - 2)))
        stage.fuse(*axes[at : at + 2])
    elif step == "reorder":
        stage.reorder(*draw(st.permutations(axes)))
    elif step == "bind":
        stage.bind(pick(draw, axes), te.thread_axis("vthread"))
    elif step == "pragma":
        stage.pragma(pick(draw, axes), "note", 1)
    elif step in ("unroll", "vectorize", "parallel"):
        getattr(stage, step)(pick(draw, axes))
    else:
        move_step(draw, s, stage, step, scopes)


def move_step(draw, s: Schedule, stage: Stage, step: str, scopes: bool) -> None:
    scope = "vdla.acc" if scopes else "global"
    readers = [
        b.name for b in tir.blocks(s.mod.body) if any(r.buffer.name == stage.name for r in b.reads)
    ]
    if step == "compute_at" and readers:
        parent = s[readers[-1]]
        if parent.leaf_iter_vars:
            stage.compute_at(parent, pick(draw, parent.leaf_iter_vars))
    elif step == "compute_root":
        stage.compute_root()
    elif step == "compute_inline":
        stage.compute_inline()
    elif step == "rfactor":
        axis = pick(draw, stage.leaf_iter_vars)
        s.rfactor(stage.name, axis, draw(st.integers(0, len(stage.axis))))
    elif step == "cache_read" and readers:
        s.cache_read(stage.name, scope, readers)
    elif step == "cache_write":
        s.cache_write(stage.name, scope)
    elif step == "set_scope":
        stage.set_scope(scope)
    elif step == "storage_align" and stage.axis:
        stage.storage_align(pick(draw, stage.axis), 8, draw(st.integers(0, 7)))
    elif step == "prefetch":
        tensor, axis = pick(draw, s.buffers), pick(draw, stage.leaf_iter_vars)
        stage.prefetch(tensor, axis, draw(st.integers(1, 3)))


def random_schedule(draw, out, inputs, scopes: bool) -> Schedule:
    s = te.create_schedule(out, inputs)
    for _ in range(draw(st.integers(1, 10))):
        try:
            one_step(draw, s, scopes)
        except ScheduleError:
            continue
    return s


def arrays(inputs, rng):
    return [rng.integers(-100, 100, t.shape).astype(t.dtype) for t in inputs]


@pytest.mark.parametrize("program", PROGRAMS)
@SETTINGS
@given(data=st.data())
def test_random_schedules_keep_the_result(program, data):
    inputs, out = PROGRAMS[program](data.draw)
    s = random_schedule(data.draw, out, inputs, scopes=True)
    given_arrays = arrays(inputs, np.random.default_rng(0))
    (expected,) = tir.evaluate(te.create_prim_func(inputs, out), *given_arrays)
    for func in (s.mod, s.lower()):
        (found,) = tir.evaluate(func, *given_arrays)
        np.testing.assert_array_equal(found, expected, err_msg=tir.show(func))
        reads_back(func)


@pytest.mark.parametrize("program", PROGRAMS)
@settings(SETTINGS, max_examples=20)
@given(data=st.data())
def test_compute_root_undoes_every_compute_at(program, data):
    """Attached last, detached first; what else was done in between stays right."""
    inputs, out = PROGRAMS[program](data.draw)
    s = te.create_schedule(out, inputs)
    attached = []
    for name in reversed(list(s.stages)):
        parents = [
            b.name for b in tir.blocks(s.mod.body) if any(r.buffer.name == name for r in b.reads)
        ]
        try:
            parent = s[parents[-1] if parents else name]
            axis = pick(data.draw, parent.leaf_iter_vars or (None,))
            if data.draw(st.booleans()):
                axis, _ = parent.split(axis, factor=data.draw(st.integers(1, 3)))
            s[name].compute_at(parent, axis)
        except (ScheduleError, AttributeError):
            continue
        attached.append(name)
    for name in reversed(attached):
        s[name].compute_root()
        assert s[name].leaf_iter_vars == s[name].op.axes
    given_arrays = arrays(inputs, np.random.default_rng(0))
    (expected,) = tir.evaluate(te.create_prim_func(inputs, out), *given_arrays)
    for func in (s.mod, s.lower()):
        (found,) = tir.evaluate(func, *given_arrays)
        np.testing.assert_array_equal(found, expected, err_msg=tir.show(func))


@pytest.mark.parametrize("program", PROGRAMS)
@settings(SETTINGS, max_examples=12)
@given(data=st.data())
def test_random_schedules_through_llvm(program, data):
    inputs, out = PROGRAMS[program](data.draw)
    s = random_schedule(data.draw, out, inputs, scopes=False)
    given_arrays = arrays(inputs, np.random.default_rng(0))
    (expected,) = tir.evaluate(te.create_prim_func(inputs, out), *given_arrays)
    found = np.zeros_like(expected)
    llvm.jit([s.mod])["main"](*given_arrays, found)
    np.testing.assert_array_equal(found, expected, err_msg=tir.show(s.mod))


@pytest.mark.parametrize("program", PROGRAMS)
@settings(SETTINGS, max_examples=15)
@given(data=st.data())
def test_traces_replay(program, data):
    inputs, out = PROGRAMS[program](data.draw)
    s = random_schedule(data.draw, out, inputs, scopes=True)
    again = te.create_schedule(out, inputs)
    again.replay(from_json(json.loads(json.dumps(to_json(s.trace)))))
    assert tir.show(again.mod) == tir.show(s.mod)
    assert again.trace == s.trace
