"""Functions of a GPU: a node in, kernels and their arguments out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vdla.compiler.graph.express import NodeFunction
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import GPU, Placements
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.description import ANY, Gpu
from vdla.compiler.targets.gpu.lower import lower_function
from vdla.compiler.targets.gpu.operators import TEMPLATES, schedule_function
from vdla.compiler.targets.template import AnyScheduled, express
from vdla.compiler.tir.ir import BoundsError, PrimFunc
from vdla.compiler.tir.printer import show

Known = dict[str, PrimFunc]  # functions by what they compute, as text


def gpu_functions(
    graph: Graph, placements: Placements, gpu: Gpu, known: Known
) -> Mapping[str, NodeFunction]:
    """Node name to its kernels, for every node placed on the GPU.

    Nodes whose functions are the same but for their names share the first one.
    """
    own = (node for node in graph.nodes if placements[node.name].device == GPU)
    return {node.name: gpu_function(node, graph, gpu, known) for node in own}


def gpu_function(
    node: Node, graph: Graph, gpu: Gpu = ANY, known: Known | None = None
) -> NodeFunction:
    """The kernels of a node of a laid-out graph, with its arguments and own constants.

    Args:
        node: one that the target doesn't refuse.
        graph: the node's.
        gpu: what the kernels are for.
        known: a function that is there already is taken, whatever its name, and others are put
            there.

    Raises:
        NoCodeError: the GPU has no code for it; the message says why.
    """
    known = {} if known is None else known
    try:
        return _made(node, graph, TEMPLATES, gpu, known)
    except NoCodeError:
        return _made(node, graph, (), gpu, known)


def _made(
    node: Node, graph: Graph, templates: Sequence[type[AnyScheduled]], gpu: Gpu, known: Known
) -> NodeFunction:
    """A node's kernels by one of some templates, or by none."""
    try:
        expression = express(node, graph, templates, gpu)
        schedule = expression.unscheduled(symbol_of(node, known))
        text = show(replace(schedule.mod, name=""))
        if text not in known:
            schedule_function(schedule, expression.result, expression.template)
            known[text] = lower_function(schedule.mod, gpu)
    except (ScheduleError, BoundsError) as error:
        raise NoCodeError(str(error)) from error
    return expression.recipe.function(known[text])


def symbol_of(node: Node, known: Known) -> str:
    """The node's name as C takes it, and as no other function is called."""
    base = "gpu_" + re.sub(r"\W", "_", node.name, flags=re.ASCII)
    taken = {func.name for func in known.values()}
    return base if base not in taken else f"{base}_{len(taken)}"
