"""Recurrences over the leading axis."""

from __future__ import annotations

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import ScheduleError
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.te import TEError
from vdla.compiler.tir.values import value_ranges

RNG = np.random.default_rng(0)


def cumulative_sum(m=6, n=3):
    x = te.placeholder((m, n), "int32", "X", value_range=(0, 9))
    state = te.placeholder((m, n), "int32", "state")
    init = te.compute((1, n), lambda _, i: x[0, i], "init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], "update")
    return x, init, update, te.scan(init, update, state, inputs=[x], name="S")


def recurrent(m=5, n=4):
    """h[t] = tanh(x[t] + h[t - 1] W), by way of a reduction."""
    x = te.placeholder((m, n), "float64", "X")
    w = te.placeholder((n, n), "float64", "W")
    state = te.placeholder((m, n), "float64", "h")
    k = te.reduce_axis((0, n), "k")
    init = te.compute((1, n), lambda _, i: te.tanh(x[0, i]), "init")
    product = te.compute((m, n), lambda t, i: te.sum(state[t - 1, k] * w[k, i], axis=k), "P")
    update = te.compute((m, n), lambda t, i: te.tanh(x[t, i] + product[t, i]), "update")
    return x, w, product, update, te.scan(init, update, state, name="H")


def hidden(x, w):
    rows = [np.tanh(x[0])]
    for row in x[1:]:
        rows.append(np.tanh(row + rows[-1] @ w))
    return np.array(rows)


def everywhere(s, *arrays):
    """The results of a schedule as it stands, lowered, and compiled; they agree."""
    first = tir.evaluate(s.mod, *arrays)
    lowered = tir.evaluate(s.lower(), *arrays)
    native = [np.zeros_like(x) for x in first]
    llvm.jit([s.mod])["main"](*arrays, *native)
    for a, b, c in zip(first, lowered, native, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(a, c, rtol=1e-12)
    return first


def test_a_cumulative_sum():
    *_, result = cumulative_sum()
    s = te.create_schedule(result)
    assert tir.show(s.lower()).splitlines()[1:] == [
        "    for i in 3:",
        "        S[0, i] = X[0, i]",
        "    for t in 5:",
        "        for i_1 in 3:",
        "            S[t + 1, i_1] = S[t, i_1] + X[t + 1, i_1]",
    ]
    x = RNG.integers(0, 9, (6, 3)).astype("int32")
    np.testing.assert_array_equal(everywhere(s, x)[0], x.cumsum(axis=0))


def test_a_recurrent_network():
    *_, result = recurrent()
    x, w = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 4))
    np.testing.assert_allclose(everywhere(te.create_schedule(result), x, w)[0], hidden(x, w))


def test_an_update_that_is_a_reduction():
    x = te.placeholder((5, 4), "float64", "X")
    state = te.placeholder((5, 4), "float64", "h")
    k = te.reduce_axis((0, 4), "k")
    init = te.compute((1, 4), lambda _, i: x[0, i], "init")
    update = te.compute((5, 4), lambda t, i: te.sum(
        state[t - 1, k] * x[t, (i + k) % 4], axis=k), "update")  # fmt: skip
    data = RNG.normal(size=(5, 4))
    want = [data[0]]
    for row in data[1:]:
        want.append([sum(want[-1][k] * row[(i + k) % 4] for k in range(4)) for i in range(4)])
    found = everywhere(te.create_schedule(te.scan(init, update, state)), data)[0]
    np.testing.assert_allclose(found, want)


def test_several_states_of_several_rows():
    """a[t] = a[t-2] + b[t-1], b[t] = a[t] * 2: the second reads what the first one just made."""
    x = te.placeholder((2, 3), "int64", "X")
    sa, sb = (te.placeholder((7, 3), "int64", n) for n in "ab")
    ia = te.compute((2, 3), lambda t, i: x[t, i], "ia")
    ib = te.compute((2, 3), lambda t, i: x[t, i] + 1, "ib")
    ua = te.compute((7, 3), lambda t, i: sa[t - 2, i] + sb[t - 1, i], "ua")
    ub = te.compute((7, 3), lambda t, i: ua[t, i] * 2, "ub")
    a, b = te.scan([ia, ib], [ua, ub], [sa, sb], name="R")
    total = te.compute((7, 3), lambda t, i: a[t, i] + b[t, i], "total")
    s = te.create_schedule([a, total])
    assert s[a] is s[b] is s["R"]
    data = RNG.integers(-9, 9, (2, 3))
    wa, wb = list(data), list(data + 1)
    for t in range(2, 7):
        wa.append(wa[t - 2] + wb[t - 1])
        wb.append(wa[t] * 2)
    found = everywhere(s, data)
    np.testing.assert_array_equal(found[0], wa)
    np.testing.assert_array_equal(found[1], np.add(wa, wb))


def test_of_a_recurrence_no_range_is_known():
    *_, result = cumulative_sum()
    assert value_ranges(te.create_schedule(result).mod)["S"] == (-(1 << 31), (1 << 31) - 1)


# Scheduling ------------------------------------------------------------------------------------


def test_steps_are_stages_of_their_own():
    _, _, product, update, result = recurrent()
    s = te.create_schedule(result)
    (scan,) = s[result].leaf_iter_vars
    to, ti = s[result].split(scan, factor=3)
    assert s[result].leaf_iter_vars == (to, ti)
    s[result].unroll(ti)
    io, ii = s[product].split(product.axis[1], factor=3)
    s[product].reorder(product.reduce_axis[0], io, ii)
    s[update].vectorize(update.axis[1])
    x, w = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 4))
    np.testing.assert_allclose(everywhere(s, x, w)[0], hidden(x, w))
    again = te.create_schedule(result)
    again.replay(s.trace)
    assert tir.show(again.mod) == tir.show(s.mod)


def test_a_stage_can_be_computed_in_each_step():
    x = te.placeholder((6, 3), "int32", "X")
    twice = te.compute((6, 3), lambda t, i: x[t, i] * 2, "twice")
    state = te.placeholder((6, 3), "int32", "state")
    init = te.compute((1, 3), lambda _, i: x[0, i], "init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + twice[t, i], "update")
    result = te.scan(init, update, state, name="S")
    s = te.create_schedule(result)
    s[twice].compute_at(s[result], s[result].op.scan_axis)
    assert "alloc twice: int32[1, 3]" in tir.show(s.mod)
    data = RNG.integers(0, 9, (6, 3)).astype("int32")
    want = np.concatenate([data[:1], 2 * data[1:]]).cumsum(axis=0)
    np.testing.assert_array_equal(everywhere(s, data)[0], want)


def refuses(action, text):
    with pytest.raises(ScheduleError) as error:
        action()
    assert str(error.value) == text


def test_what_a_scan_does_not_take():
    x, _, update, result = cumulative_sum()
    out = te.compute((6, 3), lambda t, i: result[t, i] + 1, "out")
    s = te.create_schedule(out)
    (t,) = s[result].leaf_iter_vars
    found = ("expected a stage of one tensor by te.compute, found a te.scan, whose steps follow "
             "one another; it takes split, unroll, pragma, "
             "prefetch, set_scope")  # fmt: skip
    for primitive in ("parallel", "vectorize", "reorder", "fuse"):
        refuses(lambda p=primitive: getattr(s[result], p)(t), f"{primitive} S: {found}")
    refuses(lambda: s[result].bind(t, te.thread_axis("vthread")), f"bind S: {found}")
    refuses(lambda: s.cache_write(result, "near"), f"cache_write S: {found}")
    refuses(lambda: s[result].compute_at(s[out], out.axis[0]), f"compute_at S: {found}")
    refuses(lambda: s[result].compute_inline(), f"compute_inline S: {found}")
    refuses(lambda: s[update].set_scope("near"),
            "set_scope update: expected a stage of one tensor by te.compute, found a part of the "
            "te.scan S; it takes split, fuse, reorder, unroll, vectorize, parallel, bind, pragma, "
            "prefetch, tensorize, cache_read")  # fmt: skip
    refuses(
        lambda: s[update].split(update.axis[0], factor=2),
        "split update.t: expected a present loop, found that it was made the scan's loop S.t",
    )
    refuses(lambda: s.cache_read(result, "near", [update]),
            "cache_read S: expected it to be made before the loops that read it, found update in "
            "the same")  # fmt: skip
    refuses(lambda: s.cache_read(x, "near", [result]), f"cache_read S: {found}")


# Errors ----------------------------------------------------------------------------------------

X = te.placeholder((4, 2), "int32", "X")
S = te.placeholder((4, 2), "int32", "S")
INIT = te.compute((1, 2), lambda t, i: X[0, i], "init")


def updated(fcompute, shape=(4, 2)):
    return te.compute(shape, fcompute, "update")


GOOD = updated(lambda t, i: S[t - 1, i] + X[t, i])
BAD = {
    "counts": (lambda: te.scan([INIT], [GOOD, GOOD], [S]),
               "scan: expected as many inits as updates and states, found 1, 2 and 1"),
    "state": (lambda: te.scan(INIT, GOOD, GOOD),
              "scan: expected a placeholder as state, found computed update"),
    "init": (lambda: te.scan(X, GOOD, S),
             "scan: expected an init and an update by te.compute of one value, found X"),
    "shape": (lambda: te.scan(INIT, updated(lambda t, i: S[t, i], (3, 2)), S),
              "scan: expected an init of fewer rows than the update and the state have, all else "
              "alike, found init int32[1, 2], update int32[3, 2] and S int32[4, 2]"),
    "row": (lambda: te.scan(INIT, updated(lambda t, i: S[t, i] + 1), S),
            "scan: update: expected to read S at row t - 1, found S[t, i]"),
    "rows": (lambda: te.scan(te.compute((2, 2), lambda t, i: X[t, i], "init"),
                             updated(lambda t, i: S[t - 3, i]), S),
             "scan: update: expected to read S at row t - 1 to t - 2, found S[t - 3, i]"),
    "init's state": (lambda: te.scan(te.compute((1, 2), lambda t, i: S[0, i], "init"), GOOD, S),
                     "scan: expected an init that doesn't depend on the state, found that init "
                     "reads S"),
    "rows of a step": (lambda: te.scan(INIT, updated(lambda t, i: te.compute(
        (2,), lambda j: S[0, j], "step")[i]), S),
        "scan: expected step, which depends on the state, to have its 4 rows, found [2]"),
    "outside": (lambda: te.create_prim_func([X], [te.compute(
        (4, 2), lambda t, i: te.scan(INIT, GOOD, S)[t, i] + INIT[0, i], "out")]),
        "main: out reads init, which is a part of the scan scan; read scan"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_errors(case):
    build, text = BAD[case]
    with pytest.raises(TEError) as error:
        build()
    assert str(error.value) == text
