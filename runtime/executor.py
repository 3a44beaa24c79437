"""Runs a module's steps over one DRAM image.

The image holds constants, activations and programs at the offsets the module gives. Host functions
get pointers into it, the accelerator gets the same image: nothing is copied between them. What
onnxruntime runs reads from the image, and its result is copied there; targets of other packages get
views of it. Host functions in a row are one call, with the jumps between them (``rows``). A GPU has
a memory of its own, where tensors lie as they do in the image: what one side needs of the other is
copied before a step that reads it (``copies``), and kernels in a row are queued and not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.runtime import plan
from vdla.runtime.calls import Calls, Control
from vdla.runtime.checks import check_device, check_inputs, check_layout
from vdla.runtime.copies import NOTHING, Copies, plan_copies
from vdla.runtime.devices.base import Device, DeviceResult
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.dtypes import dtype_of, read_as
from vdla.runtime.errors import InputError
from vdla.runtime.external import Session
from vdla.runtime.gpu.base import Gpu
from vdla.runtime.gpu.launches import Launches
from vdla.runtime.module import Module
from vdla.runtime.native import NativeLibrary
from vdla.runtime.outside import find_runtime, load_code
from vdla.runtime.plan import (
    Accelerate,
    Call,
    Clear,
    Copy,
    Host,
    Jump,
    Next,
    Onnx,
    Open,
    Outside,
    Return,
    Step,
)
from vdla.runtime.repeats import Repeats
from vdla.runtime.results import Report, RunResult, StepResult
from vdla.runtime.rows import Exits, Place, control_of, split
from vdla.runtime.table import shared_ranges
from vdla.runtime.threads import Pool, available
from vdla.runtime.turns import Turns
from vdla.runtime.values import assembled, taken_apart

Array = NDArray[Any]
Action = Callable[[], Report]  # does its part of a run; the report says afterwards how it went
MOST_CALLS = 1000  # of functions inside one another


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
        check_device(module, self.device)
        check_layout(module)
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
        self._at, self._entries = 0, dict[int, int]()  # the next action; those that steps begin
        self._calls: list[tuple[int, list[tuple[Array, Array]]]] = []
        self._actions: list[Action] = []
        self._make_actions()

    def run(self, inputs: Mapping[str, Any]) -> RunResult:
        """One inference.

        Raises:
            InputError: a name, shape or dtype isn't the module's.
        """
        arrays = taken_apart(self.module.arguments, inputs)
        check_inputs(self.module, arrays)
        with self._turns:
            return self._run(arrays)

    def _run(self, inputs: Mapping[str, Array]) -> RunResult:
        for name, place in self._inputs.items():
            place[...] = read_as(np.asarray(inputs[name]), place.dtype.name)
        start, repeats = time.perf_counter(), self.repeats.left
        reports = list(self._act())
        seconds = time.perf_counter() - start - (repeats - self.repeats.left)
        return RunResult(self._outputs(), seconds, reports)

    def _act(self) -> Iterator[Report]:
        """Does the actions in their order, but for jumps."""
        self._at = 0
        self._calls.clear()
        while self._at < len(self._actions):
            action = self._actions[self._at]
            self._at += 1
            yield action()

    def _outputs(self) -> dict[str, Any]:
        """The module's outputs after a run."""
        if self.module.values:
            return {n: assembled(v, self.tensor) for n, v in self.module.values.items()}
        free = self._free
        return {
            name: free[name] if name in free else self.tensor(name).copy() for name in self._results
        }

    def tensor(self, name: str) -> Array:
        """A tensor's place in the image, as an array; reading it between runs shows its value."""
        info = self.module.tensors[name]
        return self._bytes(name).view(dtype_of(info.dtype)).reshape(info.shape)

    def _make_actions(self) -> None:
        """Makes the actions of a run, in order: copies, and steps, those of a row in one."""
        steps, actions = self.module.steps, self._actions
        behind, before = plan_copies(steps, self._fixed, self.module.outputs)
        apart = {number for each in (behind, before) for number in each}
        for row in split(steps, apart):
            actions += self._copy(behind.get(row[0], NOTHING))
            self._entries[row[0]] = len(actions)
            actions += self._copy(before.get(row[0], NOTHING))
            actions.append(self._action(row))
        actions += self._copy(behind.get(len(steps), NOTHING))
        self._entries[len(steps)] = len(actions)

    def _action(self, row: Sequence[int]) -> Action:
        """The steps of a row."""
        steps = [self.module.steps[number] for number in row]
        if isinstance(steps[0], Host | Copy | Clear | Jump | Next):
            return self._call(row)
        if isinstance(steps[0], plan.Gpu):
            assert self._launches is not None
            return self._launches.launch([s for s in steps if isinstance(s, plan.Gpu)])
        if isinstance(steps[0], Call | Return):
            return self._prepare_call(row[0], steps[0])
        return self._prepare(row[0], steps[0])

    @cached_property
    def _inputs(self) -> dict[str, Array]:
        """Places of the inputs in the image."""
        return {name: self.tensor(name) for name in self.module.inputs}

    @cached_property
    def _results(self) -> list[str]:
        """Names of the outputs: a network may have thousands of steps to look for them in."""
        return self.module.results

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

    def _call(self, row: Sequence[int]) -> Action:
        """Host functions in a row, with what is between them."""
        assert self.library is not None
        steps, exits = self.module.steps, Exits(row)
        calls = Calls(self.library, [self._entry(n, steps[n], exits) for n in row], self._pool)
        names = [str(steps[n]) for n in row if isinstance(steps[n], Host)]
        used = dict.fromkeys(
            t for n in row for t in (*plan.reads(steps[n]), *plan.writes(steps[n]))
        )
        places = [self._bytes(name) for name in used if name not in self._fixed]

        def run() -> Report:
            seconds = self.repeats.shortest(calls.run, places)
            self._go(exits.target(calls.end))
            return lambda: list(map(StepResult, names, repeat(Host.KIND), seconds()))

        return run

    def _entry(self, number: int, step: Step, exits: Exits) -> tuple[str, list[int]] | Control:
        """A step as compiled code takes it."""
        if isinstance(step, Host):
            return step.function, [self._place(name).address for name in step.args]
        assert isinstance(step, Copy | Clear | Jump | Next)
        places = {name: self._place(name) for name in (*plan.reads(step), *plan.writes(step))}
        return control_of(number, step, places, exits)

    def _place(self, name: str) -> Place:
        """A tensor's place in memory."""
        info = self.module.tensors[name]
        address = self.dram.ctypes.data + info.offset
        return Place(address, info.nbytes, info.nbytes // next(iter(info.shape), 1))

    def _go(self, target: int | Next | None) -> None:
        """Has the action of a step be the next one; None leaves that as it is.

        Raises:
            InputError: it is a loop that did not end.
        """
        if isinstance(target, Next):
            raise InputError(
                f"loop {target}: expected an end after at most {target.turns:,} turns, found none; "
                "compile with more, --turns, if it is to go on"
            )
        if target is not None:
            self._at = self._entries[target]

    def _prepare_call(self, number: int, step: Call | Return) -> Action:
        """A jump to a function, or back from it."""
        if isinstance(step, Return):
            return self._return
        saved = [self._bytes(name) for name in step.saved]

        def call() -> Report:
            if len(self._calls) >= MOST_CALLS:
                raise InputError(
                    f"call {step}: expected at most {MOST_CALLS:,} calls inside one another, "
                    "found more"
                )
            self._calls.append((self._at, [(place, place.copy()) for place in saved]))
            self._go(step.to)
            return tuple

        return call

    def _return(self) -> Report:
        """Goes back to where a function was called; ends the run where none was."""
        self._at, saved = self._calls.pop() if self._calls else (len(self._actions), [])
        for place, value in saved:
            place[...] = value
        return tuple

    def _prepare(self, number: int, step: Step) -> Action:
        """A step that is neither a host function nor kernels."""
        if isinstance(step, Onnx):
            action: Callable[[], DeviceResult | None] = self._prepare_external(step)
        elif isinstance(step, Open):
            action = self._prepare_open(step)
        elif isinstance(step, Outside):
            action = self._prepare_outside(step)
        else:
            assert isinstance(step, Accelerate)
            program = self.module.programs[step.program]
            given, wanted = shared_ranges(self.module, number)
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
            value = session.run(operands)
            if value.shape != result.shape:
                raise InputError(
                    f"step {step}: expected a result of shape {list(result.shape)}, "
                    f"found {list(value.shape)}"
                )
            result[...] = value

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


def _constants(module: Module) -> set[str]:
    """The tensors of the constants that nothing writes."""
    size = len(module.constants)
    written = {name for step in module.steps for name in plan.writes(step)}
    result = {name for name, info in module.tensors.items() if info.offset + info.nbytes <= size}
    return result - written - set(module.inputs)
