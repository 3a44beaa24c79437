"""Tensor cores' instructions: what lanes bring and get, and that PTX has them."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from tests.support.host_kernels import run_on_host
from tests.support.kernels import on_tensor_cores
from tests.support.ptxas import check_assembles
from vdla import te
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.description import ANY, Gpu
from vdla.compiler.targets.gpu.lower import kernels_of, lower_function
from vdla.compiler.targets.gpu.mma import mma_f16, mma_s8
from vdla.compiler.tir.interp import run
from vdla.runtime.kernels import PTX

RNG = np.random.default_rng(5)
INTRINSICS = {"mma_f16": mma_f16, "mma_s8": mma_s8}
NAMES = {
    "mma_f16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma_s8": "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
}


def text(s, architecture="sm_80"):
    gpu = Gpu(language=PTX, architecture=architecture)
    return kernels_of([lower_function(s.mod, gpu)], gpu).source


def arrays_of(s):
    """Factors whose sums floats hold exactly."""
    return [RNG.integers(-8, 8, p.shape).astype(p.dtype) for p in s.mod.params]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("name", INTRINSICS)
def test_ptx_has_the_instruction(name, architecture, tmp_path):
    source = text(on_tensor_cores(INTRINSICS[name], depth=256), architecture)
    check_assembles(source, architecture, tmp_path)
    assert NAMES[name] in source
    assert "ld.shared.b32" in source  # a register of a row at once
    assert ".local" not in source


@pytest.mark.parametrize("name", INTRINSICS)
def test_the_loops_that_it_stands_for_are_the_product(name):
    s = on_tensor_cores(INTRINSICS[name])
    arrays = arrays_of(s)
    wanted = [a.copy() for a in arrays]
    run(s.mod, wanted)
    a, b, _ = (x.astype(np.int64) for x in wanted)
    np.testing.assert_array_equal(wanted[2], a @ b)
    run_on_host(s.mod, arrays)
    np.testing.assert_array_equal(arrays[2], wanted[2])


@pytest.mark.parametrize("name", INTRINSICS)
def test_opencl_does_the_loops(name):
    pytest.importorskip("pyopencl", reason="pip install 'vdla[gpu]'")
    s = on_tensor_cores(INTRINSICS[name])
    arrays = arrays_of(s)
    wanted = [a.copy() for a in arrays]
    run(s.mod, wanted)
    vdla.build(s, target="gpu")(*arrays)
    np.testing.assert_array_equal(arrays[2], wanted[2])


def test_a_warp_has_32_threads():
    s = warp_copy(threads=16)
    with pytest.raises(NoCodeError) as error:
        lower_function(s.mod, ANY)
    assert str(error.value) == (
        "main: expected C_warp in scope warp to be [16, 8] of 32 threads along x"
    )


def test_a_warps_elements_are_read_by_rows_and_columns():
    s = warp_copy(split=True)
    with pytest.raises(NoCodeError) as error:
        lower_function(s.mod, ANY)
    assert str(error.value) == (
        "main: expected C_warp in scope warp to be read by loops over its rows and columns"
    )


def warp_copy(threads=32, split=False):
    """A product on tensor cores whose factors are loaded by some threads."""
    a = te.placeholder((16, 16), "float16", "A")
    b = te.placeholder((16, 8), "float16", "B")
    k = te.reduce_axis((0, 16), "k")

    def product(y, x):
        return te.sum(a[y, k].astype("float32") * b[k, x].astype("float32"), axis=k)

    s = te.create_schedule(te.compute((16, 8), product, "C"))
    sums = s.cache_write("C", "warp")
    factors = [s.cache_read(each, "shared", [sums]) for each in (a, b)]
    one, y = s["C"].split(s["C"].axis[0], factor=16)
    s["C"].bind(one, te.thread_axis("blockIdx.x"))
    s[sums].compute_at(s["C"], one)
    if split:
        s["C"].split(y, factor=4)
    for stage in map(s.__getitem__, factors):
        stage.compute_at(s["C"], one)
        _, tx = stage.split(stage.fuse(*stage.axis), factor=threads)
        stage.bind(tx, te.thread_axis("threadIdx.x"))
    s[sums].tensorize(s[sums].axis[0], mma_f16)
    return s
