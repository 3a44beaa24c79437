"""Modules of kernels written by hand, and GPUs that aren't there."""

from __future__ import annotations

from types import SimpleNamespace

from vdla.runtime import Module, TensorInfo
from vdla.runtime.kernels import OPENCL, KernelFunction, Kernels, Launch
from vdla.runtime.plan import Gpu

# y[i] = 2 * x[i] of floats; y[i] = x[i] + 1, by way of memory that a group shares; both of four.
SOURCE = """
#pragma OPENCL FP_CONTRACT OFF
__kernel void twice(__global uchar* memory, ulong x, ulong y) {
  size_t i = get_global_id(0);
  ((__global float*)(memory + y))[i] = 2.0f * ((__global float*)(memory + x))[i];
}
__kernel void more(__global uchar* memory, ulong x, ulong y) {
  __local float shared[4];
  size_t i = get_local_id(0);
  shared[3 - i] = ((__global float*)(memory + x))[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  ((__global float*)(memory + y))[i] = shared[3 - i] + 1.0f;
}
"""
ONE, FOUR = (1, 1, 1), (4, 1, 1)
TWICE, MORE = (
    Launch("twice", (2, 1, 1), (2, 1, 1), (0, 1), 0),
    Launch("more", ONE, FOUR, (0, 1), 16),
)
AGAIN = (Launch("twice", ONE, FOUR, (0, 2), 0), Launch("twice", ONE, FOUR, (2, 1), 0))
FUNCTIONS = {
    "twice": KernelFunction((16, 16), (), (TWICE,)),
    "more": KernelFunction((16, 16), (), (MORE,)),
    "four": KernelFunction((16, 16), (16,), AGAIN),  # by way of a buffer of its own
}


def kernels(source=SOURCE, **functions):
    return Kernels(OPENCL, "", source, functions or FUNCTIONS)


def gpu_module(*steps, outputs=("y",), **changes):
    """Tensors w, a constant, and x, t, y, z, each of four floats; x is the input."""
    names = ("w", "x", "t", "y", "z")
    values = {
        "tensors": {n: TensorInfo((4,), "float32", 64 * at) for at, n in enumerate(names)},
        "inputs": ["x"],
        "outputs": list(outputs),
        "dram_bytes": 64 * len(names),
        "steps": steps or (Gpu("double", "twice", ("x", "y")),),
        "kernels": kernels(),
    }
    return Module(**{**values, **changes})


class Error(Exception):
    """Of a driver."""


class RuntimeError_(Error):
    """A device that went away."""


class MemoryError_(Error):
    """A device without memory left."""


class Driver:
    """A pyopencl of some platforms: lists of devices, or an error instead of one."""

    Error, RuntimeError, MemoryError = Error, RuntimeError_, MemoryError_
    device_type = SimpleNamespace(GPU=4, CPU=2)

    def __init__(self, *platforms):
        self.platforms = platforms

    def get_platforms(self):
        if not self.platforms:
            raise Error("PLATFORM_NOT_FOUND_KHR")
        return [SimpleNamespace(get_devices=lambda p=p: self.devices(p)) for p in self.platforms]

    def devices(self, platform):
        if isinstance(platform, Error):
            raise platform
        return platform


def handle(name, platform="Some", kind=4, **changes):
    """A device as pyopencl has it."""
    values = {
        "name": name,
        "platform": SimpleNamespace(name=platform),
        "type": kind,
        "max_work_item_sizes": [64, 32, 16],
        "max_work_group_size": 128,
        "local_mem_size": 1024,
        "max_mem_alloc_size": 4096,
        "global_mem_size": 8192,
    }
    return SimpleNamespace(**{**values, **changes})
