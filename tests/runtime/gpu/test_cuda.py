"""NVIDIA's GPUs by CUDA's driver, which is one for tests: what is called, and what is refused.

Tests that take the fixture ``nvidia`` run on a GPU of NVIDIA's too, where there is one.
"""

from __future__ import annotations

import ctypes.util
import gc
import threading
from dataclasses import replace

import numpy as np
import pytest
from cuda_driver import KERNELS, ptx_kernels, ptx_module
from gpus import gpu_module, handle
from ptxas import check_assembles

from vdla.runtime import DeviceError, Executor, Module, ModuleError, TensorInfo
from vdla.runtime.gpu import cuda as runtime
from vdla.runtime.gpu import libcuda
from vdla.runtime.gpu.find import find_gpu
from vdla.runtime.gpu.opencl import OpenClGpu
from vdla.runtime.kernels import OPENCL, PTX, KernelFunction
from vdla.runtime.plan import Gpu

X = np.array([1, 2, 3, 4], np.float32)
NAME = "Fake 80 (CUDA)"
OUT_OF_MEMORY, NO_DEVICE, ILLEGAL_ADDRESS, UNNAMED = 2, 100, 700, 999


@pytest.fixture(params=["of the tests", "real"])
def nvidia(request):
    """A device with a driver for tests, and one of this machine's; skipped where there is none."""
    if request.param == "of the tests":
        request.getfixturevalue("cuda")
        return runtime.find_gpu()
    found, why = runtime.gpus()
    if not found:
        pytest.skip(f"no GPU of NVIDIA's: {why}")
    return found[0]


def device_error(call):
    with pytest.raises(DeviceError) as caught:
        call()
    return str(caught.value)


def module_error(call):
    with pytest.raises(ModuleError) as caught:
        call()
    return str(caught.value)


# Which device -------------------------------------------------------------------------------------


def test_the_language_chooses_the_driver(cuda, driver):
    driver([handle("fast")])
    assert find_gpu(PTX).name == NAME
    assert find_gpu(OPENCL).name == "fast (Some)"


def test_the_first_device_or_the_one_that_is_named(cuda, monkeypatch):
    assert runtime.find_gpu().name == NAME
    for wanted, name in (("fake 9", "Fake 90 (CUDA)"), ("cuda", NAME)):
        monkeypatch.setenv("VDLA_GPU", wanted)
        assert runtime.find_gpu().name == name
    monkeypatch.setenv("VDLA_GPU", "Oclgrind")
    assert device_error(runtime.find_gpu) == (
        "gpu: expected VDLA_GPU to name one of Fake 80 (CUDA), Fake 90 (CUDA), found Oclgrind"
    )


def test_no_driver(monkeypatch):
    monkeypatch.setattr(libcuda, "LIBRARY", "libnone.so.1")
    line = (
        "gpu: expected a device of CUDA, found none: no libnone.so.1, which NVIDIA's driver "
        "brings; compile the module with --gpu opencl for other GPUs"
    )
    assert device_error(runtime.find_gpu) == line
    assert device_error(lambda: Executor(ptx_module())) == line


def test_a_library_that_is_no_driver(monkeypatch):
    monkeypatch.setattr(libcuda, "LIBRARY", ctypes.util.find_library("c"))
    found, why = runtime.gpus()
    assert found == []
    assert why.startswith("a driver that lacks a function: ")
    assert why.endswith("undefined symbol: cuInit")


def test_a_driver_without_devices(cuda):
    cuda.count(0)
    assert runtime.gpus() == ([], "the driver counts no device")


@pytest.mark.parametrize(("function", "status", "why"), [
    ("cuInit", NO_DEVICE, "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"),
    ("cuInit", UNNAMED, "status 999"),
    ("cuDeviceGetCount", OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"),
])  # fmt: skip
def test_a_driver_that_does_not_start(cuda, function, status, why):
    cuda.fail(function, status)
    assert device_error(runtime.find_gpu) == (
        f"gpu: expected a device of CUDA, found none: {why}; compile the module with --gpu opencl "
        "for other GPUs"
    )


# What a device refuses ----------------------------------------------------------------------------


def test_limits_are_the_driver_s(cuda):
    gpu = runtime.find_gpu()
    assert (gpu.limits.group, gpu.limits.sides) == (1024, (1024, 512, 64))
    assert (gpu.limits.shared, gpu.limits.buffer, gpu.capability) == (49152, 1 << 20, (8, 0))
    assert device_error(lambda: gpu.load(ptx_kernels(), 2 << 20)) == (
        f"gpu {NAME}: expected a module of at most 1,048,576 bytes, found 2,097,408: out of device "
        "memory"
    )


def test_kernels_in_another_language(cuda, driver):
    gpu = runtime.find_gpu()
    assert device_error(lambda: Executor(gpu_module(), gpu=gpu)) == (
        f"gpu {NAME}: expected kernels in PTX, found opencl"
    )
    driver()
    assert device_error(lambda: Executor(ptx_module(), gpu=OpenClGpu(handle("toy")))) == (
        "gpu toy (Some): expected kernels in OpenCL C, found ptx for sm_80"
    )


ALONE = {
    "sm_80a": ", which run on sm_80 alone",
    "sm_90a": ", which run on sm_90 alone",
    "sm_80f": ", which run on sm_8x from sm_80 up",
}


@pytest.mark.parametrize(("architecture", "fits"), [
    ("sm_52", (True, True)), ("sm_80", (True, True)), ("sm_86", (False, True)),
    ("sm_90", (False, True)), ("sm_90a", (False, True)), ("sm_80a", (True, False)),
    ("sm_80f", (True, False)), ("sm_100", (False, False)), ("sm_120", (False, False)),
])  # fmt: skip
def test_kernels_for_another_architecture(cuda, architecture, fits):
    """With ``a`` for that one alone; with ``f`` for later ones of the same first number."""
    found, _ = runtime.gpus()
    for gpu, takes, own in zip(found, fits, ("sm_80", "sm_90"), strict=True):
        made = ptx_kernels(architecture=architecture)
        if takes:
            gpu.load(made, 320)
            continue
        assert device_error(lambda gpu=gpu, made=made: gpu.load(made, 320)) == (
            f"gpu {gpu.name}: expected kernels for {own} or less, found kernels for "
            f"{architecture}{ALONE.get(architecture, '')}; compile the module with --gpu {own}"
        )


def test_an_architecture_that_is_none(cuda):
    made = ptx_kernels(architecture="gfx90a")
    assert module_error(lambda: runtime.find_gpu().load(made, 320)) == (
        "module: expected kernels for an architecture as sm_80, found 'gfx90a'"
    )


def test_a_source_that_does_not_compile(cuda):
    gpu = runtime.find_gpu()
    broken = ptx_kernels(KERNELS.replace("add.rn", "bogus.rn"))
    assert device_error(lambda: gpu.load(broken, 320)) == (
        f"gpu {NAME}: expected to compile the module's kernels, found ptxas application ptx input, "
        "line 3; error   : Unknown bogus / ptxas fatal   : Ptx assembly aborted due to errors"
    )
    silent = ptx_kernels(KERNELS.replace("add.rn", "bogus.silent"))
    assert device_error(lambda: gpu.load(silent, 320)) == (
        f"gpu {NAME}: expected to compile the module's kernels, found CUDA_ERROR_INVALID_PTX: a "
        "PTX JIT compilation failed"
    )
    gc.collect()
    assert cuda.live == 0


def test_kernels_that_the_source_has_not(nvidia):
    for source, line in (
        (KERNELS.replace("twice", "thrice"), "module: expected a kernel twice in its source, "
                                             "found none"),
        (KERNELS.replace(".u64 y)", ".u64 y, .param .u64 z)"),
         "module: expected a kernel twice of 3 arguments, found one of 4"),
    ):  # fmt: skip
        assert module_error(lambda source=source: nvidia.load(ptx_kernels(source), 320)) == line


# What fails ---------------------------------------------------------------------------------------

MEMORY = (
    f"gpu {NAME}: expected 768 bytes of its memory to be free, found it has 1,048,576 in all and "
    "not as many left: out of device memory"
)
LOST = (
    f"gpu {NAME}: expected it to run, found CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access "
    "was encountered"
)


@pytest.mark.parametrize("function", ["cuMemAlloc_v2", "cuModuleLoadDataEx"])
def test_no_memory_left(cuda, function):
    cuda.fail(function, OUT_OF_MEMORY)
    assert device_error(lambda: runtime.find_gpu().load(ptx_kernels(), 512)) == MEMORY
    cuda.work()
    gc.collect()
    assert cuda.live == 0


def test_memory_that_others_took(cuda):
    gpu = runtime.find_gpu()
    first = gpu.load(ptx_kernels(), (1 << 20) - 512)
    assert device_error(lambda: gpu.load(ptx_kernels(), 512)) == MEMORY
    del first
    gc.collect()
    gpu.load(ptx_kernels(), 512)


@pytest.mark.parametrize("function", [
    "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuModuleGetFunction",
])  # fmt: skip
def test_a_device_that_is_lost_while_it_loads(cuda, function):
    cuda.fail(function, ILLEGAL_ADDRESS)
    assert device_error(lambda: runtime.find_gpu().load(ptx_kernels(), 512)) == LOST


@pytest.mark.parametrize("function", [
    "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuEventCreate", "cuEventRecord", "cuLaunchKernel",
    "cuCtxSynchronize", "cuEventElapsedTime",
])  # fmt: skip
def test_a_device_that_is_lost_while_it_runs(cuda, function):
    executor = Executor(ptx_module(), gpu=runtime.find_gpu())
    executor.run({"x": X})
    cuda.fail(function, ILLEGAL_ADDRESS)
    assert device_error(lambda: executor.run({"x": X})) == LOST


def test_a_device_that_says_nothing_of_itself(cuda):
    cuda.fail("cuDeviceGetName", ILLEGAL_ADDRESS)
    assert device_error(lambda: runtime.find_gpu().name).startswith("gpu device 10: expected it")
    cuda.fail("cuDeviceGetAttribute", ILLEGAL_ADDRESS)
    assert device_error(lambda: runtime.find_gpu().limits) == LOST
    cuda.fail("cuDeviceTotalMem_v2", ILLEGAL_ADDRESS)
    assert device_error(lambda: runtime.find_gpu().limits) == LOST


def test_a_launch_that_fails_otherwise(cuda):
    executor = Executor(ptx_module(), gpu=runtime.find_gpu())
    cuda.fail("cuLaunchKernel", 1)
    assert device_error(lambda: executor.run({"x": X})) == (
        f"gpu {NAME}: expected it to run, found CUDA_ERROR_INVALID_VALUE"
    )


# Modules that run ---------------------------------------------------------------------------------

STEPS = (
    Gpu("double", "twice", ("x", "t")),
    Gpu("again", "four", ("t", "z")),
    Gpu("plus", "more", ("z", "y")),
)


def test_steps_in_a_row(nvidia):
    executor = Executor(ptx_module(*STEPS, outputs=("y", "t")), gpu=nvidia)
    for value in (X, 3 * X):
        result = executor.run({"x": value})
        np.testing.assert_array_equal(result.outputs["t"], 2 * value)
        np.testing.assert_array_equal(result.outputs["y"], 8 * value + 1)
    names = ["x to gpu", "double", "again", "plus", "y to cpu", "t to cpu"]
    assert [step.name for step in result.steps] == names
    assert all(step.seconds >= 0 for step in result.steps)


def test_what_the_driver_is_told(cuda):
    """Grids in groups rather than in threads; no shared memory beside what the PTX declares."""
    executor = Executor(ptx_module(*STEPS, outputs=("y", "t")), gpu=runtime.find_gpu())
    result = executor.run({"x": X})
    assert cuda.launches == [
        "twice grid 2 1 1 group 2 1 1 shared 0 at 64 128",
        "twice grid 1 1 1 group 4 1 1 shared 0 at 128 512",
        "twice grid 1 1 1 group 4 1 1 shared 0 at 512 256",
        "more grid 1 1 1 group 4 1 1 shared 0 at 256 192",
    ]
    seconds = [step.seconds for step in result.steps if step.kind == "gpu"]
    assert seconds == pytest.approx([1e-3, 2e-3, 1e-3])


def test_what_is_taken_is_given_back(cuda):
    executor = Executor(ptx_module(*STEPS), gpu=runtime.find_gpu())
    for _ in range(9):
        executor.run({"x": X})
    gc.collect()
    assert cuda.live == 2  # the module and its memory
    del executor
    gc.collect()
    assert cuda.live == 0


def test_what_is_current_stays_so(cuda):
    """Whoever else uses CUDA in the process has a current context, too."""
    executor = Executor(ptx_module(*STEPS), gpu=runtime.find_gpu())
    executor.run({"x": X})
    assert cuda.depth == 0
    cuda.fail("cuCtxSynchronize", ILLEGAL_ADDRESS)
    with pytest.raises(DeviceError):
        executor.run({"x": X})
    assert cuda.depth == 0
    cuda.fail("cuCtxPushCurrent_v2", ILLEGAL_ADDRESS)
    del executor  # a lost device takes nothing back
    gc.collect()
    assert (cuda.depth, cuda.live > 0) == (0, True)


def test_threads_each_have_the_device(nvidia):
    """A driver has a context for each thread."""
    executor = Executor(ptx_module(*STEPS), gpu=nvidia)
    found = []
    threads = [
        threading.Thread(target=lambda n=n: found.append((n, executor.run({"x": n * X}))))
        for n in range(1, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for n, result in found:
        np.testing.assert_array_equal(result.outputs["y"], 8 * n * X + 1)


def test_constants_and_tensors_of_no_bytes(nvidia):
    module = ptx_module(Gpu("double", "twice", ("w", "y")))
    module = replace(module, constants=(5 * X).tobytes() + bytes(48))
    np.testing.assert_array_equal(Executor(module, gpu=nvidia).run({"x": X}).outputs["y"], 10 * X)
    empty = TensorInfo((0,), "float32", 0)
    module = ptx_module(kernels=ptx_kernels(none=KernelFunction((0, 0), (), ())))
    module.tensors.update(x=empty, y=empty)
    module.steps = (Gpu("nothing", "none", ("x", "y")),)
    assert Executor(module, gpu=nvidia).run({"x": X[:0]}).outputs["y"].shape == (0,)


def test_through_a_file(cuda, tmp_path):
    module = ptx_module(*STEPS)
    module.save(tmp_path / "m.vdla")
    loaded = Module.load(tmp_path / "m.vdla")
    assert loaded == module
    np.testing.assert_array_equal(Executor(loaded).run({"x": X}).outputs["y"], 8 * X + 1)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
def test_the_kernels_of_these_tests_assemble(architecture, tmp_path):
    check_assembles(KERNELS, architecture, tmp_path)
