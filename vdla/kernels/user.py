"""Kernels that a user wrote with te, as ``tune`` and ``build`` take them.

vdla tune kernel.py:matmul --shape n=512 --target cpu --strategy sketch --log F
vdla.tune(schedule, "F", target="cpu", strategy="sketch")
vdla.build(schedule, target="cpu", records="F")
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, signature
from pathlib import Path
from typing import TypeGuard

from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.schedule.sizes import with_sizes
from vdla.compiler.schedule.trace import Step
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.functions import replayed
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.search.kernel import KernelFunction
from vdla.compiler.te import Tensor
from vdla.isa.config import Config
from vdla.names.schedules import Tuned, tuned_functions, tuned_kernels
from vdla.support.errors import UserError

Sizes = Mapping[str, object]


class KernelError(UserError):
    """A name or a value that is no kernel, or a kernel without its sizes."""


def is_kernel(model: object) -> TypeGuard[str | Schedule | Tensor]:
    """Whether it is a kernel, or names one: FILE.py:FUNCTION."""
    named = isinstance(model, str) and ".py:" in model
    return named or isinstance(model, Schedule | Tensor)


def kernel_function(
    kernel: str | Schedule | Tensor, sizes: Sizes | None, processor: Processor = NATIVE
) -> KernelFunction:
    """A kernel to be scheduled, with its sizes: those that its function takes, and te.var's.

    Raises:
        KernelError: there is no such file or function, it returns something else, or lacks sizes.
        ScheduleError: a size of te.var is missing, or the kernel has several results.
    """
    left = {name: _whole(name, size) for name, size in (sizes or {}).items()}
    made: object = kernel
    if isinstance(kernel, str):
        made = _called(kernel, _function(kernel), left)
    made = _without_arrays(made)
    if isinstance(made, Tensor):
        made = create_schedule(made)
    if not isinstance(made, Schedule):
        raise KernelError(
            f"{kernel}: expected a tensor or a schedule of te, alone or with its arrays, as "
            f"(schedule, [A, B, C]), found {type(made).__name__}"
        )
    return KernelFunction.of(with_sizes(made, left)[0], processor)


def _without_arrays(made: object) -> object:
    """The schedule or tensor out of what a kernel's function may return with it: its arrays, as
    ``vdla.build`` takes them, the result the last one of a list of tensors."""
    match made:
        case (Schedule() | Tensor() as kernel, list() | tuple()):
            return kernel
        case [*arrays, Tensor() as result] if all(isinstance(each, Tensor) for each in arrays):
            return result
    return made


def with_records(schedule: Schedule, choice: Tuned, config: Config | None = None) -> Schedule:
    """The best schedule that records have for a kernel, on this processor or on the accelerator of
    a config; itself, where they have none.

    Raises:
        RecordError: the file holds something else.
        OSError: it can't be read.
    """
    trace: Sequence[Step] | None = None
    function: KernelFunction | AcceleratorFunction
    if config is not None:
        function = AcceleratorFunction.of(schedule, config)
        if isinstance(choice, str | Path) and str(choice) != "none":
            trace = tuned_kernels(choice).trace(function)
    else:
        function = KernelFunction.of(schedule, NATIVE)
        records = tuned_functions(choice)
        trace = records.traces(function.machine)(function.digest) if records else None
    new = Schedule(schedule.built)
    return new if replayed(new, trace, function.intrinsics) else schedule


def _whole(name: str, size: object) -> int:
    """A size; ``--shape`` gives a shape of one number."""
    one = size[0] if isinstance(size, tuple) and len(size) == 1 else size
    if not isinstance(one, int):
        raise KernelError(f"sizes: expected {name} to be a whole number, found {size!r}")
    return one


def _function(name: str) -> Callable[..., object]:
    """The function that FILE.py:FUNCTION names; the file's code runs."""
    file, _, wanted = name.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise KernelError(f"{name}: expected the Python file {file}, found none")
    spec = spec_from_file_location(f"vdla_kernel_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise KernelError(f"{file}: expected a file that runs, found {_told(error)}") from error
    own: dict[str, Callable[..., object]] = {k: v for k, v in vars(module).items() if callable(v)}
    if wanted not in own:
        here = [k for k, v in own.items() if getattr(v, "__module__", "") == spec.name]
        raise KernelError(
            f"{file}: expected a function {wanted}, found {', '.join(here) or 'none'}"
        )
    return own[wanted]


def _called(name: str, function: Callable[..., object], sizes: dict[str, int]) -> object:
    """Result of a kernel's function, which takes its own sizes out of ``sizes``."""
    parameters = signature(function).parameters.values()
    own = {p.name: sizes.pop(p.name) for p in parameters if p.name in sizes}
    missing = [p.name for p in parameters if p.default is Parameter.empty and p.name not in own]
    if missing:
        wanted = " ".join(f"--shape {each}=N" for each in missing)
        raise KernelError(f"{name}: expected {wanted}, found none")
    try:
        return function(**own)
    except UserError:
        raise
    except Exception as error:
        raise KernelError(f"{name}: expected a kernel, found {_told(error)}") from error


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
