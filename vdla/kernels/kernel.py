"""Kernels of numpy arrays: on the accelerator, or on the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.lower import Linker, lower_function
from vdla.compiler.targets.accelerator.standalone import Standalone, standalone
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.targets.processor.passes import to_processor
from vdla.compiler.tir.ir import Buffer, PrimFunc
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.printer import show
from vdla.isa.asm import disassemble
from vdla.isa.config import Config
from vdla.runtime.devices.base import Device
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.devices.rtl import RtlDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError, InputError
from vdla.runtime.threads import available
from vdla.runtime.turns import Turns
from vdla.sim.checker import Finding
from vdla.sim.machine import Run
from vdla.sim.trace import write_trace

Array = NDArray[Any]
Runner = Callable[[Sequence[Array]], "KernelRun"]
DEVICES = ("sim", "rtl", "board")
HOST = "cpu"


@dataclass(frozen=True)
class KernelRun:
    """Figures of one call: ``cycles`` and ``causes`` are None on the CPU.

    ``causes[engine][cause]`` counts cycles; an engine's causes add up to ``cycles``. ``run`` is the
    record of every instruction, which a board doesn't give.
    """

    seconds: float
    cycles: int | None = None
    causes: Mapping[str, Mapping[str, int]] | None = None
    run: Run | None = None
    stages: Sequence[str] = field(default=(), repr=False)

    def trace(self, path: str | Path) -> None:
        """Writes the timeline for https://ui.perfetto.dev.

        Raises:
            DeviceError: the device keeps no record of its instructions.
        """
        if self.run is None:
            raise DeviceError("trace: expected a run on sim or rtl, found one without a record")
        write_trace(self.run, Path(path), stages=self.stages)


class Kernel:
    """A compiled function of numpy arrays; ``passes`` is the program's text after every pass.

    Python threads that call one kernel take turns, a whole call each.
    """

    def __init__(self, func: PrimFunc, params: Sequence[Buffer], passes: dict[str, str]) -> None:
        self.name = func.name
        self.params = tuple(params)
        self.written = frozenset(written_buffers(func.body))
        self.passes = passes
        self._ready: dict[tuple[str, ...], Runner] = {}
        self._turns = Turns()

    def __call__(
        self,
        *arrays: Array,
        device: str = "",
        board: str | None = None,
        virtual: bool = False,
        port: str | None = None,
    ) -> KernelRun:
        """Runs on one array per parameter; outputs are written in place.

        Args:
            arrays: in the order of ``build``'s arguments.
            device: "sim" (the default), "rtl" or "board"; or the one that the kernel was built for.
            board: the board's name, for the device "board".
            virtual: the board's RTL twin in its place.
            port: how a real board is reached.

        Raises:
            InputError: an array isn't what its parameter says.
            DeviceError: there is no such device, or it can't be had.
        """
        self._check_arrays(arrays)
        key = (device, board or "", "virtual" if virtual else "", port or "")
        with self._turns:
            if key not in self._ready:
                self._ready[key] = self._prepare(device, board, virtual, port)
            return self._ready[key](arrays)

    def check(self) -> list[Finding]:
        """Findings of the static checker in the stream: none, unless the compiler is wrong."""
        return []

    def _prepare(self, device: str, board: str | None, virtual: bool, port: str | None) -> Runner:
        """The kernel made ready on a device."""
        raise NotImplementedError

    def _check_arrays(self, arrays: Sequence[Array]) -> None:
        if len(arrays) != len(self.params):
            names = ", ".join(p.name for p in self.params)
            raise InputError(
                f"{self.name}: expected {len(self.params)} arrays ({names}), found {len(arrays)}"
            )
        for param, array in zip(self.params, arrays, strict=True):
            _check_array(f"{self.name}: {param.name}", param, array, param in self.written)


class AcceleratorKernel(Kernel):
    """A kernel for the accelerator of one config."""

    def __init__(
        self, func: PrimFunc, params: Sequence[Buffer], passes: dict[str, str], config: Config
    ) -> None:
        super().__init__(func, params, passes)
        self.config = config
        kernel = lower_function(func, config, self.passes.__setitem__)
        linker = Linker(config)
        linker.add(kernel.name, kernel, {name: name for name in kernel.tensors})
        self.alone: Standalone = standalone(linker, kernel.tensors, {})
        self.passes["stream"] = disassemble(self.alone.program)

    def check(self) -> list[Finding]:
        """Findings of the static checker in the stream: none, unless the compiler is wrong."""
        return self.alone.check()

    def _prepare(self, device: str, board: str | None, virtual: bool, port: str | None) -> Runner:
        return _OnDevice(self, _device(self.config, device or "sim", board, virtual, port)).run


class _OnDevice:
    """A kernel's program on a device, with the views of its parameters in DRAM."""

    def __init__(self, kernel: AcceleratorKernel, device: Device) -> None:
        self.kernel, alone = kernel, kernel.alone
        self.dram = device.allocate(alone.dram.size, alone.dram.tobytes())
        ranges = {p: self._range(p) for p in kernel.params}
        given = [r for p, r in ranges.items() if p not in kernel.written]
        wanted = [r for p, r in ranges.items() if p in kernel.written]
        self.start = device.load(alone.program.to_bytes(), self.dram, given, wanted)
        self.views = {
            p: self.dram[low:high].view(p.dtype).reshape(p.shape)
            for p, (low, high) in ranges.items()
        }

    def _range(self, param: Buffer) -> tuple[int, int]:
        low = self.kernel.alone.addresses[param.name]
        return low, low + param.size * np.dtype(param.dtype).itemsize

    def run(self, arrays: Sequence[Array]) -> KernelRun:
        pairs = list(zip(self.kernel.params, arrays, strict=True))
        for param, array in pairs:
            if param not in self.kernel.written:
                self.views[param][...] = array
        began = time.perf_counter()
        result = self.start()
        seconds = time.perf_counter() - began
        for param, array in pairs:
            if param in self.kernel.written:
                array[...] = self.views[param]
        run = result.trace if isinstance(result.trace, Run) else None
        causes = run.causes if run else result.extra.get("causes")
        return KernelRun(seconds, result.cycles, causes, run, self.kernel.alone.linked.stages)


class CpuKernel(Kernel):
    """A kernel compiled for this machine's processors: threads share its parallel loops."""

    def __init__(self, func: PrimFunc, params: Sequence[Buffer], passes: dict[str, str]) -> None:
        super().__init__(func, params, passes)
        native = to_processor(PrimFunc(func.name, tuple(params), func.body))
        self.passes["loops"] = show(native)
        self.passes["llvm"] = llvm.compile_ir([native])
        self._entry = llvm.jit([native], available())[func.name]

    def _prepare(self, device: str, board: str | None, virtual: bool, port: str | None) -> Runner:
        if device not in ("", HOST) or board or virtual or port:
            raise DeviceError(
                f'{self.name}: expected device "cpu", for which it was built, found {device!r}'
            )
        return self._run

    def _run(self, arrays: Sequence[Array]) -> KernelRun:
        taken = [np.require(array, requirements=("C", "A")) for array in arrays]
        began = time.perf_counter()
        self._entry(*taken)
        seconds = time.perf_counter() - began
        for param, array, own in zip(self.params, arrays, taken, strict=True):
            if param in self.written and own is not array:
                array[...] = own
        return KernelRun(seconds)


def _check_array(where: str, param: Buffer, array: Array, written: bool) -> None:
    wanted = f"{param.dtype}{list(param.shape)}"
    if not isinstance(array, np.ndarray):
        raise InputError(f"{where}: expected a numpy array {wanted}, found {type(array).__name__}")
    if array.shape != param.shape or array.dtype != np.dtype(param.dtype):
        raise InputError(f"{where}: expected {wanted}, found {array.dtype}{list(array.shape)}")
    if written and not array.flags.writeable:
        raise InputError(f"{where}: expected an array to write to, found a read-only one")
    if not written and param.value_range is not None and array.size:
        low, high = param.value_range
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            raise InputError(
                f"{where}: expected values in {low}..{high}, as its placeholder promises, "
                f"found {least}..{most}"
            )


def _device(
    config: Config, device: str, board: str | None, virtual: bool, port: str | None
) -> Device:
    if device not in DEVICES:
        raise DeviceError(f"device: expected one of {', '.join(DEVICES)}, found {device!r}")
    if device != "board":
        if board or virtual or port:
            raise DeviceError(
                f'device: expected "board" with board, virtual or port, found {device!r}'
            )
        return SimDevice(config) if device == "sim" else _rtl(config)
    if board is None:
        raise DeviceError('device "board": expected board="NAME", found none')
    from vdla.boards import find_board
    from vdla.boards.connect import connect

    return BoardDevice(config, connect(find_board(board), config, port=port, virtual=virtual))


@lru_cache(maxsize=4)
def _rtl(config: Config) -> RtlDevice:
    """One Verilated core per config: kernels take turns on it."""
    return RtlDevice(config)
