"""What a schedule records, and what replay says of steps that don't apply."""

from __future__ import annotations

from scheduling import chain, rejects

from vdla.compiler.schedule import checked_at_the_end
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.printer import show


def test_the_trace_names_what_was_done():
    a, b, c, s = chain()
    copy = s.cache_read(a, "near", [b])
    yo, yi = s[c].split(c.axis[0], factor=4)
    s[c].reorder(yi, yo)
    s[b].compute_at(s[c], yi)
    s[copy].set_scope("far")
    assert [step.to_json() for step in s.trace] == [
        {"primitive": "cache_read", "stage": "A", "args": {"scope": "near", "readers": ["B"]}},
        {"primitive": "split", "stage": "C", "args": {"axis": "C.y", "factor": 4}},
        {"primitive": "reorder", "stage": "C", "args": {"axes": ["C.y_i", "C.y_o"]}},
        {"primitive": "compute_at", "stage": "B", "args": {"parent": "C", "axis": "C.y_i"}},
        {"primitive": "set_scope", "stage": "A_near", "args": {"scope": "far"}},
    ]


def test_replay_errors():
    from vdla.compiler.schedule import Step

    _, _, _, s = chain()
    rejects(
        lambda: s.replay([Step("melt", "C")]),
        "replay: expected a primitive of split, fuse, reorder, compute_at, compute_root, "
        "compute_inline, set_scope, double_buffer, storage_align, unroll, vectorize, parallel, "
        "bind, pragma, prefetch, tensorize, found 'melt'",
    )
    rejects(
        lambda: s.replay([Step("split", "C", {"axis": "C.z", "factor": 2})]),
        "loop: expected one of B.y, B.x, C.y, C.x, found C.z",
    )
    rejects(
        lambda: s.replay([Step("tensorize", "C", {"axis": "C.x", "intrin": "gemm"})]),
        "replay: expected an intrinsic of , found 'gemm'",
    )


def test_checks_at_the_end_find_what_is_wrong_and_change_nothing():
    def scheduled():
        _, b, c, s = chain()
        yo, _ = s[c].split(c.axis[0], factor=4)
        s[b].compute_at(s[c], yo)
        return s

    with checked_at_the_end():
        late = scheduled()
    each = scheduled()
    assert (late.checked, each.checked) == (False, True)
    assert late.trace == each.trace
    assert show(late.mod) == show(each.mod)
    late.check()
    func = late.mod
    late.mod = PrimFunc(func.name, (*func.params, func.params[0]), func.body)
    rejects(late.check, f"{func.name}: two parameters are named {func.params[0].name}")
