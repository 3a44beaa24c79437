"""256 × 256 × 256 on the accelerator: which tile is best is for a search to say."""

import tempfile

import numpy as np

import vdla
from vdla import te

A = te.placeholder((16, 256, 16), "int8", "A")  # vectors [k, m, lane]
B = te.placeholder((16, 16, 16, 16), "int8", "B")  # tiles [k, n, output lane, input lane]
k, i = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 16), "i")
C = te.compute((256, 256), lambda m, n: te.sum(A[k, m, i].astype("int32")
               * B[k, n // 16, n % 16, i].astype("int32"), axis=[k, i]), "C")  # fmt: skip


def schedule(s, knobs):
    acc, c = s[s.cache_write(C, vdla.ACC)], s[C]
    a, b = (s[s.cache_read(t, m, [acc.tensor])] for t, m in ((A, vdla.INP), (B, vdla.WGT)))
    band, tile, m = knobs.split("rows", c, c.axis[0], parts=3, filter=lambda e: 16 <= e[2] <= 128)
    n, lane = c.split(c.axis[1], factor=16)
    column, n = knobs.split("columns", c, n, factors=[1, 2, 4, 6, 8])
    c.reorder(band, *knobs.choice("order", {"down": (column, tile), "across": (tile, column)}))
    c.reorder(n, m, lane)
    inner = c.leaf_iter_vars[2]
    for stage, loop in (acc, inner), (a, band), (b, inner):
        stage.compute_at(c, loop)
    if (threads := knobs.knob("threads", [1, 2])) > 1:
        c.bind(inner, te.thread_axis("vthread", threads=threads))
        b.double_buffer(knobs.knob("copies", [1, 2]))  # a knob of two threads alone
    n, lanes = acc.split(acc.axis[1], factor=16)
    acc.reorder(acc.reduce_axis[0], n, acc.axis[0], lanes, acc.reduce_axis[1])
    if knobs.knob("streamed", [False, True]):  # an instruction for each step: first in, first used
        part, _ = a.split(a.axis[1], factor=knobs.values["rows"][1])
        for stage, loop in (acc, acc.reduce_axis[0]), (a, part), (a, a.axis[0]), (b, b.axis[0]):
            stage.unroll(loop)
    for stage, loop in (acc, lanes), (a, a.axis[2]), (b, b.axis[2]), (c, lane):
        stage.tensorize(loop, vdla.intrinsics("paper"))


if __name__ == "__main__":  # other processes measure, and import this file
    log = tempfile.mkdtemp() + "/log"
    result = vdla.search(C, schedule, log=log, target="paper", trials=24, searcher="genetic")
    print(result)
    x, w = (np.random.default_rng(0).integers(-128, 128, t.shape, np.int8) for t in (A, B))
    run = result.build([A, B, C])(x, w, out := np.zeros((256, 256), np.int32))
    right = np.einsum("kmi,knli->mnl", x, w, dtype=np.int32).reshape(256, 256)
    print(f"{run.cycles:,} cycles; equal to numpy: {np.array_equal(out, right)}")
