"""A chain of elementwise operators on the accelerator: relu((x + y) * 3) >> 2, in int32."""

import numpy as np

import vdla
from vdla import te

ins, shape = vdla.intrinsics("paper"), (4096, 16)  # vectors of 16 lanes
X, Y = te.placeholder(shape, "int32", "X"), te.placeholder(shape, "int32", "Y")
added = te.compute(shape, lambda v, l: X[v, l] + Y[v, l], "added")
scaled = te.compute(shape, lambda v, l: added[v, l] * 3, "scaled")
relu = te.compute(shape, lambda v, l: te.max(scaled[v, l], 0), "relu")
Z = te.compute(shape, lambda v, l: relu[v, l] >> 2, "Z")

rng = np.random.default_rng(0)
x, y = rng.integers(-1000, 1000, (2, *shape)).astype(np.int32)
for threads in 1, 2:
    s = te.create_schedule(Z)
    shifted = s.cache_write(Z, vdla.ACC)
    copies = [s.cache_read(t, vdla.ACC, [added]) for t in (X, Y)]
    outer, _ = s[Z].split(s[Z].axis[0], factor=256)  # a tile of 256 vectors on chip at a time
    s[Z].bind(outer, te.thread_axis("vthread", threads=threads))
    for stage in (shifted, relu, scaled, added, *copies):
        s[stage].set_scope(vdla.ACC)
        s[stage].compute_at(s[Z], outer)
    for stage in (Z, shifted, relu, scaled, added, *copies):
        s[stage].tensorize(s[stage].axis[1], ins)  # the cheapest instruction that is right
    z = np.zeros(shape, np.int32)
    run = vdla.build(s, [X, Y, Z], "paper")(x, y, z)
    assert np.array_equal(z, np.maximum((x + y) * 3, 0) >> 2)
    print(f"{threads} virtual thread{'s' * (threads > 1)}: {run.cycles:,} cycles")
