"""Interface of a GPU to the executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from vdla.runtime.errors import DeviceError, ModuleError
from vdla.runtime.kernels import Extent, Kernels, Launch
from vdla.support.numbers import ceil_div

Array = NDArray[Any]
CHOICE = "VDLA_GPU"  # the environment variable that chooses a device
LOG_LINES = 3  # of a compiler's complaint
ALIGN = 256  # bytes: where a buffer of scratch memory may begin


@dataclass(frozen=True)
class Limits:
    """The most threads of a group, in all and along x, y and z; bytes of memory that a group
    shares, and of one buffer."""

    group: int
    sides: Extent
    shared: int
    buffer: int


class Program(Protocol):
    """A module's kernels on a GPU, and its image in the GPU's memory."""

    def upload(self, offset: int, data: Array) -> None:
        """Copies bytes to the image."""
        ...

    def download(self, offset: int, data: Array) -> None:
        """Copies bytes of the image into ``data``, once all that was launched has ended."""
        ...

    def launch(self, function: str, offsets: Sequence[int]) -> Callable[[], float]:
        """Queues a function's kernels, its parameters being at these offsets of the image.

        Returns:
            What gives the seconds that they took, once all has ended.
        """
        ...

    def finish(self) -> None:
        """Waits until all that was launched has ended."""
        ...


class Gpu(Protocol):
    """A GPU."""

    @property
    def name(self) -> str:
        """The device's name, as its driver has it."""
        ...

    @property
    def limits(self) -> Limits:
        """Limits of its groups and memories."""
        ...

    def load(self, kernels: Kernels, size: int) -> Program:
        """Makes kernels ready over an image of ``size`` bytes.

        Raises:
            DeviceError: the kernels are for another GPU, or exceed what this one has.
        """
        ...


AnyGpu = TypeVar("AnyGpu", bound=Gpu)


def named(devices: Sequence[AnyGpu], wanted: str) -> AnyGpu:
    """The first GPU that has a part of its name, in letters of either case.

    Raises:
        DeviceError: there is none of that name.
    """
    fitting = [gpu for gpu in devices if wanted.lower() in gpu.name.lower()]
    if not fitting:
        known = ", ".join(gpu.name for gpu in devices)
        raise DeviceError(f"gpu: expected {CHOICE} to name one of {known}, found {wanted}")
    return fitting[0]


def scratch_offsets(kernels: Kernels, size: int) -> tuple[dict[str, tuple[int, ...]], int]:
    """Offsets of each function's scratch buffers, behind an image of ``size`` bytes, and the end of
    all of them: functions run one after another, and share the bytes."""
    start = _aligned(size)
    end, result = start, dict[str, tuple[int, ...]]()
    for name, function in kernels.functions.items():
        at, offsets = start, list[int]()
        for count in function.scratch:
            offsets.append(at)
            at = _aligned(at + count)
        result[name], end = tuple(offsets), max(end, at)
    return result, end


def places(sizes: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Offsets of buffers of some bytes one behind the other, and the end of the last one."""
    offsets, end = list[int](), 0
    for size in sizes:
        offsets.append(end)
        end = _aligned(end + size)
    return tuple(offsets), end


def check_limits(name: str, limits: Limits, kernels: Kernels, size: int) -> None:
    """Raises DeviceError where kernels over ``size`` bytes exceed what a GPU has."""
    if size > limits.buffer:
        raise DeviceError(
            f"gpu {name}: expected a module of at most {limits.buffer:,} bytes, found {size:,}: "
            "out of device memory"
        )
    for function in kernels.functions.values():
        for launch in function.launches:
            _check_limit(name, launch.kernel, "threads", prod(launch.group), limits.group)
            for axis, count, most in zip("xyz", launch.group, limits.sides, strict=True):
                _check_limit(name, launch.kernel, f"threads along {axis}", count, most)
            _check_limit(name, launch.kernel, "shared bytes", launch.shared, limits.shared)


def _check_limit(name: str, kernel: str, what: str, count: int, most: int) -> None:
    if count > most:
        raise DeviceError(
            f"gpu {name}: expected groups of at most {most} {what}, found {count} in {kernel}; "
            "compile the module for less"
        )


# What all drivers' errors become -----------------------------------------------------------------


def compile_error(name: str, lines: Sequence[str]) -> DeviceError:
    """A GPU's compiler didn't take the module's kernels; ``lines`` are its complaint."""
    said = " / ".join(lines[:LOG_LINES])
    return DeviceError(f"gpu {name}: expected to compile the module's kernels, found {said}")


def memory_error(name: str, size: int, total: int) -> DeviceError:
    """A GPU with ``total`` bytes of memory hasn't ``size`` left."""
    return DeviceError(
        f"gpu {name}: expected {size:,} bytes of its memory to be free, found it has {total:,} in "
        "all and not as many left: out of device memory"
    )


def run_error(name: str, said: object) -> DeviceError:
    """A GPU's driver failed while kernels ran; ``said`` is its complaint."""
    return DeviceError(f"gpu {name}: expected it to run, found {said}")


def missing_kernel(launch: Launch) -> ModuleError:
    """A module's source lacks a kernel that it launches."""
    return ModuleError(f"module: expected a kernel {launch.kernel} in its source, found none")


def check_arguments(launch: Launch, count: int) -> None:
    """Raises ModuleError where a kernel takes others than the memory and its buffers' offsets."""
    wanted = 1 + len(launch.args)
    if count != wanted:
        raise ModuleError(
            f"module: expected a kernel {launch.kernel} of {wanted} arguments, found one of {count}"
        )


def _aligned(offset: int) -> int:
    return ceil_div(offset, ALIGN) * ALIGN
