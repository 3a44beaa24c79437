"""The front door: a scheduled tensor expression becomes a kernel that takes numpy arrays.

    s = te.create_schedule(C)
    ...                                          # split, cache_read, tensorize …
    kernel = vdla.build(s, [A, B, C], "paper")   # or "cpu", "gpu", "sm_80"
    run = kernel(a, b, c)                        # c is written in place
    run.cycles, run.causes, kernel.check(), kernel.passes["instructions"]

The text after the passes "loops", "virtual_threads" and "in_place" can be edited and built again:

    text = kernel.passes["loops"].replace("imm=1", "imm=2")
    kernel = vdla.build(vdla.parse(text, "paper"), target="paper")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.sizes import with_sizes
from vdla.compiler.targets.accelerator.description import Intrinsics
from vdla.compiler.targets.accelerator.description import intrinsics as declare
from vdla.compiler.targets.accelerator.lower import Linker, describe, lower_function
from vdla.compiler.targets.accelerator.standalone import Standalone, standalone
from vdla.compiler.targets.gpu.description import Gpu as Described
from vdla.compiler.targets.gpu.lower import kernels_of
from vdla.compiler.targets.gpu.lower import lower_function as to_gpu
from vdla.compiler.targets.gpu.named import PREFIX, named_gpu
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.targets.processor.passes import to_processor
from vdla.compiler.te import Tensor
from vdla.compiler.tir.in_bounds import with_promises
from vdla.compiler.tir.ir import Buffer, PrimFunc
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.parser import parse as parse_function
from vdla.compiler.tir.printer import show
from vdla.isa.asm import disassemble
from vdla.isa.config import Config
from vdla.kernels.user import with_records
from vdla.names.configs import resolve
from vdla.names.schedules import Tuned
from vdla.runtime.devices.base import Device
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.devices.rtl import RtlDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError, InputError
from vdla.runtime.gpu.base import Gpu, places
from vdla.runtime.gpu.find import find_gpu
from vdla.runtime.kernels import OPENCL
from vdla.runtime.threads import available
from vdla.runtime.turns import Turns
from vdla.sim.checker import Finding
from vdla.sim.machine import Run
from vdla.sim.trace import write_trace
from vdla.support.errors import UserError

Array = NDArray[Any]
Runner = Callable[[Sequence[Array]], "KernelRun"]
DEVICES = ("sim", "rtl", "board")
HOST, GPU = "cpu", "gpu"


class BuildError(UserError):
    """A schedule and arguments that make no kernel."""


def intrinsics(config: str | Path | Config = "paper", settings: Iterable[str] = ()) -> Intrinsics:
    """Every instruction of a config as a tensor intrinsic, to tensorize with.

    ``ins.gemm`` is one of them; ``ins`` itself, given to ``tensorize``, chooses the cheapest that
    is right.

    Raises:
        ConfigError: the config doesn't exist or describes no machine.
    """
    return declare(resolve(config, settings))


def parse(
    text: str, target: str | Path | Config = "paper", settings: Iterable[str] = ()
) -> PrimFunc:
    """A function of the loop IR from its text, to give to ``build``.

    Args:
        text: as ``Kernel.passes`` or ``vdla compile --dump`` have it, edited or not; the grammar
            stands in :mod:`vdla.compiler.tir.parser`.
        target: the config whose intrinsics it calls, or "cpu", which has none.
        settings: ``KEY=VALUE`` overrides of the config or the memory.

    Raises:
        BuildError: it isn't a text.
        ParseError: the text breaks the grammar, or isn't well formed; names line and column.
        ConfigError: the config doesn't exist or describes no machine.
    """
    if not isinstance(text, str):
        raise BuildError(f"parse: expected a text, found {type(text).__name__}")
    return parse_function(text, () if target == HOST else intrinsics(target, settings))


def build(
    program: Schedule | PrimFunc,
    args: Sequence[Tensor | str] | None = None,
    target: str | Path | Config = "paper",
    settings: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
    records: Tuned = None,
) -> Kernel:
    """Compiles a schedule, or a function from ``parse``, into a kernel.

    Args:
        program: from ``te.create_schedule``, or a tensorized function.
        args: its placeholders and outputs or their names, in the order in which the kernel takes
            their arrays; without them, all in the function's order.
        target: a config, its name or TOML file; "cpu", where tensorized stages run by what their
            intrinsics declare; or "gpu", for loops bound to ``blockIdx`` and ``threadIdx``, by
            OpenCL C; or NVIDIA's architecture, as "sm_80", the same by PTX.
        settings: ``KEY=VALUE`` overrides of the config or the memory.
        sizes: the sizes that the schedule leaves open, by the names that ``te.var`` gave them.
        records: a log of ``tune`` for the target "cpu", whose best schedule replaces the program's.

    Raises:
        ScheduleError: a size is missing, or a primitive doesn't apply to loops of these sizes.
        BuildError: there is no such program, or ``args`` are not its parameters.
        ConfigError: the config doesn't exist or describes no machine.
        AllocationError: the buffers exceed what the config has.
        CodegenError: a stage isn't tensorized, or no instruction expresses an access.
        NoCodeError: a GPU can't hold the kernel, or its threads can't be put in order.
        TargetError: there is no such architecture.
    """
    if isinstance(program, Schedule):
        program, made = with_sizes(program, sizes)
        if isinstance(args, list | tuple):
            args = [made.get(arg, arg) if isinstance(arg, Tensor) else arg for arg in args]
    elif sizes or records is not None:
        what = "sizes of a schedule with te.var" if sizes else "a schedule with records"
        raise BuildError(f"build: expected {what}, found a function")
    if records is not None and isinstance(program, Schedule):
        if target != HOST:
            raise BuildError(f'build: expected the target "cpu" with records, found {target}')
        program = with_records(program, records)
    func = with_promises(_function(program))
    params = _parameters(program, func, args)
    passes: dict[str, str] = {}
    if isinstance(program, Schedule):
        describe(program, passes.__setitem__)
    if target == HOST:
        return CpuKernel(func, params, passes)
    if target == GPU or str(target).startswith(PREFIX):
        gpu = named_gpu(OPENCL if target == GPU else str(target))
        return GpuKernel(func, params, passes, gpu)
    return AcceleratorKernel(func, params, passes, resolve(target, settings))


@dataclass(frozen=True)
class KernelRun:
    """What one call took: ``cycles`` and ``causes`` are None on the CPU.

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
            device: "sim" (the default), "rtl" or "board"; "cpu" or "gpu" for a kernel built for it.
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
        """What the static checker finds wrong with the stream: nothing, or the compiler is."""
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
        """What the static checker finds wrong with the stream: nothing, or the compiler is."""
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


class GpuKernel(Kernel):
    """A kernel for GPUs, which is compiled for the one that it runs on."""

    def __init__(
        self, func: PrimFunc, params: Sequence[Buffer], passes: dict[str, str], gpu: Described
    ) -> None:
        super().__init__(func, params, passes)
        lowered = to_gpu(func, gpu, lambda name, done: self.passes.__setitem__(name, show(done)))
        self.kernels = kernels_of([lowered], gpu)
        self.passes[gpu.language] = self.kernels.source
        self.order = {param: func.params.index(param) for param in params}

    def _prepare(self, device: str, board: str | None, virtual: bool, port: str | None) -> Runner:
        if device not in ("", GPU) or board or virtual or port:
            raise DeviceError(
                f'{self.name}: expected device "gpu", for which it was built, found {device!r}'
            )
        return _OnGpu(self, find_gpu(self.kernels.language)).run


class _OnGpu:
    """A kernel on a GPU, with the offsets of its parameters in the GPU's memory."""

    def __init__(self, kernel: GpuKernel, gpu: Gpu) -> None:
        self.kernel = kernel
        sizes = kernel.kernels.functions[kernel.name].params
        self.offsets, size = places(sizes)
        self.program = gpu.load(kernel.kernels, size)

    def run(self, arrays: Sequence[Array]) -> KernelRun:
        kernel, program = self.kernel, self.program
        where = [(self.offsets[kernel.order[p]], p in kernel.written) for p in kernel.params]
        for (offset, _), array in zip(where, arrays, strict=True):
            program.upload(offset, np.ascontiguousarray(array))
        seconds = program.launch(kernel.name, self.offsets)
        program.finish()
        for (offset, written), array in zip(where, arrays, strict=True):
            if written:
                result = np.empty(array.shape, array.dtype)
                program.download(offset, result)
                array[...] = result
        return KernelRun(seconds())


def _function(program: object) -> PrimFunc:
    if isinstance(program, Schedule):
        return program.mod
    if isinstance(program, PrimFunc):
        return program
    result = type(program).__name__
    raise BuildError(f"build: expected a schedule or a function from vdla.parse, found {result}")


def _parameters(
    program: Schedule | PrimFunc, func: PrimFunc, args: Sequence[Tensor | str] | None
) -> list[Buffer]:
    """The function's parameters in the order of ``args``."""
    known = {p.name: p for p in func.params}
    if not isinstance(args, list | tuple | None):
        raise BuildError(f"build: expected a list of arguments, found {args!r}")
    names = ", ".join(known)
    result = []
    for arg in known if args is None else args:
        if isinstance(arg, Tensor) and isinstance(program, Schedule):
            buffer = program.built.buffers.get(arg)
            name = buffer.name if buffer else ""
        else:
            name = arg if isinstance(arg, str) else ""
        if name not in known:
            shown = arg.name if isinstance(arg, Tensor) else repr(arg)
            raise BuildError(f"build: expected the arguments {names}, found {shown}")
        result.append(known[name])
    if len(set(result)) != len(result) or len(result) != len(known):
        given = ", ".join(p.name for p in result) or "none"
        raise BuildError(f"build: expected each of the arguments {names} once, found {given}")
    return result


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
