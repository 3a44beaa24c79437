"""A driver of CUDA's that isn't one, as a library in C; and kernels in PTX by hand."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from gpus import FUNCTIONS, gpu_module

from vdla.runtime.kernels import PTX, Kernels

SOURCE = Path(__file__).with_name("fake_cuda.c")
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")

# The kernels of ``gpus.SOURCE``: y[i] = 2 * x[i]; y[i] = x[i] + 1, by way of shared memory.
KERNELS = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 memory, .param .u64 x, .param .u64 y)
{
  .reg .b32 %r<4>; .reg .b64 %d<7>; .reg .f32 %f<2>;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  mul.wide.u32 %d0, %r3, 4;
  ld.param.u64 %d1, [memory]; ld.param.u64 %d2, [x]; ld.param.u64 %d3, [y];
  cvta.to.global.u64 %d1, %d1;
  add.u64 %d4, %d1, %d0;
  add.u64 %d5, %d4, %d2; add.u64 %d6, %d4, %d3;
  ld.global.f32 %f0, [%d5];
  add.rn.f32 %f1, %f0, %f0;
  st.global.f32 [%d6], %f1;
  ret;
}
.visible .entry more(.param .u64 memory, .param .u64 x, .param .u64 y)
{
  .reg .b32 %r<5>; .reg .b64 %d<7>; .reg .f32 %f<3>;
  .shared .align 4 .b8 shared[16];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d0, %r0, 4;
  ld.param.u64 %d1, [memory]; ld.param.u64 %d2, [x]; ld.param.u64 %d3, [y];
  cvta.to.global.u64 %d1, %d1;
  add.u64 %d4, %d1, %d0;
  add.u64 %d5, %d4, %d2; add.u64 %d6, %d4, %d3;
  ld.global.f32 %f0, [%d5];
  mov.u32 %r1, shared;
  shl.b32 %r2, %r0, 2;
  sub.s32 %r3, 12, %r2;
  add.s32 %r4, %r1, %r3;
  st.shared.f32 [%r4], %f0;
  bar.sync 0;
  ld.shared.f32 %f1, [%r4];
  add.rn.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%d6], %f2;
  ret;
}
"""


def ptx_kernels(source: str = KERNELS, architecture: str = "sm_80", **functions) -> Kernels:
    """Kernels in PTX."""
    return Kernels(PTX, architecture, source, functions or FUNCTIONS)


def ptx_module(*steps, **changes):
    """``gpus.gpu_module`` with kernels in PTX."""
    return gpu_module(*steps, **{"kernels": ptx_kernels(), **changes})


@cache
def header() -> Path | None:
    """The folder of NVIDIA's cuda.h, where one of its packages is installed."""
    for package in metadata.distributions():
        if (package.metadata["Name"] or "").startswith("nvidia-cuda-runtime"):
            for file in package.files or ():
                if file.name == "cuda.h":
                    return Path(str(package.locate_file(file))).parent
    return None


class FakeCuda:
    """A driver in a library of its own, so each has its own state."""

    def __init__(self, compiled: Path, folder: Path) -> None:
        self.path = str(shutil.copy(compiled, folder / "libcuda.so.1"))
        self.library = ctypes.CDLL(self.path)
        self.library.fake_records.restype = ctypes.c_char_p

    def fail(self, function: str, status: int) -> None:
        """From now on a function returns a status, and does nothing."""
        self.library.fake_fail(function.encode(), status)

    def work(self) -> None:
        """From now on no function fails."""
        self.library.fake_fail(b"", 0)

    def count(self, devices: int) -> None:
        """How many devices there are; two if nobody says."""
        self.library.fake_devices(devices)

    @property
    def launches(self) -> list[str]:
        """What was launched, a line for each."""
        return self.library.fake_records().decode().splitlines()

    @property
    def depth(self) -> int:
        """How many contexts this thread has on its stack."""
        return self.library.fake_depth()

    @property
    def live(self) -> int:
        """How many modules, events and buffers nobody has given back."""
        return self.library.fake_live()


def compile_fake(folder: Path) -> Path:
    """The library; skips the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: apt-get install gcc")
    target = folder / "fake_cuda.so"
    include = [f"-I{found}"] if (found := header()) else []
    subprocess.run([compiler, *FLAGS, *include, str(SOURCE), "-o", str(target)], check=True)
    return target
