"""256 × 256 × 256 on the accelerator: from a plain schedule to 95 % of its bound, step by step."""

import numpy as np

import vdla
from vdla import te

STEPS = {  # rows kept on chip, rows and columns of a tile, copies of its weights, virtual threads
    "plain": (16, 16, 16, 1, 1),
    "tiled": (128, 64, 64, 1, 1),
    "double-buffered": (128, 64, 64, 2, 1),
    "two virtual threads": (128, 64, 64, 2, 2),
    "a narrower last tile": (128, 64, 96, 1, 2),
}
A = te.placeholder((16, 256, 16), "int8", "A")  # vectors [k, m, lane]
B = te.placeholder((16, 16, 16, 16), "int8", "B")  # tiles [k, n, output lane, input lane]
k, i = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 16), "i")
C = te.compute((256, 256), lambda m, n: te.sum(A[k, m, i].astype("int32")
               * B[k, n // 16, n % 16, i].astype("int32"), axis=[k, i]), "C")  # fmt: skip
x, w = (np.random.default_rng(0).integers(-128, 128, t.shape, np.int8) for t in (A, B))
for step, (kept, rows, columns, copies, threads) in STEPS.items():
    s = te.create_schedule(C)
    acc, c = s[s.cache_write(C, vdla.ACC)], s[C]
    a, b = (s[s.cache_read(t, m, [acc.tensor])] for t, m in ((A, vdla.INP), (B, vdla.WGT)))
    (band, m), (n, lane) = c.split(c.axis[0], factor=kept), c.split(c.axis[1], factor=16)
    (tile, m), (column, n) = c.split(m, factor=rows), c.split(n, factor=columns // 16)
    c.reorder(band, column, tile, n, m, lane)
    for stage, loop in (acc, tile), (a, band), (b, column):
        stage.compute_at(c, loop)
    c.bind(tile, te.thread_axis("vthread", threads=threads))
    b.double_buffer(copies)
    (n, l), (part, m) = acc.split(acc.axis[1], factor=16), a.split(a.axis[1], factor=rows)
    acc.reorder(acc.reduce_axis[0], n, acc.axis[0], l, acc.reduce_axis[1])
    for stage, loop in (acc, acc.reduce_axis[0]), (a, part), (a, a.axis[0]), (b, b.axis[0]):
        stage.unroll(loop)  # an instruction for each step: what is loaded first is used first
    for stage, loop in (acc, l), (a, a.axis[2]), (b, b.axis[2]), (c, lane):
        stage.tensorize(loop, vdla.intrinsics("paper"))
    run = vdla.build(s, [A, B, C], "paper")(x, w, out := np.zeros((256, 256), np.int32))
    assert np.array_equal(out, np.einsum("kmi,knli->mnl", x, w, dtype=np.int32).reshape(256, 256))
    print(f"{step:20} {run.cycles:7,} cycles  {65536 / run.cycles:5.1%} of the bound")
