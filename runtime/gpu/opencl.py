"""GPUs, and what passes for them, through OpenCL.

``VDLA_GPU`` chooses a device by a part of its name or of its platform's; without it real GPUs come
first. Oclgrind, which checks kernels and takes a thousand times as long, is taken by name alone.

Kernels are compiled without any of OpenCL's options for inexact arithmetic. That products and sums
stay apart is said in the source itself, by ``#pragma OPENCL FP_CONTRACT OFF``; divisions and roots
are rounded correctly where the device can.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vdla.runtime.errors import DeviceError
from vdla.runtime.gpu.base import (
    CHOICE,
    Array,
    Limits,
    Program,
    check_arguments,
    check_limits,
    compile_error,
    memory_error,
    missing_kernel,
    named,
    run_error,
    scratch_offsets,
)
from vdla.runtime.kernels import OPENCL, Kernels, Launch
from vdla.support.install import pip_install

CHECKER = "Oclgrind"
INSTALL = (
    "install a driver for OpenCL; without a GPU, `pip install pocl-binary-distribution` or "
    "Debian's pocl-opencl-icd runs kernels on the processor"
)
UNKNOWN = "unknown target CPU"
OLDER = "the driver's compiler was made before this processor: install a newer driver"
ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"
AS_WRITTEN = ["-cl-opt-disable"]  # a checker looks at the source's own accesses


@dataclass(frozen=True)
class OpenClGpu:
    """A device of OpenCL; ``handle`` is pyopencl's."""

    handle: Any

    @property
    def name(self) -> str:
        """The device's name and its platform's."""
        return f"{self.handle.name.strip()} ({self.handle.platform.name.strip()})"

    @property
    def limits(self) -> Limits:
        """Limits, as the driver says."""
        sides = [min(int(n), 2**31 - 1) for n in self.handle.max_work_item_sizes]
        x, y, z = (*sides, 1, 1, 1)[:3]
        return Limits(
            self.handle.max_work_group_size,
            (x, y, z),
            self.handle.local_mem_size,
            self.handle.max_mem_alloc_size,
        )

    @property
    def is_gpu(self) -> bool:
        """Whether it is one, and not a processor's."""
        return bool(self.handle.type & _pyopencl().device_type.GPU)

    @property
    def is_checker(self) -> bool:
        """Whether it only checks kernels, and says of itself that it is a GPU."""
        return CHECKER in self.name

    def load(self, kernels: Kernels, size: int) -> Program:
        """Compiles kernels and gives them memory."""
        if kernels.language != OPENCL:
            raise DeviceError(
                f"gpu {self.name}: expected kernels in OpenCL C, found {kernels.language} for "
                f"{kernels.architecture}"
            )
        offsets, end = scratch_offsets(kernels, size)
        check_limits(self.name, self.limits, kernels, end)
        return _Program(self, kernels, offsets, max(end, 1))


@dataclass
class _Program:
    """Kernels compiled for a device, over one buffer of ``size`` bytes; ``scratch`` is where each
    function's own buffers begin in it."""

    gpu: OpenClGpu
    kernels: Kernels
    scratch: dict[str, tuple[int, ...]]
    size: int

    def __post_init__(self) -> None:
        cl = _pyopencl()
        with _errors(self.gpu, self.size):
            self.context = cl.Context([self.gpu.handle])
            profiled = cl.command_queue_properties.PROFILING_ENABLE
            self.queue = cl.CommandQueue(self.context, properties=profiled)
            self.memory = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, self.size)
        self.built: dict[str, Any] = {}
        program = self.program
        for function in self.kernels.functions.values():
            for launch in function.launches:
                self.built[launch.kernel] = self._kernel(program, launch)

    @cached_property
    def program(self) -> Any:
        """The compiled source."""
        cl = _pyopencl()
        device = self.gpu.handle
        rounds = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        options = [ROUNDED] * bool(rounds) + AS_WRITTEN * self.gpu.is_checker
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                source = cl.Program(self.context, self.kernels.source)
                return source.build(options)
        except cl.Error as error:
            lines = [line for line in str(error).splitlines() if "error" in line.lower()]
            if any(UNKNOWN in line for line in lines):
                lines = [*lines[:1], OLDER]
            raise compile_error(self.gpu.name, lines or str(error).splitlines()[:1]) from None

    def _kernel(self, program: Any, launch: Launch) -> Any:
        cl = _pyopencl()
        try:
            kernel = cl.Kernel(program, launch.kernel)
        except cl.Error:
            raise missing_kernel(launch) from None
        check_arguments(launch, kernel.num_args)
        return kernel

    def upload(self, offset: int, data: Array) -> None:
        """Copies bytes to the image."""
        if data.nbytes:
            with _errors(self.gpu, self.size):
                _pyopencl().enqueue_copy(self.queue, self.memory, data, dst_offset=offset)

    def download(self, offset: int, data: Array) -> None:
        """Copies bytes of the image into ``data``."""
        if data.nbytes:
            with _errors(self.gpu, self.size):
                _pyopencl().enqueue_copy(self.queue, data, self.memory, src_offset=offset)

    def launch(self, function: str, offsets: Sequence[int]) -> Callable[[], float]:
        """Queues a function's kernels."""
        places, events = (*offsets, *self.scratch[function]), []
        with _errors(self.gpu, self.size):
            for launch in self.kernels.functions[function].launches:
                threads = [a * b for a, b in zip(launch.grid, launch.group, strict=True)]
                args = (np.uint64(places[n]) for n in launch.args)
                kernel = self.built[launch.kernel]
                events.append(kernel(self.queue, threads, list(launch.group), self.memory, *args))

        def seconds() -> float:
            with _errors(self.gpu, self.size):
                return sum(1e-9 * float(e.profile.end - e.profile.start) for e in events)

        return seconds

    def finish(self) -> None:
        """Waits until all has ended."""
        with _errors(self.gpu, self.size):
            self.queue.finish()


class _errors:
    """Turns what a driver raises into a DeviceError, beside ``size`` bytes of its memory."""

    def __init__(self, gpu: OpenClGpu, size: int) -> None:
        self.gpu, self.size = gpu, size

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        cl, name = _pyopencl(), self.gpu.name
        if isinstance(error, cl.MemoryError):
            raise memory_error(name, self.size, self.gpu.handle.global_mem_size) from None
        if isinstance(error, cl.Error):
            raise run_error(name, str(error).splitlines()[0]) from None


def find_gpu() -> OpenClGpu:
    """The device that ``VDLA_GPU`` names, or the best one.

    Raises:
        DeviceError: there is none, or none of that name.
    """
    wanted = os.environ.get(CHOICE, "")
    result = list(gpus())
    if not result:
        raise DeviceError(f"gpu: expected a device of OpenCL, found none; {INSTALL}")
    if wanted:
        return named(result, wanted)
    usable = [gpu for gpu in result if not gpu.is_checker]
    if not usable:
        raise DeviceError(
            f"gpu: expected a device of OpenCL, found {CHECKER} alone, which checks kernels; "
            f"{INSTALL}, or set {CHOICE}={CHECKER}"
        )
    return max(usable, key=lambda gpu: gpu.is_gpu)


def gpus() -> Iterator[OpenClGpu]:
    """All devices of all platforms.

    Raises:
        DeviceError: there is no pyopencl.
    """
    cl = _pyopencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # there is no platform
        return
    for platform in platforms:
        try:
            yield from map(OpenClGpu, platform.get_devices())
        except cl.Error:  # one without devices
            continue


def _pyopencl() -> Any:
    """pyopencl, which is imported when it is first needed.

    Raises:
        DeviceError: it isn't installed, or finds no OpenCL to load.
    """
    try:
        import pyopencl
    except ImportError as error:
        result = "none" if isinstance(error, ModuleNotFoundError) else str(error)
        raise DeviceError(
            f"gpu: expected pyopencl, found {result}; `{pip_install('gpu')}` installs it"
        ) from None
    return pyopencl
