"""Programs without blocks compute what those with blocks do."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler import tir
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.tir import For, If, Load, PrimFunc, Store, Var
from vdla.compiler.tir.ir import Buffer, all_of, const
from vdla.compiler.tir.parser import parse

NESTED_INIT = """
func main(a: int32[6, 5], out: int32[6]):
    for i in {i}:
        for j in {j}:
            block total(vy: s6 = {y}, vk: r5 = {k}):
                reads a[vy, vk]
                writes out[vy]
                init:
                    block start(vz: s6 = vy):
                        writes out[vz]
                        out[vz] = vz * 7
                out[vy] = out[vy] + a[vy, vk]
"""


@pytest.mark.parametrize(
    "loops",
    [
        {"i": 6, "j": 5, "y": "i", "k": "j"},
        {"i": 5, "j": 6, "y": "j", "k": "i"},
        {"i": 2, "j": 15, "y": "(i * 15 + j) // 5", "k": "(i * 15 + j) % 5"},
    ],
    ids=["inside", "outside", "fused"],
)
def test_a_block_in_an_init(loops):
    func = tir.verify(parse(NESTED_INIT.format(**loops)))
    flat = tir.verify(tir.flatten_blocks(func))
    assert not list(tir.blocks(flat.body))
    x = np.random.default_rng(0).integers(-99, 99, (6, 5)).astype("int32")
    want = x.sum(axis=1) + np.arange(6) * 7
    for f in (func, flat):
        np.testing.assert_array_equal(tir.evaluate(f, x)[0], want)
    found = np.zeros(6, "int32")
    llvm.jit([func])["main"](x, found)
    np.testing.assert_array_equal(found, want)


def chosen(cond, orelse):
    """Eight times 1, where there is a way to it, over what was there."""
    out, i = Buffer("out", (8,), "int32"), Var("i")
    other = Store(out, (i,), const(2)) if orelse else None
    body = If(cond(i), Store(out, (i,), const(1) + Load(out, (i,))), other)
    return PrimFunc("main", (out,), For(i, 8, "serial", body))


@pytest.mark.parametrize("orelse", [False, True])
@pytest.mark.parametrize(
    ("cond", "decided"),
    [
        (lambda i: i < 8, True),
        (lambda i: i > 7, True),
        (lambda i: all_of(i >= 3, i < 9), False),
    ],
)
def test_decided_conditions_leave_one_side(cond, decided, orelse):
    func = chosen(cond, orelse)
    flat = tir.verify(tir.flatten_blocks(func))
    assert decided == (not any(isinstance(s, If) for s in tir.walk(flat.body)))
    (want, found) = (np.arange(8, dtype="int32") for _ in range(2))
    tir.run(func, [want])
    tir.run(flat, [found])
    np.testing.assert_array_equal(found, want)
