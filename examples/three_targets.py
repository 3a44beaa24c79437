"""One expression, three targets: a product of int8 matrices on accelerator, processor and GPU."""

import numpy as np

import vdla
from vdla import te

ins = vdla.intrinsics("paper")
A = te.placeholder((64, 128), "int8", "A")
B = te.placeholder((8, 2, 16, 16), "int8", "B")  # tiles [k, n, output lane, input lane]
k, i = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 16), "i")
C = te.compute((64, 32), lambda m, n: te.sum(A[m, k * 16 + i].astype("int32")
               * B[k, n // 16, n % 16, i].astype("int32"), axis=[k, i]), "C")  # fmt: skip


def accelerator(s):  # vectors of 16, copied on chip; each innermost nest is an instruction
    acc = s.cache_write(C, vdla.ACC)
    a, b = s.cache_read(A, vdla.INP, [acc]), s.cache_read(B, vdla.WGT, [acc])
    n, lane = s[acc].split(s[acc].axis[1], factor=16)
    s[acc].reorder(n, s[acc].axis[0], s[acc].reduce_axis[0], lane, s[acc].reduce_axis[1])
    vector = [s[t].split(s[t].axis[1], factor=16)[1] for t in (a, C)]
    for stage, axis in zip((a, C, b, acc), (*vector, s[b].axis[2], lane), strict=True):
        s[stage].tensorize(axis, ins)


def processor(s):  # rows for threads, 16 sums side by side in lanes
    n, lane = s[C].split(s[C].axis[1], factor=16)
    s[C].reorder(s[C].axis[0], n, *s[C].reduce_axis, lane)
    s[C].vectorize(lane)
    s[C].parallel(s[C].axis[0])


def gpu(s):  # groups of 16 × 16 threads, which load tiles into shared memory together
    sums = s.cache_write(C, "local")
    a, b = s.cache_read(A, "shared", [sums]), s.cache_read(B, "shared", [sums])
    y, x = ("blockIdx.y", "threadIdx.y"), ("blockIdx.x", "threadIdx.x")
    by, bx, ty, tx = s[C].tile(*s[C].axis, 16, 16)
    for loop, tag in zip((by, ty, bx, tx), (*y, *x), strict=True):
        s[C].bind(loop, te.thread_axis(tag))
    s[sums].compute_at(s[C], tx)
    for tile in (s[a], s[b]):
        tile.compute_at(s[sums], s[sums].reduce_axis[0])
        high, wide = tile.split(tile.fuse(*tile.axis), factor=16)
        tile.bind(high, te.thread_axis("threadIdx.y"))
        tile.bind(wide, te.thread_axis("threadIdx.x"))


x, w = np.ones((64, 128), np.int8), np.eye(128, 32, dtype=np.int8)
tiles = w.reshape(8, 16, 2, 16).transpose(0, 2, 3, 1)
for schedule, target in ((accelerator, "paper"), (processor, "cpu"), (gpu, "gpu")):
    s, c = te.create_schedule(C), np.zeros((64, 32), np.int32)
    schedule(s)
    vdla.build(s, [A, B, C], target)(x, tiles, c)
    print(f"{schedule.__name__}: equal to numpy: {np.array_equal(c, x @ w.astype(np.int32))}")
