"""Algorithms of a processor's operators: templates, and a schedule for expressions without one.

``template`` has the protocol. A template's file is one algorithm: which nodes it takes, their
expression, its schedule. ``TEMPLATES`` lists them, the preferred ones first; to add one is to add a
file and its name here. ``plain`` schedules what none of them takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from vdla.compiler.graph.ir import Graph, Known, Node
from vdla.compiler.graph.types import TensorType
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.targets.processor.operators.columns import Columns
from vdla.compiler.targets.processor.operators.convolution import Convolution
from vdla.compiler.targets.processor.operators.depthwise import Depthwise
from vdla.compiler.targets.processor.operators.plain import schedule_plain
from vdla.compiler.targets.processor.operators.product import ByteProduct, FloatProduct
from vdla.compiler.targets.processor.operators.reduction import Reduction
from vdla.compiler.targets.processor.operators.softmax import ColumnSoftmax
from vdla.compiler.targets.processor.operators.sparse import Sparse
from vdla.compiler.targets.processor.operators.template import AnyTemplate
from vdla.compiler.targets.processor.operators.unfolded import Unfolded
from vdla.compiler.targets.processor.operators.winograd import Winograd
from vdla.compiler.targets.template import AnyScheduled, first_template, templates_for
from vdla.compiler.te import Tensor

TEMPLATES: tuple[type[AnyTemplate], ...] = (
    Winograd, Depthwise, Convolution, Columns, Unfolded,
    Sparse, FloatProduct, ByteProduct, Reduction, ColumnSoftmax,
)  # fmt: skip


def template_for(node: Node, graph: Graph, processor: Processor) -> type[AnyTemplate] | None:
    """The first template that takes a node of a laid-out graph; None where its own expression is
    taken."""
    return first_template(TEMPLATES, node, graph, processor)[0]


def channel_block(
    node: Node, operands: Sequence[TensorType], known: Known, vectors: Vectors
) -> int:
    """Number of channels of a node's result that should lie side by side; 0 for N, C, H, W.

    Args:
        node: of a graph that isn't laid out yet.
        operands: the types of what it reads, as they lie so far.
        known: the names of the graph's constants.
        vectors: the processor's.
    """
    wanted = (
        t.channel_block(node, operands, known, vectors) for t in templates_for(TEMPLATES, node)
    )
    return next(filter(None, wanted), 0) or node.channel_block(operands)


def schedule_function(
    s: Schedule, result: Tensor, template: AnyScheduled | None, vectors: Vectors
) -> None:
    """Schedules a function that computes ``result``, by the template of one of its nodes if there
    is one."""
    if template is None:
        schedule_plain(s, result, vectors)
    else:
        template.schedule(s, result)
