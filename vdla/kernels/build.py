"""Kernels of te, built: a scheduled tensor expression becomes a kernel that takes numpy arrays.

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

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.sizes import with_sizes
from vdla.compiler.targets.accelerator.description import Intrinsics
from vdla.compiler.targets.accelerator.description import intrinsics as declare
from vdla.compiler.targets.accelerator.lower import describe
from vdla.compiler.targets.gpu.description import GPU
from vdla.compiler.targets.gpu.named import PREFIX, named_gpu
from vdla.compiler.te import Tensor
from vdla.compiler.tir.in_bounds import with_promises
from vdla.compiler.tir.ir import Buffer, PrimFunc
from vdla.compiler.tir.parser import parse as parse_function
from vdla.compiler.tir.program import Program
from vdla.isa.config import Config
from vdla.kernels.gpu import GpuKernel
from vdla.kernels.kernel import HOST, AcceleratorKernel, CpuKernel, Kernel
from vdla.kernels.script import parse_script
from vdla.kernels.user import with_records
from vdla.names.configs import resolve
from vdla.names.schedules import Tuned
from vdla.runtime.kernels import OPENCL
from vdla.support.errors import UserError

PYTHON = ("@", "def ", "import ", "from ")  # of a text that is Python


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
) -> Program:
    """A function of the loop IR from its text, to give to ``build``.

    Args:
        text: as ``Kernel.passes`` or ``vdla compile --dump`` have it, edited or not; the grammar
            stands in :mod:`vdla.compiler.tir.parser`. Or decorated Python, as ``script`` of a
            function gives it.
        target: the config whose intrinsics it calls, or "cpu", which has none.
        settings: ``KEY=VALUE`` overrides of the config or the memory.

    Raises:
        BuildError: it isn't a text.
        ParseError: the text breaks the grammar, or isn't well formed; names line and column.
        ConfigError: the config doesn't exist or describes no machine.
    """
    if not isinstance(text, str):
        raise BuildError(f"parse: expected a text, found {type(text).__name__}")
    if text.lstrip().startswith(PYTHON):
        return parse_script(text, target, settings)
    known = () if target == HOST else intrinsics(target, settings)
    return Program.of(parse_function(text, known), target if isinstance(target, str) else "")


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
        program: from ``te.create_schedule``, or a function from ``parse`` or ``prim_func``.
        args: its placeholders and outputs or their names, in the order in which the kernel takes
            their arrays; without them, all in the function's order.
        target: a config, its name or TOML file; "cpu", where tensorized stages run by what their
            intrinsics declare; or "gpu", for loops bound to ``blockIdx`` and ``threadIdx``, by
            OpenCL C; or NVIDIA's architecture, as "sm_80", the same by PTX.
        settings: ``KEY=VALUE`` overrides of the config or the memory.
        sizes: the sizes that the schedule leaves open, by the names that ``te.var`` gave them.
        records: a log of ``tune`` for the target "cpu", or of ``search`` for it or a config, whose
            best schedule replaces the program's.

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
        if target == GPU or str(target).startswith(PREFIX):
            expected = 'build: expected the target "cpu" or a config with records'
            raise BuildError(f"{expected}, found {target}")
        program = with_records(
            program, records, None if target == HOST else resolve(target, settings)
        )
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


def _function(program: object) -> PrimFunc:
    if isinstance(program, Schedule):
        return program.mod
    if isinstance(program, PrimFunc):
        return PrimFunc(program.name, program.params, program.body)
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
