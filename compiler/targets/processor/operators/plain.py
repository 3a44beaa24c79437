"""Schedule of expressions without a template: in lanes where they reduce, and on
several threads.
"""

from __future__ import annotations

from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Vectors
from vdla.compiler.targets.processor.operators.nests import schedule_nest
from vdla.compiler.targets.processor.operators.rows import schedule_rows
from vdla.compiler.targets.rows import shared_rows
from vdla.compiler.te import Tensor


def schedule_plain(s: Schedule, result: Tensor, vectors: Vectors) -> None:
    """Schedules a function by the loops that it has: rows that all its stages share, or each stage
    by itself."""
    if rows := shared_rows(s, s[result]):
        schedule_rows(s, s[result], rows, vectors.lanes)
        return
    for stage in list(s.stages.values()):
        schedule_nest(s, stage, vectors.lanes)
