"""NVIDIA's GPUs through CUDA's driver, for kernels in PTX.

``VDLA_GPU`` chooses a device by a part of its name; without it the driver's first one is taken.
Nothing of CUDA's toolkit is needed: the driver compiles the module's PTX for its device.

This was written from NVIDIA's documents and tested against a driver of the tests' own; it was never
run on a GPU of NVIDIA's.
"""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import c_float, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cached_property

from vdla.runtime.errors import DeviceError, ModuleError
from vdla.runtime.gpu import libcuda
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
from vdla.runtime.gpu.libcuda import CudaError, LibCuda
from vdla.runtime.kernels import PTX, Kernels, Launch

OTHERWISE = "compile the module with --gpu opencl for other GPUs"
NAME_BYTES, LOG_BYTES = 256, 8192
ARCHITECTURE = re.compile(r"sm_(\d+)(\d)([af]?)")


@dataclass(frozen=True)
class CudaGpu:
    """A device of CUDA's, by its number."""

    driver: LibCuda
    device: int

    @cached_property
    def name(self) -> str:
        """The device's name, with CUDA behind it."""
        text = ctypes.create_string_buffer(NAME_BYTES)
        with _errors(f"device {self.device}"):
            self.driver.call("cuDeviceGetName", text, NAME_BYTES, self.device)
        return f"{text.value.decode(errors='replace').strip()} (CUDA)"

    @cached_property
    def limits(self) -> Limits:
        """Limits, as the driver says."""
        x, y, z = map(self._attribute, libcuda.MAX_SIDES)
        group, shared = map(self._attribute, (libcuda.MAX_THREADS, libcuda.MAX_SHARED))
        return Limits(group, (x, y, z), shared, self.memory)

    @cached_property
    def memory(self) -> int:
        """All bytes of its memory."""
        with _errors(self.name):
            return int(self.driver.number("cuDeviceTotalMem_v2", c_size_t, self.device))

    @cached_property
    def capability(self) -> tuple[int, int]:
        """The device's compute capability: (8, 0) for sm_80."""
        major, minor = map(self._attribute, libcuda.CAPABILITY)
        return major, minor

    @property
    def architecture(self) -> str:
        """Architecture that PTX is made for, as ``sm_80``."""
        return "sm_{}{}".format(*self.capability)

    @cached_property
    def context(self) -> int:
        """The device's one context of this process, which stays as long as the process."""
        with _errors(self.name):
            return int(self.driver.number("cuDevicePrimaryCtxRetain", c_void_p, self.device))

    def load(self, kernels: Kernels, size: int) -> Program:
        """Has the driver compile kernels, and gives them memory."""
        if kernels.language != PTX:
            raise DeviceError(f"gpu {self.name}: expected kernels in PTX, found {kernels.language}")
        self._check_architecture(kernels.architecture)
        offsets, end = scratch_offsets(kernels, size)
        check_limits(self.name, self.limits, kernels, end)
        return _Program(self, kernels, offsets, max(end, 1))

    @contextmanager
    def current(self) -> Iterator[None]:
        """Has this Python thread's calls meant for the device, and leaves to others in the process
        the one that they had."""
        self.driver.call("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            self.driver.try_call("cuCtxPopCurrent_v2", ctypes.byref(c_void_p()))

    def _attribute(self, number: int) -> int:
        with _errors(self.name):
            return int(self.driver.number("cuDeviceGetAttribute", c_int, number, self.device))

    def _check_architecture(self, architecture: str) -> None:
        """Raises DeviceError where PTX for an architecture doesn't run on the device."""
        parts = ARCHITECTURE.fullmatch(architecture)
        if parts is None:
            raise ModuleError(
                f"module: expected kernels for an architecture as sm_80, found {architecture!r}"
            )
        wanted, suffix = (int(parts[1]), int(parts[2])), parts[3]
        own = self.capability
        fits = {"": own >= wanted, "a": own == wanted, "f": wanted <= own < (wanted[0] + 1, 0)}
        if not fits[suffix]:
            most, least = self.architecture, architecture.rstrip("af")
            where = {"": "", "a": f", which run on {least} alone",
                     "f": f", which run on sm_{parts[1]}x from {least} up"}  # fmt: skip
            raise DeviceError(
                f"gpu {self.name}: expected kernels for {most} or less, found kernels for "
                f"{architecture}{where[suffix]}; compile the module with --gpu {most}"
            )


@dataclass
class _Program:
    """Kernels compiled for a device, over ``size`` bytes of its memory; ``scratch`` is where each
    function's own buffers begin in it."""

    gpu: CudaGpu
    kernels: Kernels
    scratch: dict[str, tuple[int, ...]]
    size: int

    def __post_init__(self) -> None:
        driver = self.driver = self.gpu.driver
        launches = [x for each in self.kernels.functions.values() for x in each.launches]
        for launch in launches:
            _check_entry(self.kernels.source, launch)
        with self.errors():
            self.module = self._compiled()
            _give_back(self, self.gpu, "cuModuleUnload", self.module)
            self.built = {launch.kernel: self._kernel(launch) for launch in launches}
            self.memory: int = driver.number("cuMemAlloc_v2", c_uint64, self.size)
            _give_back(self, self.gpu, "cuMemFree_v2", self.memory)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Has calls meant for the device, and what they raise as a DeviceError."""
        with _errors(self.gpu.name, self), self.gpu.current():
            yield

    def _compiled(self) -> int:
        """The module, which the driver compiles; its complaint is a DeviceError."""
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 2)(libcuda.LOG, libcuda.LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        source = self.kernels.source.encode()
        try:
            result = self.driver.number("cuModuleLoadDataEx", c_void_p, source, 2, options, values)
        except CudaError as error:
            if error.status == libcuda.OUT_OF_MEMORY:
                raise
            said = log.value.decode(errors="replace").splitlines()
            lines = [line.strip() for line in said if line.strip()]
            raise compile_error(self.gpu.name, lines or [str(error)]) from None
        return int(result)

    def _kernel(self, launch: Launch) -> int:
        name = launch.kernel.encode()
        try:
            return int(self.driver.number("cuModuleGetFunction", c_void_p, self.module, name))
        except CudaError as error:
            if error.status != libcuda.NOT_FOUND:
                raise
            raise missing_kernel(launch) from None

    def upload(self, offset: int, data: Array) -> None:
        """Copies bytes to the image."""
        if data.nbytes:
            with self.errors():
                place = self.memory + offset
                self.driver.call("cuMemcpyHtoD_v2", place, data.ctypes.data, data.nbytes)

    def download(self, offset: int, data: Array) -> None:
        """Copies bytes of the image into ``data``."""
        if data.nbytes:
            with self.errors():
                place = self.memory + offset
                self.driver.call("cuMemcpyDtoH_v2", data.ctypes.data, place, data.nbytes)

    def launch(self, function: str, offsets: Sequence[int]) -> Callable[[], float]:
        """Queues a function's kernels, between two events that tell when they ran."""
        places = (*offsets, *self.scratch[function])
        with self.errors():
            times = _Times(self.gpu)
            times.record(0)
            for launch in self.kernels.functions[function].launches:
                self._queue(launch, [places[n] for n in launch.args])
            times.record(1)

        def seconds() -> float:
            with self.errors():
                return times.seconds()

        return seconds

    def _queue(self, launch: Launch, offsets: Sequence[int]) -> None:
        """Queues a kernel; what a group shares is its own, so none is given at the launch."""
        values = [c_uint64(self.memory), *map(c_uint64, offsets)]
        args = (c_void_p * len(values))(*map(ctypes.addressof, values))
        kernel = self.built[launch.kernel]
        self.driver.call("cuLaunchKernel", kernel, *launch.grid, *launch.group, 0, None, args, None)

    def finish(self) -> None:
        """Waits until all has ended."""
        with self.errors():
            self.driver.call("cuCtxSynchronize")


class _Times:
    """Two events, which say when the device came to them."""

    def __init__(self, gpu: CudaGpu) -> None:
        self.driver = gpu.driver
        self.events: list[int] = []
        for _ in range(2):
            self.events.append(self.driver.number("cuEventCreate", c_void_p, 0))
            _give_back(self, gpu, "cuEventDestroy_v2", self.events[-1])

    def record(self, number: int) -> None:
        """Queues an event."""
        self.driver.call("cuEventRecord", self.events[number], None)

    def seconds(self) -> float:
        """From the first event to the second one."""
        return 1e-3 * float(self.driver.number("cuEventElapsedTime", c_float, *self.events))


def _give_back(owner: object, gpu: CudaGpu, function: str, handle: int) -> None:
    """Has a function of the driver's take a handle back when its owner is gone; not when the
    process ends, as the driver gives all back then, and may be gone before."""

    def give() -> None:
        with suppress(CudaError), gpu.current():
            gpu.driver.try_call(function, handle)

    weakref.finalize(owner, give).atexit = False


def _check_entry(source: str, launch: Launch) -> None:
    """Checks a kernel's arguments in the source: the driver takes on trust how many there are."""
    entry = re.search(rf"\.entry\s+{re.escape(launch.kernel)}\s*\(([^)]*)\)", source)
    if entry:
        check_arguments(launch, entry[1].count(".param"))


@contextmanager
def _errors(name: str, program: _Program | None = None) -> Iterator[None]:
    """Turns what the driver raises into a DeviceError, beside a program's bytes of memory."""
    try:
        yield
    except CudaError as error:
        if error.status == libcuda.OUT_OF_MEMORY and program:
            raise memory_error(name, program.size, program.gpu.memory) from None
        raise run_error(name, error) from None


def find_gpu() -> CudaGpu:
    """The device that ``VDLA_GPU`` names, or the first one.

    Raises:
        DeviceError: there is none, or none of that name.
    """
    devices, why = gpus()
    if not devices:
        raise DeviceError(f"gpu: expected a device of CUDA, found none: {why}; {OTHERWISE}")
    wanted = os.environ.get(CHOICE, "")
    return named(devices, wanted) if wanted else devices[0]


def gpus() -> tuple[list[CudaGpu], str]:
    """All devices; where there is none, the reason in one line."""
    try:
        driver = libcuda.load(libcuda.LIBRARY)
        count: int = driver.number("cuDeviceGetCount", c_int)
        devices = [CudaGpu(driver, driver.number("cuDeviceGet", c_int, n)) for n in range(count)]
    except OSError:
        return [], f"no {libcuda.LIBRARY}, which NVIDIA's driver brings"
    except AttributeError as error:
        return [], f"a driver that lacks a function: {error}"
    except CudaError as error:
        return [], str(error)
    return devices, "" if devices else "the driver counts no device"
