"""Kernels on whatever device of OpenCL there is: what schedules gain, and what the printer costs.

    python benchmarks/gpu.py [--size 512] [--rounds 9] [--json]

A product of matrices of float32, timed in turns on one device:

    naive           a thread for each sum, which reads global memory alone
    tiled           tiles in shared memory, parts of them in registers: by schedule primitives alone
    ahead           the same with double buffers
    hand-written    the tiled kernel as one writes it in OpenCL C

and how many elements each of them loads from global memory. ``VDLA_GPU`` chooses the device; the
name that is printed says whether it is a GPU. Where PyTorch finds a GPU, its product is timed, too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import vdla
from vdla import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.gpu.count import global_loads
from vdla.compiler.targets.gpu.passes import to_kernels
from vdla.runtime.gpu.opencl import find_gpu
from vdla.runtime.kernels import OPENCL, KernelFunction, Kernels, Launch

TILE, PART, DEPTH = 64, 8, 16
HAND_WRITTEN = """
#define N {size}
#define TILE {tile}
#define PART {part}
#define DEPTH {depth}
#define SIDE (TILE / PART)

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void product(__global uchar *memory, const ulong at0, const ulong at1, const ulong at2)
{{
    __global const float *a = (__global const float *)(memory + at0);
    __global const float *b = (__global const float *)(memory + at1);
    __global float *c = (__global float *)(memory + at2);
    __local float left[TILE][DEPTH], right[DEPTH][TILE];
    const int tx = get_local_id(0), ty = get_local_id(1), t = ty * SIDE + tx;
    const int row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    float sums[PART][PART];
    for (int y = 0; y < PART; ++y)
        for (int x = 0; x < PART; ++x) sums[y][x] = 0.0f;
    for (int k = 0; k < N; k += DEPTH) {{
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = t; i < TILE * DEPTH; i += SIDE * SIDE) {{
            left[i / DEPTH][i % DEPTH] = a[(row + i / DEPTH) * N + k + i % DEPTH];
            right[i / TILE][i % TILE] = b[(k + i / TILE) * N + column + i % TILE];
        }}
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int l = 0; l < DEPTH; ++l)
            for (int y = 0; y < PART; ++y)
                for (int x = 0; x < PART; ++x)
                    sums[y][x] += left[ty * PART + y][l] * right[l][tx * PART + x];
    }}
    for (int y = 0; y < PART; ++y)
        for (int x = 0; x < PART; ++x)
            c[(row + ty * PART + y) * N + column + tx * PART + x] = sums[y][x];
}}
"""


def expression(size: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Two matrices and their product."""
    a, b = (te.placeholder((size, size), "float32", name) for name in "AB")
    k = te.reduce_axis((0, size), "k")
    return a, b, te.compute((size, size), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), "C")


def bind(stage, **loops) -> None:
    """Binds loops of a stage to the tags that name them."""
    for tag, loop in loops.items():
        stage.bind(loop, te.thread_axis(tag.replace("_", ".")))


def naive(size: int) -> Schedule:
    """A thread for each sum."""
    _, _, c = expression(size)
    s = te.create_schedule(c)
    sums = s.cache_write(c, "local")
    by, bx, ty, tx = s[c].tile(*s[c].axis, 16, 16)
    bind(s[c], blockIdx_y=by, blockIdx_x=bx, threadIdx_y=ty, threadIdx_x=tx)
    s[sums].compute_at(s[c], tx)
    return s


def tiled(size: int, ahead: bool = False) -> Schedule:
    """Tiles that a group loads together."""
    a, b, c = expression(size)
    s = te.create_schedule(c)
    sums = s.cache_write(c, "local")
    factors = [s.cache_read(each, "shared", [sums]) for each in (a, b)]
    by, bx, y, x = s[c].tile(*s[c].axis, TILE, TILE)
    ty, tx, y, x = s[c].tile(y, x, PART, PART)
    bind(s[c], blockIdx_y=by, blockIdx_x=bx, threadIdx_y=ty, threadIdx_x=tx)
    s[sums].compute_at(s[c], tx)
    ko, ki = s[sums].split(s[sums].reduce_axis[0], factor=DEPTH)
    s[sums].reorder(ko, ki, *s[sums].axis)
    for factor in map(s.__getitem__, factors):
        factor.compute_at(s[sums], ko)
        if ahead:
            factor.double_buffer()
        fused, tx = factor.split(factor.fuse(*factor.axis), factor=TILE // PART)
        _, ty = factor.split(fused, factor=TILE // PART)
        bind(factor, threadIdx_y=ty, threadIdx_x=tx)
    return s


def hand_written(size: int) -> Callable[..., float]:
    """The tiled kernel written by hand, as something that takes arrays and gives its seconds."""
    source = HAND_WRITTEN.format(size=size, tile=TILE, part=PART, depth=DEPTH)
    side, groups, count = TILE // PART, size // TILE, 4 * size * size
    launch = Launch("product", (groups, groups, 1), (side, side, 1), (0, 1, 2), 8 * TILE * DEPTH)
    function = KernelFunction((count,) * 3, (), (launch,))
    offsets = [0, count, 2 * count]
    program = find_gpu().load(Kernels(OPENCL, "", source, {"product": function}), 3 * count)

    def run(*arrays: np.ndarray) -> float:
        for offset, array in zip(offsets, arrays, strict=True):
            program.upload(offset, array)
        seconds = program.launch("product", offsets)
        program.finish()
        program.download(offsets[2], arrays[2])
        return seconds()

    return run


def built(s: Schedule) -> Callable[..., float]:
    """A schedule, as something that takes arrays and gives its kernels' seconds."""
    kernel = vdla.build(s, target="gpu")
    return lambda *arrays: kernel(*arrays).seconds


def torch_product(size: int) -> Callable[..., float] | None:
    """PyTorch's product on its GPU; None where there is none."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
        x, y = (torch.from_numpy(each).cuda() for each in (a, b))
        torch.cuda.synchronize()
        began = time.perf_counter()
        product = x @ y
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        c[...] = product.cpu().numpy()
        return seconds

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=512, help=f"a multiple of {TILE}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    size = options.size
    schedules = {"naive": naive(size), "tiled": tiled(size), "ahead": tiled(size, ahead=True)}
    runs = {name: built(s) for name, s in schedules.items()} | {"hand-written": hand_written(size)}
    if peer := torch_product(size):
        runs["PyTorch"] = peer
    counts = {name: global_loads(to_kernels(s.mod)) for name, s in schedules.items()}
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float32) for _ in "ab")
    wanted, seconds = a @ b, {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            c = np.zeros((size, size), np.float32)
            seconds[name].append(run(a, b, c))
            assert np.abs(c - wanted).max() < 1e-5 * size, name
    best = {name: median(times) for name, times in seconds.items()}
    result = {
        "device": find_gpu().name,
        "naive over tiled": best["naive"] / best["tiled"],
        "tiled over hand-written": best["tiled"] / best["hand-written"],
        "naive loads over tiled loads": counts["naive"] / counts["tiled"],
        "milliseconds": {name: 1e3 * value for name, value in best.items()},
        "loads": counts,
    }
    if options.json:
        print(json.dumps(result))
        return
    print(f"product of {size} on {result['device']}, medians of {options.rounds}")
    for name, value in best.items():
        loads = f"{counts[name]:>14,} loads" if name in counts else ""
        print(f"  {name:14} {1e3 * value:8.2f} ms {loads}")
    for name in ("naive over tiled", "tiled over hand-written", "naive loads over tiled loads"):
        print(f"{name}: {result[name]:.2f}")


if __name__ == "__main__":
    main()
