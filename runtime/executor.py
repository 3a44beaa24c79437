"""Runs a module's steps over one DRAM image.

The image holds constants, activations and programs at the offsets the module gives. Host functions
get pointers into it, the accelerator gets the same image: nothing is copied between them. What
onnxruntime runs reads from the image, and its result is copied there; targets of other packages get
views of it. Host functions in a row are one call. A GPU has a memory of its own, where tensors lie
as they do in the image: what one side needs of the other is copied before a step that reads it
(``copies``), and kernels in a row are queued and not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.isa.identity import other_isa
from vdla.runtime import plan
from vdla.runtime.calls import Calls
from vdla.runtime.copies import Copies, plan_copies
from vdla.runtime.devices.base import Device, DeviceResult
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.dram import Ranges
from vdla.runtime.dtypes import dtype_of, read_as
from vdla.runtime.errors import DeviceError, InputError, ModuleError
from vdla.runtime.external import Session
from vdla.runtime.gpu.base import Gpu
from vdla.runtime.gpu.launches import Launches
from vdla.runtime.kernels import check_launches
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.native import NativeLibrary
from vdla.runtime.outside import find_runtime, load_code
from vdla.runtime.plan import Accelerate, Host, Onnx, Open, Outside, Plan, Step
from vdla.runtime.repeats import Repeats
from vdla.runtime.results import Report, RunResult, StepResult
from vdla.runtime.threads import Pool, available
from vdla.runtime.turns import Turns
from vdla.support.machine import memory_bytes

Array = NDArray[Any]
Action = Callable[[], Report]  # does its part of a run; the report says afterwards how it went


class Executor:
    """A module made ready on a device; run it as often as you like.

    Python threads that run one executor take turns, a whole run each: there is one image. Those
    that are to run at once need an executor each.

    ``gpu`` runs kernels, if the module has any; by default the one that ``VDLA_GPU`` names, or the
    best. ``threads`` share the parallel loops of host functions; by default as many as there are
    processors. The results are the same for any number.

    Raises:
        ModuleError: the module's host code or its layout can't be used here.
        DeviceError: the module is for another device.
    """

    def __init__(
        self,
        module: Module,
        device: Device | None = None,
        threads: int | None = None,
        gpu: Gpu | None = None,
    ) -> None:
        self.module, self._turns = module, Turns()
        self.device: Device = device or CpuDevice()
        _check_device(module, self.device)
        _check_layout(module)
        self.dram = self.device.allocate(module.dram_bytes, module.constants)
        self.library = NativeLibrary(module.host) if module.host else None
        self.threads, self.repeats = threads or available(), Repeats()
        shared = self.library if self.threads > 1 else None
        self._pool = Pool(shared, self.threads) if shared else None
        targets = {step.target for step in module.steps if isinstance(step, Outside)}
        self._runtimes = {target: find_runtime(target) for target in targets}
        kernels = module.kernels
        self._launches = Launches(module, self._bytes, self._fixed, gpu) if kernels else None
        self._free: dict[str, Array] = {}  # outputs that have no place in the image
        self._actions = list(self._make_actions())

    def run(self, inputs: Mapping[str, Array]) -> RunResult:
        """One inference.

        Raises:
            InputError: a name, shape or dtype isn't the module's.
        """
        check_inputs(self.module, inputs)
        with self._turns:
            return self._run(inputs)

    def _run(self, inputs: Mapping[str, Array]) -> RunResult:
        for name in self.module.inputs:
            place = self.tensor(name)
            place[...] = read_as(np.asarray(inputs[name]), place.dtype.name)
        start, repeats = time.perf_counter(), self.repeats.left
        reports = [action() for action in self._actions]
        seconds = time.perf_counter() - start - (repeats - self.repeats.left)
        return RunResult(self._outputs(), seconds, reports)

    def _outputs(self) -> dict[str, Array]:
        """The module's outputs after a run."""
        free = self._free
        return {
            name: free[name] if name in free else self.tensor(name).copy()
            for name in self.module.results
        }

    def tensor(self, name: str) -> Array:
        """A tensor's place in the image, as an array; reading it between runs shows its value."""
        info = self.module.tensors[name]
        return self._bytes(name).view(dtype_of(info.dtype)).reshape(info.shape)

    def _make_actions(self) -> Iterator[Action]:
        """Actions of a run, in order: copies, and steps, those of a row in one."""
        module = self.module
        before, last = plan_copies(module.steps, self._fixed, module.outputs)
        for row in _rows(module.steps, before):
            steps = [module.steps[number] for number in row]
            yield from self._copy(before[row[0]])
            if isinstance(steps[0], Host):
                yield self._calls([step for step in steps if isinstance(step, Host)])
            elif isinstance(steps[0], plan.Gpu):
                assert self._launches is not None
                yield self._launches.launch([s for s in steps if isinstance(s, plan.Gpu)])
            else:
                yield self._prepare(row[0], steps[0])
        yield from self._copy(last)

    @cached_property
    def _fixed(self) -> set[str]:
        return _constants(self.module)

    def _bytes(self, name: str) -> Array:
        """A tensor's bytes in the image."""
        info = self.module.tensors[name]
        return self.dram[info.offset : info.offset + info.nbytes]

    def _copy(self, copies: Copies) -> Iterator[Action]:
        """Actions that copy tensors between the image and the GPU's memory."""
        return self._launches.copy(copies) if self._launches else iter(())

    def _calls(self, steps: Sequence[Host]) -> Action:
        """Host functions in a row."""
        assert self.library is not None
        base, tensors = self.dram.ctypes.data, self.module.tensors
        functions = [(s.function, [base + tensors[name].offset for name in s.args]) for s in steps]
        calls, names = Calls(self.library, functions, self._pool), [str(step) for step in steps]
        names_used = dict.fromkeys(name for step in steps for name in step.args)
        places = [self._bytes(name) for name in names_used if name not in self._fixed]

        def run() -> Report:
            seconds = self.repeats.shortest(calls.run, places)
            return lambda: list(map(StepResult, names, repeat(Host.KIND), seconds()))

        return run

    def _prepare(self, number: int, step: Step) -> Action:
        """A step that is neither a host function nor kernels."""
        assert not isinstance(step, Host | plan.Gpu)
        if isinstance(step, Onnx):
            action: Callable[[], DeviceResult | None] = self._prepare_external(step)
        elif isinstance(step, Open):
            action = self._prepare_open(step)
        elif isinstance(step, Outside):
            action = self._prepare_outside(step)
        else:
            program = self.module.programs[step.program]
            given = self._touched(self.module.steps[:number], self.module.inputs)
            wanted = self._touched(self.module.steps[number + 1 :], self.module.outputs)
            action = self.device.load(program, self.dram, given, wanted)

        def run() -> Report:
            began = time.perf_counter()
            device = action()
            seconds = time.perf_counter() - began
            return lambda: [StepResult(str(step), step.KIND, seconds, device)]

        return run

    def _prepare_external(self, step: Onnx) -> Callable[[], None]:
        session = Session(self.module.external[step.model], f"step {step}")
        *operands, result = (self.tensor(name) for name in step.args)

        def run() -> None:
            result[...] = session.run(operands)

        return run

    def _prepare_open(self, step: Open) -> Callable[[], None]:
        session = Session(self.module.external[step.model], f"step {step}")
        *operands, _ = (self.tensor(name) for name in step.args)

        def run() -> None:
            arrays = session.run_all(operands)
            self._free = dict(zip(step.results, arrays, strict=True))

        return run

    def _prepare_outside(self, step: Outside) -> Callable[[], DeviceResult | None]:
        call = load_code(self._runtimes[step.target], self.module.outside[step.code])
        arrays = [self.tensor(name) for name in step.args]

        def run() -> DeviceResult | None:
            cycles = call(arrays)
            return None if cycles is None else DeviceResult(cycles)

        return run

    def _touched(self, steps: Sequence[Step], others: Sequence[str]) -> Ranges:
        """The bytes of the tensors that some host steps read or write, and of some others."""
        names = dict.fromkeys((*plan.host_tensors(steps), *others))
        result = [self.module.tensors[name] for name in names]
        first = len(self.module.constants)
        return sorted((t.offset, t.offset + t.nbytes) for t in result if t.offset >= first)


def _rows(steps: Plan, before: Sequence[Copies]) -> Iterator[list[int]]:
    """The numbers of a plan's steps, those together that nothing comes between."""
    row: list[int] = []
    for number, step in enumerate(steps):
        together = isinstance(step, Host | plan.Gpu) and before[number] == Copies()
        if row and not (together and isinstance(steps[row[0]], type(step))):
            yield row
            row = []
        row.append(number)
    if row:
        yield row


def _constants(module: Module) -> set[str]:
    """The tensors of the constants that nothing writes."""
    size = len(module.constants)
    written = {name for step in module.steps for name in plan.writes(step)}
    result = {name for name, info in module.tensors.items() if info.offset + info.nbytes <= size}
    return result - written - set(module.inputs)


def check_inputs(module: Module, inputs: Mapping[str, Array]) -> None:
    """Raises InputError unless ``inputs`` are exactly the module's."""
    for name in inputs:
        if name not in module.inputs:
            known = ", ".join(module.inputs)
            raise InputError(f"inputs: expected {known}, found {name}")
    for name in module.inputs:
        info = module.tensors[name]
        if name not in inputs:
            raise InputError(f"input {name}: expected {info}, found nothing")
        array = read_as(np.asarray(inputs[name]), info.dtype)
        if array.shape != info.shape or array.dtype != dtype_of(info.dtype):
            result = replace(info, shape=array.shape, dtype=str(array.dtype))
            raise InputError(f"input {name}: expected {info}, found {result}")
        _check_indices(name, array, module.metadata.get("indices", {}).get(name))


def _check_indices(name: str, array: Array, size: int | None) -> None:
    """Raises InputError where an input that is indices leads beyond the axis of ``size``."""
    if size is None or not array.size:
        return
    least, most = int(array.min()), int(array.max())
    if least < -size or most >= size:
        raise InputError(
            f"input {name}: expected indices from {-size} to {size - 1}, found {least}..{most}"
        )


def _check_device(module: Module, device: Device) -> None:
    if not module.accelerated:
        return
    if device.identity is None:
        count = len(plan.accelerator_steps(module.steps))
        raise DeviceError(
            f"device {device.name}: expected a module with host steps only, "
            f"found {count} for the accelerator"
        )
    wanted, result = device.identity, module.identity
    if result.isa != wanted.isa:
        raise DeviceError(f"device {device.name}: module {other_isa(wanted.isa, result.isa)}")
    if result.config != wanted.config:
        raise DeviceError(
            f"device {device.name}: expected a module for config {wanted.config}, "
            f"found one for {result.config}"
        )


def _check_layout(module: Module) -> None:
    """Every tensor and step must refer to what is there."""
    size = module.dram_bytes
    if len(module.constants) > size:
        raise ModuleError(
            f"module: expected constants of at most {size} bytes, found {len(module.constants)}"
        )
    memory = memory_bytes()
    if size > memory:
        name = max(module.tensors, key=lambda name: module.tensors[name].nbytes)
        raise ModuleError(
            f"module: expected at most this machine's {memory:,} bytes of memory, found {size:,}; "
            f"the largest tensor, {name}, has {module.tensors[name].nbytes:,}"
        )
    for name in (*module.inputs, *module.outputs):
        if name not in module.tensors:
            raise ModuleError(f"module: expected known inputs and outputs, found {name}")
    for name, info in module.tensors.items():
        if info.offset < 0 or info.offset + info.nbytes > size:
            end = info.offset + info.nbytes
            raise ModuleError(f"tensor {name}: expected to end by byte {size}, found {end}")
    if module.kernels:
        check_launches(module.kernels)
    for step in module.steps:
        _check_step(module, step)


def _check_call(
    functions: Mapping[str, tuple[int, ...]],
    what: str,
    step: Host | plan.Gpu,
    tensors: Mapping[str, TensorInfo],
) -> None:
    """A function's parameters must have the bytes of the tensors that it is called with."""
    if step.function not in functions:
        raise ModuleError(f"step {step}: expected {what}, found {step.function}")
    wanted = functions[step.function]
    result = tuple(tensors[name].nbytes for name in step.args if name in tensors)
    if len(result) == len(step.args) and result != wanted:
        raise ModuleError(
            f"step {step}: expected tensors of {', '.join(map(str, wanted))} bytes, "
            f"found {', '.join(map(str, result))}"
        )


def _check_step(module: Module, step: Step) -> None:
    if isinstance(step, Accelerate):
        known = step.program in module.programs
    elif isinstance(step, Onnx | Open):
        known = step.model in module.external
    elif isinstance(step, Outside):
        known = step.code in module.outside
    elif isinstance(step, plan.Gpu):
        known = module.kernels is not None
    else:
        known = module.host is not None
    if not known:
        raise ModuleError(
            "steps: expected a program, host code, kernels, ONNX model or code of the module, "
            f"found {step!r}"
        )
    if isinstance(step, Host) and module.host is not None:
        _check_call(module.host.functions, "a host function", step, module.tensors)
    if isinstance(step, plan.Gpu) and module.kernels is not None:
        sizes = {name: f.params for name, f in module.kernels.functions.items()}
        _check_call(sizes, "a function of kernels", step, module.tensors)
    named = (*plan.reads(step), *plan.writes(step))
    unknown = [name for name in named if name not in module.tensors]
    if unknown:
        raise ModuleError(f"step {step}: expected known tensors, found {unknown[0]}")
