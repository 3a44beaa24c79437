"""How loops run, and what is asked for early."""

from __future__ import annotations

import pytest
from scheduling import body, chain, check, matmul, rejects

from vdla import te


def test_loop_kinds():
    _, b, c, s = chain()
    s[b].compute_inline()
    y, x = c.axis
    s[c].bind(y, te.thread_axis("vthread"))
    s[c].vectorize(x)
    s[c].pragma(x, "dma", 2)
    s[c].pragma(x, "dma", "whole")
    assert body(s)[:2] == [
        'for y in 10 vthread("vthread"):',
        '    for x in 8 vectorized @dma="whole":',
    ]
    s[c].parallel(y)
    s[c].unroll(x)
    assert body(s)[:2] == ["for y in 10 parallel:", '    for x in 8 unrolled @dma="whole":']
    check(s)


@pytest.mark.parametrize("primitive", ["vectorize", "parallel", "bind"])
def test_reductions_are_not_independent(primitive):
    _, _, c, _, s = matmul()
    (k,) = c.reduce_axis
    more = (te.thread_axis("vthread"),) if primitive == "bind" else ()
    rejects(
        lambda: getattr(s[c], primitive)(k, *more),
        f"{primitive} C.k: expected a loop over spatial axes, found that C reduces over it "
        f"(v_k = k, 0..5)",
    )
    s[c].unroll(k)


def test_prefetch():
    a, b, c, s = chain()
    s[b].compute_inline()
    yo, _ = s[c].split(c.axis[0], factor=4)
    s[c].prefetch(a, yo, 2)
    assert body(s)[:3] == [
        "for y_o in 3:",
        "    prefetch A[y_o * 4 + 8 +: 4, 0 +: 8]",
        "    for y_i in 4:",
    ]
    assert s.trace[-1].to_json() == {
        "primitive": "prefetch",
        "stage": "C",
        "args": {"tensor": "A", "axis": "C.y_o", "offset": 2},
    }
    check(s)


def test_prefetch_errors():
    a, b, c, s = chain()
    y, _ = c.axis
    rejects(
        lambda: s[c].prefetch(b, y, 0),
        "prefetch C.y: expected an offset of at least 1 step, found 0",
    )
    rejects(
        lambda: s[c].prefetch(a, y),
        "prefetch C.y: expected a loop that reads A, found none that does inside",
    )
    rejects(lambda: s[c].prefetch("Z", y), "prefetch C.y: expected one of A, B, C, found Z")
    s[b].compute_at(s[c], y)
    rejects(
        lambda: s[c].prefetch(b, y),
        "prefetch C.y: expected a tensor made before the loop, found B made in each step",
    )
    s[b].set_scope("vdla.acc")
    rejects(
        lambda: s[c].prefetch(b, y),
        "prefetch C.y: expected a tensor in scope global, found B in vdla.acc; double_buffer "
        "fills on-chip memory ahead of time",
    )
