"""A matrix product on the accelerator: int8 in, int32 out."""

import numpy as np

import vdla
from vdla import te

ins = vdla.intrinsics("paper")  # an INP vector has 16 lanes, a WGT tile 16 × 16
A = te.placeholder((64, 128), "int8", "A")
B = te.placeholder((8, 2, 16, 16), "int8", "B")  # tiles [k, n, output lane, input lane]
k, i = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 16), "i")
C = te.compute((64, 32), lambda m, n: te.sum(A[m, k * 16 + i].astype("int32")
               * B[k, n // 16, n % 16, i].astype("int32"), axis=[k, i]), "C")  # fmt: skip
s = te.create_schedule(C)
acc = s.cache_write(C, vdla.ACC)
a, b = s.cache_read(A, vdla.INP, [acc]), s.cache_read(B, vdla.WGT, [acc])
(m, n), (k, i) = s[acc].axis, s[acc].reduce_axis
n, lane = s[acc].split(n, factor=16)
s[acc].reorder(n, m, k, lane, i)
vector = [s[t].split(s[t].axis[1], factor=16)[1] for t in (a, C)]
for stage, axis in zip((a, C, b, acc), (*vector, s[b].axis[2], lane), strict=True):
    s[stage].tensorize(axis, ins)
x, w, c = np.ones((64, 128), np.int8), np.eye(128, 32, dtype=np.int8), np.zeros((64, 32), np.int32)
run = vdla.build(s, [A, B, C])(x, w.reshape(8, 16, 2, 16).transpose(0, 2, 3, 1), c)
print(run.cycles, "cycles; equal to numpy:", np.array_equal(c, x @ w.astype(np.int32)))
