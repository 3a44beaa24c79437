"""Schedules for a GPU, small enough to be looked at thread by thread."""

from __future__ import annotations

from collections.abc import Callable

from vdla import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.gpu.operators.plain import schedule_plain
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir.intrin import TensorIntrin


def bound(stage, **loops):
    """Binds loops of a stage, given by their tags with an underscore for the dot."""
    for tag, loop in loops.items():
        stage.bind(loop, te.thread_axis(tag.replace("_", ".")))


def naive(size: int = 64, group: int = 16) -> Schedule:
    """A product of matrices, each sum by a thread that reads global memory alone."""
    a, b = (te.placeholder((size, size), "float32", name) for name in "AB")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), "C")
    s = te.create_schedule(c)
    by, bx, ty, tx = s[c].tile(*s[c].axis, group, group)
    bound(s[c], blockIdx_y=by, blockIdx_x=bx, threadIdx_y=ty, threadIdx_x=tx)
    return s


def tiled(
    size: int = 64, tile: int = 32, part: int = 2, depth: int = 16, *,
    ahead: bool = False, unroll: bool = False, vthread: bool = False, dtype: str = "float32",
) -> Schedule:  # fmt: skip
    """A product of matrices in tiles that a group loads together into shared memory."""
    a, b = (te.placeholder((size, size), dtype, name) for name in "AB")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), "C")
    s = te.create_schedule(c)
    sums = s.cache_write(c, "local")
    left, right = s.cache_read(a, "shared", [sums]), s.cache_read(b, "shared", [sums])
    by, bx, yi, xi = s[c].tile(*s[c].axis, tile, tile)
    ty, tx, yi, xi = s[c].tile(yi, xi, part, part)
    bound(s[c], blockIdx_y=by, blockIdx_x=bx, threadIdx_y=ty, threadIdx_x=tx)
    s[sums].compute_at(s[c], tx)
    y, x = s[sums].axis
    ko, ki = s[sums].split(s[sums].reduce_axis[0], factor=depth)
    s[sums].reorder(ko, ki, y, x)
    if unroll:
        s[sums].unroll(y)
        s[sums].unroll(x)
    for factor in (left, right):
        stage = s[factor]
        stage.compute_at(s[sums], ko)
        if ahead:
            stage.double_buffer()
        fused, tx = stage.split(stage.fuse(*stage.axis), factor=tile // part)
        _, ty = stage.split(fused, factor=tile // part)
        bound(stage, threadIdx_y=ty, threadIdx_x=tx)
    return s


def strided(size: int = 32, tile: int = 16, threads: int = 4, depth: int = 8) -> Schedule:
    """A product of matrices whose threads have parts that lie apart, as virtual threads."""
    a, b = (te.placeholder((size, size), "float32", name) for name in "AB")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), "C")
    s = te.create_schedule(c)
    sums = s.cache_write(c, "local")
    factors = [s.cache_read(each, "shared", [sums]) for each in (a, b)]
    y, x = s[c].axis
    (by, y), (bx, x) = s[c].split(y, factor=tile), s[c].split(x, factor=tile)
    (vy, ty), (vx, tx) = s[c].split(y, factor=threads), s[c].split(x, factor=threads)
    s[c].reorder(by, bx, vy, vx, ty, tx)
    for loop in (vy, vx):
        s[c].bind(loop, te.thread_axis("vthread"))
    bound(s[c], blockIdx_y=by, blockIdx_x=bx, threadIdx_y=ty, threadIdx_x=tx)
    s[sums].compute_at(s[c], tx)
    ko, ki = s[sums].split(s[sums].reduce_axis[0], factor=depth)
    s[sums].reorder(ko, ki, *s[sums].axis)
    for stage in map(s.__getitem__, factors):
        stage.compute_at(s[sums], ko)
        fused, tx = stage.split(stage.fuse(*stage.axis), factor=threads)
        _, ty = stage.split(fused, factor=threads)
        bound(stage, threadIdx_y=ty, threadIdx_x=tx)
    return s


def softmax(rows: int = 3, size: int = 300) -> Schedule:
    """Rows of a softmax: three reductions in trees, and what lies between them in shared memory."""
    x = te.placeholder((rows, size), "float32", "X")
    r, k = te.reduce_axis((0, size), "r"), te.reduce_axis((0, size), "k")
    top = te.compute((rows,), lambda n: te.max(x[n, r], axis=r), "top")
    e = te.compute((rows, size), lambda n, i: te.exp(x[n, i] - top[n]), "e")
    total = te.compute((rows,), lambda n: te.sum(e[n, k], axis=k), "total")
    out = te.compute((rows, size), lambda n, i: e[n, i] / total[n], "out")
    return plain(out)


def row_sums(rows: int = 4, size: int = 500) -> Schedule:
    """Long sums, each by a group of threads."""
    x = te.placeholder((rows, size), "float32", "X")
    k = te.reduce_axis((0, size), "k")
    return plain(te.compute((rows,), lambda n: te.sum(x[n, k], axis=k), "out"))


def window(size: int = 20) -> Schedule:
    """The greatest of three neighbours, of a tensor that is computed in shared memory."""
    x = te.placeholder((size + 2,), "float32", "X")
    y = te.compute((size + 2,), lambda i: x[i] * 2.0, "Y")
    r = te.reduce_axis((0, 3), "r")
    z = te.compute((size,), lambda i: te.max(y[i + r], axis=r), "Z")
    s = te.create_schedule(z)
    outer, inner = s[z].split(s[z].axis[0], factor=8)
    bound(s[z], blockIdx_x=outer, threadIdx_x=inner)
    s[y].set_scope("shared")
    s[y].compute_at(s[z], inner)
    bound(s[y], threadIdx_x=s[y].axis[0])
    return s


def plain(out: Tensor) -> Schedule:
    """A tensor as the GPU schedules what has no template."""
    s = te.create_schedule(out)
    schedule_plain(s, out)
    return s


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "naive": lambda: naive(16, 4),
    "tiled": lambda: tiled(16, 8, 2, 4),
    "tiled ahead": lambda: tiled(16, 8, 2, 4, ahead=True),
    "tiled ahead in two steps": lambda: tiled(8, 8, 2, 4, ahead=True),
    "virtual threads": strided,
    "softmax": softmax,
    "row sums": row_sums,
    "window": window,
}


def on_tensor_cores(
    intrin: TensorIntrin, rows: int = 32, columns: int = 16, depth: int = 64
) -> Schedule:
    """A product of matrices by a tensor core's instruction; a warp has each tile of the result."""
    dtype, total = intrin.operands[1].dtype, intrin.output.dtype
    a = te.placeholder((rows, depth), dtype, "A")
    b = te.placeholder((depth, columns), dtype, "B")
    k = te.reduce_axis((0, depth), "k")

    def product(y, x):
        return te.sum(a[y, k].astype(total) * b[k, x].astype(total), axis=k)

    c = te.compute((rows, columns), product, "C")
    s = te.create_schedule(c)
    sums = s.cache_write(c, "warp")
    factors = s.cache_read(a, "shared", [sums]), s.cache_read(b, "shared", [sums])
    by, bx, _, _ = s[c].tile(*s[c].axis, 16, 8)
    bound(s[c], blockIdx_y=by, blockIdx_x=bx)
    s[sums].compute_at(s[c], bx)
    ko, ki = s[sums].split(s[sums].reduce_axis[0], factor=intrin.operands[1].shape[1])
    s[sums].reorder(ko, *s[sums].axis, ki)
    for stage in map(s.__getitem__, factors):
        stage.compute_at(s[sums], ko)
        _, tx = stage.split(stage.fuse(*stage.axis), factor=32)
        bound(stage, threadIdx_x=tx)
    s[sums].tensorize(s[sums].axis[0], intrin)
    return s
