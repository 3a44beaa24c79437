"""LLVM's passes give their memory back: a process may compile as often as it likes."""

from __future__ import annotations

import ctypes
import gc

import llvmlite.binding as llvm
import numpy as np
import pytest

from vdla import build, te
from vdla.compiler.targets.llvm_passes import run_pipeline
from vdla.compiler.targets.processor.codegen.optimize import Settings

MOST_BYTES = 10_000  # that a compilation may leave in use
TEXT = """define float @f(ptr %a, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %p = getelementptr float, ptr %a, i64 %i
  %v = load float, ptr %p
  %more = fadd float %sum, %v
  %next = add i64 %i, 1
  %is_done = icmp eq i64 %next, %n
  br i1 %is_done, label %end, label %loop
end:
  ret float %more
}
"""


class Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2 gives; ``uordblks`` is what is in use."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    )  # fmt: skip


@pytest.fixture
def left():
    """``left(act)`` is how many bytes each call of ``act`` leaves in use, after some calls.

    The least of some rounds: caches that grow now and then, and other threads, are in few of them.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("expected glibc 2.33 or later, which counts what is in use")
    libc.mallinfo2.restype = Mallinfo

    def used():
        gc.collect()
        return libc.mallinfo2().uordblks

    def measure(act, rounds=5, times=5):
        for _ in range(5):
            act()
        counts = [used()]
        for _ in range(rounds):
            for _ in range(times):
                act()
            counts.append(used())
        return min(np.diff(counts)) / times

    return measure


@pytest.mark.long
def test_the_pipeline_leaves_nothing(left):
    machine = Settings("", "", "", False).machine()

    def act():
        module = llvm.parse_assembly(TEXT)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        run_pipeline(module, machine, llvm.create_pipeline_tuning_options(speed_level=3))

    assert left(act) < MOST_BYTES


def test_a_compiled_kernel_leaves_nothing(left):
    def act():
        a = te.placeholder((64, 8), "float32", name="a")
        b = te.compute((64, 8), lambda i, j: a[i, j] * 2.0 + 1.0, name="b")
        build(te.create_schedule(b.op), [a, b], "cpu")

    assert left(act) < MOST_BYTES
