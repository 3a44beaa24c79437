"""Kernels with barriers as text, integers to run them on, and what is wrong with them."""

from __future__ import annotations

import numpy as np

from vdla.compiler.tir import PrimFunc
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.parser import parse

RNG = np.random.default_rng(41)

MATMUL = """
func matmul(A: float32[16, 16], B: float32[16, 16], C: float32[16, 16]):
    for by in 4 thread("blockIdx.y"):
        for bx in 4 thread("blockIdx.x"):
            alloc S: float32[4, 4] @"shared"
            alloc T: float32[4, 4] @"shared"
            for ty in 4 thread("threadIdx.y"):
                for tx in 4 thread("threadIdx.x"):
                    alloc sum: float32[1] @"local"
                    sum[0] = 0.0
                    for k in 4:
                        barrier
                        S[ty, tx] = A[by * 4 + ty, k * 4 + tx]
                        T[ty, tx] = B[k * 4 + ty, bx * 4 + tx]
                        barrier
                        for i in 4:
                            sum[0] = sum[0] + S[ty, i] * T[i, tx]
                    C[by * 4 + ty, bx * 4 + tx] = sum[0]
"""
AHEAD = """
func copy(A: int32[6, 8], B: int32[6, 8]):
    for b in 1 thread("blockIdx.x"):
        alloc S: int32[2, 8] @"shared"
        for t in 8 thread("threadIdx.x"):
            S[0, t] = A[0, t]
            for k in 6:
                barrier
                if k < 5:
                    S[(k + 1) % 2, t] = A[k + 1, t]
                B[k, t] = S[k % 2, 7 - t]
"""
TREE = """
func tree(A: int32[8], B: int32[1]):
    for b in 1 thread("blockIdx.x"):
        alloc S: int32[8] @"shared"
        for t in 8 thread("threadIdx.x"):
            S[t] = A[t]
            barrier
            if t < 4:
                S[t] = S[t] + S[t + 4]
            barrier
            if t < 2:
                S[t] = S[t] + S[t + 2]
            barrier
            if t == 0:
                B[0] = S[0] + S[1]
"""


def drawn(func: PrimFunc):
    """Integers for each of a function's parameters."""
    return [RNG.integers(-99, 99, p.shape).astype(p.dtype) for p in func.params]


def findings(text: str) -> list[str]:
    """What is wrong with a kernel, one line each."""
    func = parse(text)
    return [str(found) for found in run_groups(func, drawn(func))]


def race(place, first, text, second, other, reason="with no barrier between") -> str:
    """The line for a race; both sides say who does what."""
    return f'race: {place}: {first} it in "{text}" and {second} it in "{other}", {reason}'
