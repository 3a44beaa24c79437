"""Which kinds of statements and loops a function may hold after each pass."""

from __future__ import annotations

import pytest

from vdla import te
from vdla.compiler.targets.accelerator.lower import PASSES
from vdla.compiler.tir.ir import IRError
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.spec import FLAT
from vdla.compiler.tir.verify import verify


def scheduled(kind):
    """A loop of a kind around a store."""
    a = te.placeholder((8,), "int32", "a")
    b = te.compute((8,), lambda i: a[i] + 1, "b")
    s = te.create_schedule(b)
    outer, _ = s[b].split(s[b].axis[0], factor=4)
    if kind == "vthread":
        s[b].bind(outer, te.thread_axis("vthread"))
    return s.mod


def test_blocks_end_with_the_pass_that_flattens_them():
    func = scheduled("serial")
    with pytest.raises(IRError, match="after flatten_blocks: expected no Block, found one"):
        verify(func, spec=FLAT)
    verify(flatten_blocks(func), spec=FLAT)


def test_virtual_threads_end_with_their_pass():
    func = flatten_blocks(scheduled("vthread"))
    verify(func, spec=FLAT)
    (threaded, inject), (in_place, _) = PASSES
    for spec in threaded, in_place:
        with pytest.raises(IRError, match=f"after {spec.name}: .* of kind vthread"):
            verify(func, spec=spec)
    verify(inject(func), spec=threaded)
