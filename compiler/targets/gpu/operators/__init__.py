"""Algorithms of a GPU's operators: templates, and a schedule for expressions without one.

A template's file is one algorithm: which nodes it takes, their expression, its schedule.
``TEMPLATES`` lists them, the preferred ones first. ``plain`` schedules what none of them takes.
"""

from __future__ import annotations

from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.gpu.operators.plain import schedule_plain
from vdla.compiler.targets.gpu.operators.product import (
    Convolution,
    DenseProduct,
    MatrixProduct,
)
from vdla.compiler.targets.template import AnyScheduled
from vdla.compiler.te import Tensor

TEMPLATES: tuple[type[AnyScheduled], ...] = (
    MatrixProduct, DenseProduct, Convolution,
)  # fmt: skip


def schedule_function(s: Schedule, result: Tensor, template: AnyScheduled | None) -> None:
    """Schedules a function that computes ``result``, by the template of one of its nodes if there
    is one."""
    if template is None:
        schedule_plain(s, result)
    else:
        template.schedule(s, result)
