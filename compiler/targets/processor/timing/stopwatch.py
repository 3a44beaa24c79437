"""The clock and the memory's bandwidth of the machine at hand, measured."""

from __future__ import annotations

import ctypes
import time

import llvmlite.binding as llvm
import numpy as np

from vdla.compiler.targets.processor.codegen.optimize import Settings

STEPS = 1 << 21  # of two operations, a cycle each: about a millisecond in all
CHAIN = 32  # steps that are written out
RUNS = 30
ARRAY_BYTES = 1 << 28  # more than any cache holds
TEXT = """
define i64 @chain(i64 %n, i64 %x, i64 %a, i64 %b) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %v = phi i64 [ %x, %entry ], [ %v{last}, %loop ]
{body}
  %j = add i64 %i, {count}
  %e = icmp ult i64 %j, %n
  br i1 %e, label %loop, label %end
end:
  ret i64 %v{last}
}}
"""
STEP = """  %u{n} = xor i64 %v{before}, %a
  %v{n} = add i64 %u{n}, %b
"""


def clock_mhz() -> float:
    """The clock of a busy core of this machine: how fast a chain of operations goes, each of which
    waits for the one before and takes a cycle."""
    steps = "".join(STEP.format(n=n, before=n - 1 if n else "") for n in range(CHAIN))
    text = TEXT.format(last=CHAIN - 1, body=steps, count=CHAIN)
    machine = Settings("", "", "", False).machine()
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)
    chain = kind(engine.get_function_address("chain"))
    return 2 * STEPS / _shortest(lambda: chain(STEPS, 1, 3, 5)) / 1e6


def bytes_per_second() -> float:
    """Bytes that one core reads from memory in a second: a sum over an array that no
    cache holds.
    """
    array = np.ones(ARRAY_BYTES // 8)
    return ARRAY_BYTES / _shortest(lambda: np.add.reduce(array), RUNS // 5)


def _shortest(run: object, runs: int = RUNS) -> float:
    """Seconds of the shortest of some runs."""
    assert callable(run)
    best = np.inf
    for _ in range(runs):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return float(best)
