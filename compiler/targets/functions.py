"""Functions of all targets: names, digests, and schedules that were tuned."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from vdla.compiler.graph.ir import Node
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.printer import show

Traces = Callable[[str], Sequence[Step] | None]  # the tuned schedule by a function's digest


def untuned(digest: str) -> None:
    """No tuned schedule for any function."""


def symbol_of(prefix: str, node: Node) -> str:
    """A node's name as C and linkers take it, behind a prefix."""
    return prefix + re.sub(r"\W", "_", node.name, flags=re.ASCII)


def digest_of(func: PrimFunc) -> str:
    """Sixteen hex digits of a function's text less its name: equal ones can be scheduled alike."""
    text = show(replace(func, name=""))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replayed(
    schedule: Schedule,
    trace: Sequence[Step] | None,
    intrinsics: Mapping[str, TensorIntrin] | None = None,
) -> bool:
    """Schedules as a trace says.

    Returns:
        False where there is no trace, or one whose primitives aren't today's; the schedule is then
        of no use any more.
    """
    if trace is None:
        return False
    try:
        schedule.replay(list(trace), intrinsics or {})
    except ScheduleError:
        return False
    return True
