"""How host functions run on a processor: which schedule each gets."""

from __future__ import annotations

from vdla.compiler.graph.express import DOTS, TILE
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Vectors
from vdla.compiler.targets.processor.operators.convolution import schedule_convolution
from vdla.compiler.targets.processor.operators.nests import schedule_nest
from vdla.compiler.targets.processor.operators.product import schedule_product
from vdla.compiler.targets.processor.operators.rows import schedule_rows, shared_rows
from vdla.compiler.targets.processor.operators.winograd import schedule_winograd
from vdla.compiler.te import Tensor


def schedule_function(s: Schedule, result: Tensor, vectors: Vectors) -> None:
    """Schedules a host function by what it computes."""
    acc = s.buffers.get("acc")
    if TILE in s.stages:
        schedule_product(s, result, vectors)
    elif DOTS in s.stages:
        schedule_winograd(s, result, vectors.registers)
    elif acc is not None and len(acc.shape) == len(result.shape) == 5:
        schedule_convolution(s, result, vectors)
    elif rows := shared_rows(s, s[result]):
        schedule_rows(s, s[result], rows, vectors.lanes)
    else:
        for stage in list(s.stages.values()):
            schedule_nest(s, stage, vectors.lanes)
