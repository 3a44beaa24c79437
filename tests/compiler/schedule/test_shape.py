"""Primitives of a stage's loops: what they make, and what they say when they can't be applied."""

from __future__ import annotations

from scheduling import body, chain, check, matmul, rejects


def test_split():
    _, b, c, s = chain()
    s[b].compute_inline()
    yo, yi = s[c].split(c.axis[0], factor=4)
    assert [v.name for v in s[c].leaf_iter_vars] == ["y_o", "y_i", "x"]
    assert (s[c].extent(yo), s[c].extent(yi)) == (3, 4)
    assert body(s) == [
        "for y_o in 3:",
        "    for y_i in 4:",
        "        for x in 8:",
        "            if y_o * 4 + y_i < 10:",
        "                C[y_o * 4 + y_i, x] = (A[y_o * 4 + y_i, x] + 1) * 2",
    ]
    check(s)


def test_split_by_parts():
    _, _, c, s = chain()
    yo, yi = s[c].split(c.axis[0], nparts=5)
    assert (s[c].extent(yo), s[c].extent(yi)) == (5, 2)
    check(s)


def test_split_errors():
    _, b, c, s = chain()
    y, x = c.axis
    rejects(lambda: s[c].split(y), "split C.y: expected one of factor and nparts")
    rejects(
        lambda: s[c].split(y, factor=11),
        "split C.y: expected factor in 1..10 (the loop's extent), found 11",
    )
    rejects(
        lambda: s[c].split(x, nparts=0),
        "split C.x: expected nparts in 1..8 (the loop's extent), found 0",
    )
    rejects(
        lambda: s[c].split(b.axis[0], factor=2),
        "split C: expected one of its loops (y, x), found B.y",
    )
    s[c].split(y, factor=2)
    rejects(
        lambda: s[c].split(y, factor=2),
        "split C.y: expected a present loop, found that it was split into C.y_o, C.y_i",
    )


def test_tile():
    _, _, c, s = chain()
    loops = s[c].tile(*c.axis, 5, 4)
    assert s[c].leaf_iter_vars == loops
    assert [v.name for v in loops] == ["y_o", "x_o", "y_i", "x_i"]
    check(s)


def test_fuse():
    _, b, c, s = chain()
    s[b].compute_inline()
    both = s[c].fuse(*c.axis)
    assert s[c].leaf_iter_vars == (both,)
    assert body(s) == [
        "for y_x in 80:",
        "    C[y_x // 8, y_x % 8] = (A[y_x // 8, y_x % 8] + 1) * 2",
    ]
    check(s)


def test_fuse_errors():
    _, _, c, s = chain()
    y, x = c.axis
    rejects(
        lambda: s[c].fuse(x, y),
        "fuse C.x: expected y (0..10) directly inside x (0..8), found Block",
    )
    rejects(lambda: s[c].fuse(), "fuse C: expected at least one loop, found none")
    _, _, c, _, s = matmul()
    rejects(
        lambda: s[c].fuse(c.axis[1], c.reduce_axis[0]),
        "fuse C.x: expected loops of one kind, found x (0..4, spatial) and k (0..5, reduce) in C",
    )


def test_reorder():
    _, _, c, _, s = matmul()
    y, x = c.axis
    (k,) = c.reduce_axis
    s[c].reorder(k, x)
    assert s[c].leaf_iter_vars == (y, k, x)
    s[c].reorder(x, k, y)
    assert s[c].leaf_iter_vars == (x, k, y)
    check(s)


def test_reorder_errors():
    _, b, c, s = chain()
    y, x = c.axis
    rejects(lambda: s[c].reorder(y, y), "reorder C: a loop is named twice")
    s[b].compute_at(s[c], y)
    rejects(
        lambda: s[c].reorder(x, y),
        "reorder C: expected a perfect nest from y (0..10) to x (0..8), found Alloc in between "
        "(a stage is attached there: reorder before compute_at)",
    )
