"""A 3 × 3 convolution from scratch, requantized to int8: the shape of ResNet-18's C2."""

import numpy as np

import vdla
from vdla import te

C, N = 4, 56  # blocks of 16 channels, rows and columns of the image
ins, rng = vdla.intrinsics("paper"), np.random.default_rng(0)
X = te.placeholder((C, N, N, 16), "int8", "X")
K = te.placeholder((C, C, 3, 3, 16, 16), "int8", "K")  # [out, in, y, x, output lane, input lane]
bias, scale = (te.placeholder((C, 16), "int32", name) for name in ("bias", "scale"))
image = te.compute((C, N + 2, N + 2, 16), lambda c, y, x, l: te.if_then_else(
    te.all(y > 0, y <= N, x > 0, x <= N), X[c, y - 1, x - 1, l], te.const(0, "int8")))  # fmt: skip
ci, ky, kx, i = (te.reduce_axis((0, n), v) for v, n in (("ci", C), ("ky", 3), ("kx", 3), ("i", 16)))
acc = te.compute((C, N, N, 16), lambda o, y, x, l: te.sum(
    image[ci, y + ky, x + kx, i].astype("int32") * K[o, ci, ky, kx, l, i].astype("int32"),
    axis=[ci, ky, kx, i], init=bias[o, l]), "acc")  # fmt: skip
Y = te.compute((C, N, N, 16), lambda o, y, x, l: te.requantize(
    acc[o, y, x, l], scale[o, l], low=0).astype("int8"), "Y")  # fmt: skip
s = te.create_schedule(Y)
s[image].set_scope(vdla.INP), s[acc].set_scope(vdla.ACC)
taps, start, factor = (s[s.cache_read(t, m, [r])] for t, m, r in (
    (K, vdla.WGT, acc), (bias, vdla.ACC, acc), (scale, vdla.ACC, Y)))  # fmt: skip
yo, xo, yi, xi = s[Y].tile(*s[Y].axis[1:3], 7, 28)
s[Y].reorder(yo, xo, s[Y].axis[0], yi, xi)
s[Y].bind(xo, te.thread_axis("vthread", threads=2))
s[acc].compute_at(s[Y], xo)
s[acc].reorder(ci, *s[acc].axis[:3], ky, kx, s[acc].axis[3], i)
for stage, loop, copies in (s[image], ci, 3), (taps, s[acc].axis[0], 6):
    stage.compute_at(s[acc], loop), stage.double_buffer(copies)
for stage, axis in (s[Y], -1), (s[image], -1), (start, -1), (factor, -1), (s[acc], 3), (taps, 4):
    stage.tensorize(stage.axis[axis], ins)
arrays = [rng.integers(-128, 128, t.shape, t.dtype) for t in (X, K, bias)]
arrays.append(np.full((C, 16), te.scale_word(1, 9), np.int32))  # times 2**-9
made, wanted = np.zeros((2, *Y.shape), np.int8)
run = vdla.build(s, [X, K, bias, scale, Y], "paper")(*arrays, made)
vdla.build(te.create_schedule(Y), [X, K, bias, scale, Y], "cpu")(*arrays, wanted)
assert np.array_equal(made, wanted)
print(f"{run.cycles:,} cycles, {9 * C**2 * N**2 / run.cycles:.1%} of the bound")
