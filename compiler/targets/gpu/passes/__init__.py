"""Passes over a scheduled function on its way to kernels, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vdla.compiler.targets.gpu.passes.barriers import insert_barriers
from vdla.compiler.targets.gpu.passes.double_buffer import fill_ahead
from vdla.compiler.targets.gpu.passes.lanes import deal_lanes
from vdla.compiler.targets.gpu.passes.threads import deal_threads
from vdla.compiler.targets.gpu.passes.vthread import inject_virtual_threads
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.verify import verify

PASSES: Sequence[tuple[str, Callable[[PrimFunc], PrimFunc]]] = (
    ("flatten_blocks", flatten_blocks),
    ("fill_ahead", fill_ahead),
    ("deal_threads", deal_threads),
    ("deal_lanes", deal_lanes),
    ("virtual_threads", inject_virtual_threads),
    ("insert_barriers", insert_barriers),
)


def to_threads(func: PrimFunc) -> PrimFunc:
    """A scheduled function as kernels that still lack their barriers, to be looked at.

    Raises:
        NoCodeError: see ``deal_threads``.
    """
    *before, (last, _) = PASSES
    assert last == "insert_barriers"
    for _, run in before:
        func = run(func)
    return func


def to_kernels(
    func: PrimFunc, report: Callable[[str, PrimFunc], None] = lambda name, func: None
) -> PrimFunc:
    """A scheduled function as kernels, one behind the other.

    ``report`` gets the function after every pass, with the pass's name.

    Raises:
        NoCodeError: see ``deal_threads``, ``deal_lanes`` and ``insert_barriers``.
    """
    for name, run in PASSES:
        func = verify(run(func))
        report(name, func)
    return func
