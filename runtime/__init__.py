"""Modules, the executor, and devices. Needs no compiler."""

from vdla.runtime.errors import DeviceError, InputError, ModuleError
from vdla.runtime.executor import Executor
from vdla.runtime.module import HostCode, Module, TensorInfo
from vdla.runtime.results import RunResult, StepResult

__all__ = [
    "DeviceError",
    "Executor",
    "HostCode",
    "InputError",
    "Module",
    "ModuleError",
    "RunResult",
    "StepResult",
    "TensorInfo",
]
