"""A matrix product on the accelerator: C[m, n] = Σ A[m, k] · B[n, k], int8 in, int32 out."""

import numpy as np

import vdla
from vdla import te

M = N = K = 256
ins = vdla.intrinsics("paper")
A = te.placeholder((M, K), "int8", "A")
B = te.placeholder((N // 16, K // 16, 16, 16), "int8", "B")  # tiles of 16 × 16 weights
k, i = te.reduce_axis((0, K // 16), "k"), te.reduce_axis((0, 16), "i")
C = te.compute((M, N // 16, 16), lambda m, n, l: te.sum(
    A[m, k * 16 + i].astype("int32") * B[n, k, l, i].astype("int32"), axis=[k, i]), "C")

s = te.create_schedule(C)
acc = s.cache_write(C, vdla.ACC)
a, b = s.cache_read(A, vdla.INP, [acc]), s.cache_read(B, vdla.WGT, [acc])
m, n, l = s[C].axis
mo, mi = s[C].split(m, factor=64)
s[acc].compute_at(s[C], n)
