"""Which GPU takes a module's kernels: by their language, and by ``VDLA_GPU``."""

from __future__ import annotations

from vdla.runtime.gpu import cuda, opencl
from vdla.runtime.gpu.base import Gpu
from vdla.runtime.kernels import PTX


def find_gpu(language: str) -> Gpu:
    """The device that ``VDLA_GPU`` names, or the best one, of those that take a language: CUDA's
    take PTX, OpenCL's OpenCL C.

    Raises:
        DeviceError: there is none, or none of that name.
    """
    return cuda.find_gpu() if language == PTX else opencl.find_gpu()
