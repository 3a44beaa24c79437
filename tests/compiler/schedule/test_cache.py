"""Copies in other memories, and how buffers lie in them."""

from __future__ import annotations

from scheduling import body, chain, check, matmul, rejects

from vdla import te


def test_cache_read():
    a, b, c, s = chain()
    copy = s.cache_read(a, "vdla.inp", [b])
    assert copy.name == "A_inp"
    s[b].compute_inline()
    yo, _ = s[c].split(c.axis[0], factor=5)
    s[copy].compute_at(s[c], yo)
    assert body(s)[:5] == [
        "for y_o in 2:",
        '    alloc A_inp: int32[5, 8] @"vdla.inp"',
        "    for i0 in 5:",
        "        for i1 in 8:",
        "            A_inp[i0, i1] = A[y_o * 5 + i0, i1]",
    ]
    check(s)


def test_cache_read_of_some_readers():
    a = te.placeholder((4,), "int32", "A")
    b = te.compute((4,), lambda i: a[i] + 1, "B")
    c = te.compute((4,), lambda i: a[i] * b[i], "C")
    s = te.create_schedule(c)
    s.cache_read(a, "near", [c])
    assert "    B[i] = A[i] + 1" in body(s)[3:] or any("B[i] = A[i]" in x for x in body(s))
    assert any("A_near[i_1]" in line for line in body(s))
    check(s)
    rejects(
        lambda: s.cache_read(b, "near", [b]),
        "cache_read B: expected readers of it, found B, which doesn't read it",
    )


def test_several_copies_have_names_of_their_own():
    a = te.placeholder((4,), "int32", "A")
    readers = [te.compute((4,), lambda i, n=n: a[i] + n, f"R{n}") for n in range(3)]
    s = te.create_schedule(readers)
    copies = [s.cache_read(a, "near", [reader]).name for reader in readers]
    assert copies == ["A_near", "A_near_1", "A_near_2"]


def test_cache_write():
    a, _, c, d, s = matmul()
    local = s.cache_write(d, "vdla.acc")
    s[c].compute_inline() if not c.reduce_axis else None
    assert [t.scope for t in (local, a)] == ["vdla.acc", "global"]
    assert body(s)[-3:] == [
        "for y_2 in 6:",
        "    for x_2 in 4:",
        "        D[y_2, x_2] = D_acc[y_2, x_2]",
    ]
    s[local].compute_at(s[d], d.axis[0])
    check(s)


def test_cache_write_of_a_reduction():
    _, _, c, d, s = matmul()
    local = s.cache_write(c, "vdla.acc")
    ko, _ = s[local].split(local.reduce_axis[0], factor=2)
    s[local].reorder(ko, *local.axis)
    s[c].compute_inline()
    s[local].compute_at(s[d], d.axis[0])
    check(s)


def test_cache_write_errors():
    _, b, c, s = chain()
    s[c].split(c.axis[0], factor=2)
    rejects(
        lambda: s.cache_write(c, "near"),
        "cache_write C: expected the loops te made (y, x), found y_o, y_i, x; call it before "
        "scheduling",
    )
    s[b].compute_at(s[c], c.axis[1])
    rejects(
        lambda: s.cache_write(b, "near"),
        "cache_write B: expected a stage of its own, found it attached; call it before compute_at",
    )


def test_set_scope():
    _, b, c, s = chain()
    s[b].set_scope("vdla.acc")
    assert body(s)[0] == 'alloc B: int32[10, 8] @"vdla.acc"'
    check(s)
    rejects(
        lambda: s[c].set_scope("vdla.acc"),
        "set_scope C: expected an intermediate stage, found the output C, which stays in scope "
        "global",
    )


def test_storage_align():
    a = te.placeholder((4, 3, 5), "int32", "A")
    b = te.compute((4, 3, 5), lambda z, y, x: a[z, y, x] + 1, "B")
    c = te.compute((4, 3, 5), lambda z, y, x: b[3 - z, 2 - y, x] * 2, "C")
    s = te.create_schedule(c)
    s[b].storage_align(b.axis[1], 8, 1)
    s[b].storage_align(b.axis[0], 16, 3)
    assert body(s)[0] == "alloc B: int32[4, 3, 5] align(1, 8, 1) align(0, 16, 3)"
    buffer = s.buffers["B"]
    assert (buffer.strides, buffer.span) == ((35, 9, 1), 140)
    assert (c.strides, c.span) == ((15, 5, 1), 60)
    check(s)
    s[b].storage_align(b.axis[0], 32, 0)
    assert s.buffers["B"].strides == (32, 9, 1)
    s[b].compute_at(s[c], c.axis[0])
    assert s.buffers["B"].strides == (32, 9, 1)
    check(s)


def test_storage_align_errors():
    _, b, c, s = chain()
    rejects(
        lambda: s[c].storage_align(c.axis[0], 8, 0),
        "storage_align C: expected an intermediate stage, found the output C, which lies as "
        "numpy has it",
    )
    rejects(
        lambda: s[b].storage_align(c.axis[0], 8, 0),
        "storage_align B: expected one of its axes (y, x), found y",
    )
    rejects(
        lambda: s[b].storage_align(b.axis[0], 8, 8),
        "storage_align B: expected factor >= 1 and offset in 0..factor-1, found 8 and 8",
    )
    s[b].storage_align(b.axis[0], 8, 0)
    rejects(
        lambda: s[b].set_scope("vdla.acc"),
        "set_scope B: expected scope global, shared or local of an aligned buffer, found "
        "vdla.acc, where entries lie densely",
    )
    _, b, _, s = chain()
    s[b].set_scope("vdla.acc")
    rejects(
        lambda: s[b].storage_align(b.axis[0], 8, 0),
        "storage_align B: expected a buffer in scope global, shared or local, found it in "
        "vdla.acc, where entries lie densely",
    )
