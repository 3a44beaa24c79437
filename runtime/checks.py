"""Checks that a module, a device and inputs fit each other, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.isa.identity import other_isa
from vdla.runtime import plan
from vdla.runtime.devices.base import Device
from vdla.runtime.dtypes import dtype_of, read_as
from vdla.runtime.errors import DeviceError, InputError, ModuleError
from vdla.runtime.kernels import check_launches
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import (
    WAYS,
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
    Step,
)
from vdla.runtime.values import Each, Listed, Maybe, Rows, Value, tensors_of
from vdla.support.machine import memory_bytes

Array = NDArray[Any]


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


def check_device(module: Module, device: Device) -> None:
    """Raises DeviceError unless a device runs a module's programs."""
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


def check_layout(module: Module) -> None:
    """Raises ModuleError unless every tensor and step refers to what is there."""
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
    made = (*module.arguments.values(), *module.values.values())
    for name in (*module.inputs, *module.outputs, *(n for v in made for n in tensors_of(v))):
        if name not in module.tensors:
            raise ModuleError(f"module: expected known inputs and outputs, found {name}")
    for title, value in (*module.arguments.items(), *module.values.items()):
        _check_value(module, f"value {title}", value)
    for name, info in module.tensors.items():
        if info.offset < 0 or info.offset + info.nbytes > size:
            end = info.offset + info.nbytes
            raise ModuleError(f"tensor {name}: expected to end by byte {size}, found {end}")
    if module.kernels:
        check_launches(module.kernels)
    for number, step in enumerate(module.steps):
        _check_step(module, number, step)


def _check_value(module: Module, where: str, value: Value) -> None:
    """Raises ModuleError unless what counts rows, or says that a value is there, is one element."""
    if isinstance(value, Rows | Each):
        _check_single(module, where, "a number of rows", value.count, "int64")
    elif isinstance(value, Maybe):
        _check_single(module, where, "a condition", value.condition, "bool")
        _check_value(module, where, value.value)
    for each in value.values if isinstance(value, Listed) else ():
        _check_value(module, where, each)


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


def _check_step(module: Module, number: int, step: Step) -> None:
    """Raises ModuleError unless a step's code and tensors are there and fit it."""
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
    if isinstance(step, Jump | Next | Call) and not 0 <= step.to <= len(module.steps):
        expected = f"a step from 0 to {len(module.steps)} to go on with"
        raise ModuleError(f"step {step}: expected {expected}, found {step.to}")
    if isinstance(step, Jump) and step.to <= number:
        raise ModuleError(f"step {step}: expected a jump to a step behind it, found {step.to}")
    if isinstance(step, Jump) and step.condition:
        _check_single(module, f"step {step}", "a condition", step.condition, "bool")
    elif isinstance(step, Next):
        _check_single(module, f"step {step}", "a turn", step.turn, "int64")
        if step.to > number or step.turns < 1:
            actual = f"{step.turns} from step {step.to}"
            raise ModuleError(f"step {step}: expected turns from a step before, found {actual}")
    elif isinstance(step, Copy):
        _check_copy(module, step)
    elif isinstance(step, Clear) and len(step.args) != 1:
        raise ModuleError(f"step {step}: expected one tensor, found {len(step.args)}")


def _check_single(module: Module, where: str, what: str, name: str, dtype: str) -> None:
    """Raises ModuleError unless a tensor is one element of a type."""
    info = module.tensors[name]
    if info.dtype != dtype or prod(info.shape) != 1:
        raise ModuleError(f"{where}: expected {what} of one {dtype}, found {info}")


def _check_copy(module: Module, step: Copy) -> None:
    """Raises ModuleError unless a copy is from one tensor to another of as many bytes, or of as
    many as an element has."""
    if len(step.args) != 2 or step.way not in WAYS or bool(step.turn) != (step.way != "whole"):
        expected = f"two tensors and a way, {', '.join(WAYS)}, the last two with a turn"
        actual = f"{len(step.args)} and {step.way!r} with turn {step.turn!r}"
        raise ModuleError(f"step {step}: expected {expected}, found {actual}")
    source, target = (module.tensors[name] for name in step.args)
    sizes = [source.nbytes, target.nbytes]
    if step.turn:
        _check_single(module, f"step {step}", "a turn", step.turn, "int64")
        whole = (source, target)[step.way == "put"]
        sizes[step.way == "put"] = whole.nbytes // max(1, next(iter(whole.shape), 1))
    if sizes[0] != sizes[1]:
        actual = f"{source} and {target}"
        raise ModuleError(f"step {step}: expected tensors of as many bytes to copy, found {actual}")
