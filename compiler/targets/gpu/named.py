"""The GPU that a name stands for: what its kernels are made of."""

from __future__ import annotations

from vdla.compiler.targets.gpu.codegen.ptx import check_architecture
from vdla.compiler.targets.gpu.description import ANY, Gpu
from vdla.runtime.kernels import OPENCL, PTX

PREFIX = "sm_"  # of the names of NVIDIA's architectures


def named_gpu(name: str) -> Gpu:
    """Any GPU by OpenCL C, for "opencl"; or NVIDIA's by PTX, for an architecture as "sm_80".

    Raises:
        TargetError: there is no such architecture, or LLVM doesn't know it.
    """
    if name == OPENCL:
        return ANY
    check_architecture(name)
    return Gpu(language=PTX, architecture=name)
