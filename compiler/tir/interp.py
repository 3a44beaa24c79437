"""Runs a PrimFunc on numpy arrays: the oracle that every transformation is held against.

Functions run one statement after the other, as ``interpreter`` says; those with barriers with the
threads of each group side by side, as ``group`` says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.compiler.tir.expand import expand_intrinsics
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.interpreter import Array, InterpError, Interpreter, check_arrays, has_barrier
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.lower import written_buffers

__all__ = ["InterpError", "Interpreter", "evaluate", "run"]


def run(func: PrimFunc, arrays: Sequence[Array]) -> None:
    """Runs a function on one array per parameter, in place.

    Args:
        func: with blocks or without, intrinsic calls included: their behaviours are run. Kernels
            with barriers run as ``group`` says.
        arrays: C-contiguous, of the parameters' shapes and dtypes, in their order.

    Raises:
        InterpError: an array doesn't fit its parameter, or the program does something undefined.
    """
    if has_barrier(func.body):
        run_groups(func, arrays, checks=False)
        return
    check_arrays(func, arrays)
    machine = Interpreter()
    machine.memory.update(zip(func.params, arrays, strict=True))
    with np.errstate(all="ignore"):
        machine.run(expand_intrinsics(func.body), {}, None)


def evaluate(func: PrimFunc, *inputs: Array) -> list[Array]:
    """The arrays that a function writes, given those that it doesn't, both in parameter order.

    Raises:
        InterpError: see ``run``.
    """
    written = written_buffers(expand_intrinsics(func.body))
    given = iter(inputs)
    arrays = [
        np.zeros(p.shape, p.dtype) if p in written else np.ascontiguousarray(next(given))
        for p in func.params
    ]
    run(func, arrays)
    return [a for p, a in zip(func.params, arrays, strict=True) if p in written]
