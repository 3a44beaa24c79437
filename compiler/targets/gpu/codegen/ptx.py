"""Kernels as PTX, NVIDIA's assembly, by LLVM.

    .visible .entry f_0(.param .u64 memory, .param .u64 at0, .param .u64 at1)
    .reqntid 16, 16, 1
    { … }

Rules:

- A kernel takes a pointer to the memory that all buffers lie in, and for each of them an offset in
  bytes, 64 bits wide.
- Numbers are those of ``codegen.opencl``, by the same rules (``codegen.values``): no product is
  joined with a sum, and divisions and roots are rounded to the nearest.
- ``exp``, ``log``, ``tanh`` and ``erf`` of floats are arithmetic. Functions that need a library
  have no code: there is none.
- The text runs on the GPUs of its architecture and, where that has no letter behind it, later ones;
  the driver compiles it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir as ll

from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.gpu.codegen.emit import emit_kernel
from vdla.compiler.targets.gpu.codegen.kernel import Kernel
from vdla.compiler.targets.gpu.codegen.values import has_code, no_code
from vdla.compiler.targets.llvm_passes import run_pipeline
from vdla.compiler.tir.ir import Call, PrimFunc
from vdla.compiler.tir.visitor import direct_exprs, walk, walk_expr

TRIPLE = "nvptx64-nvidia-cuda"
UNKNOWN = ".version 3.2\n"  # PTX of 2013, which LLVM falls back to
ARCHITECTURE = re.compile(r"sm_\d{2,3}[af]?")


def ptx(kernels: Sequence[Kernel], architecture: str) -> str:
    """The PTX of some kernels.

    Args:
        kernels: with names that C takes.
        architecture: what it is for, as ``sm_80``.

    Raises:
        NoCodeError: a buffer has more elements than an int counts, or a function needs a library.
        TargetError: LLVM doesn't know the architecture.
    """
    machine = _machine(architecture)
    module = optimized(llvm_ir(kernels), machine, TRIPLE)
    text: str = machine.emit_assembly(module)
    if UNKNOWN in text:
        raise _unknown(architecture)
    return text


def check_architecture(architecture: str) -> None:
    """Raises TargetError where LLVM doesn't know an architecture."""
    ptx([], architecture)


def llvm_ir(kernels: Sequence[Kernel], *, on_host: bool = False) -> str:
    """The kernels as LLVM IR, not optimized.

    Args:
        kernels: with names that C takes.
        on_host: for this machine's processor; see ``codegen.emit``.

    Raises:
        NoCodeError: see ``ptx``.
    """
    module = ll.Module(name="vdla")
    for kernel in kernels:
        emit_kernel(module, kernel, on_host=on_host)
    return str(module)


def optimized(text: str, machine: Any, triple: str) -> Any:
    """The parsed module after LLVM's -O3 pipeline for a machine."""
    module = llvm.parse_assembly(text)
    module.triple = triple
    module.data_layout = str(machine.target_data)
    module.verify()
    run_pipeline(module, machine, llvm.create_pipeline_tuning_options(speed_level=3))
    return module


def check_functions(func: PrimFunc) -> PrimFunc:
    """The function itself, if PTX has all functions that its expressions call.

    Raises:
        NoCodeError: it lacks one.
    """
    for stmt in walk(func.body):
        for e in (x for each in direct_exprs(stmt) for x in walk_expr(each)):
            if isinstance(e, Call) and not has_code(e.op, e.dtype):
                raise no_code(func.name, e.op, e.dtype)
    return func


@functools.cache
def _initialize() -> None:
    """Makes LLVM know the targets that it was built for; once per process."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _machine(architecture: str) -> Any:
    """LLVM's description of a GPU."""
    if not ARCHITECTURE.fullmatch(architecture):
        raise _unknown(architecture)
    _initialize()
    try:
        target = llvm.Target.from_triple(TRIPLE)
    except RuntimeError as error:
        raise TargetError("ptx: this build of LLVM has no code for NVIDIA's GPUs") from error
    return target.create_target_machine(cpu=architecture, opt=3)


def _unknown(architecture: str) -> TargetError:
    return TargetError(
        "gpu: expected opencl, or an architecture of NVIDIA's that LLVM knows, as sm_80, found "
        f"{architecture!r}"
    )
