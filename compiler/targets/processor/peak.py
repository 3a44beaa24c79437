"""The most that one core of this processor can compute, measured: independent sums in registers."""

from __future__ import annotations

import time

import numpy as np

from vdla.compiler import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.targets.processor.description.intrinsics import WORD_BYTES, dot4
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.passes import with_inits
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

STEPS = 1 << 18  # about a millisecond: calling the function takes some 10 microseconds
RUNS = 40


def peak(dtype: str) -> float:
    """Multiplications and additions per second of float32, or of int8 in dot products.

    The best of some short runs, which others' work on the machine disturbs least.
    """
    vectors = NATIVE.vectors
    sums = vectors.registers * 3 // 4
    out, inputs, work = (
        _floats(sums, vectors.lanes) if dtype == "float32" else _bytes(sums, vectors.lanes)
    )
    s = create_schedule(out, inputs, "peak")
    n, l = s[out].axis
    k, *word = s[out].reduce_axis
    s[out].reorder(k, n, l, *word)
    s[out].unroll(n)
    if word:
        s[out].tensorize(l, dot4(vectors.dot4, vectors.lanes))
    else:
        s[out].vectorize(l)
    func = with_inits(s.mod)
    run = llvm.jit([func])["peak"]
    arrays = [np.zeros(p.shape, p.dtype) for p in func.params]
    best = np.inf
    for _ in range(RUNS):
        start = time.perf_counter()
        run(*arrays)
        best = min(best, time.perf_counter() - start)
    return 2 * work / best


def _floats(sums: int, lanes: int) -> tuple[Tensor, list[Tensor], int]:
    a, b = (te.placeholder((lanes,), "float32", name) for name in "ab")
    k = te.reduce_axis((0, STEPS), "k")
    out = te.compute((sums, lanes), lambda n, l: te.sum(a[l] * b[l], axis=k), "out")
    return out, [a, b], sums * lanes * STEPS


def _bytes(sums: int, lanes: int) -> tuple[Tensor, list[Tensor], int]:
    x = te.placeholder((WORD_BYTES,), "uint8", "x")
    w = te.placeholder((lanes, WORD_BYTES), "int8", "w")
    start = te.placeholder((lanes,), "int32", "start")
    k, word = te.reduce_axis((0, STEPS), "k"), te.reduce_axis((0, WORD_BYTES), "word")

    def dot(n: Expr, l: Expr) -> Expr:
        product = x[word].astype("int32") * w[l, word].astype("int32")
        return te.sum(product, axis=[k, word], init=start[l])

    out = te.compute((sums, lanes), dot, "out")
    return out, [x, w, start], sums * lanes * WORD_BYTES * STEPS
