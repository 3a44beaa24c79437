"""Functions of a GPU: a node in, kernels and their arguments out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from vdla.compiler.graph.express import NodeFunction
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import GPU, Placements
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.lower import lower_function
from vdla.compiler.targets.gpu.operators import TEMPLATES, schedule_function
from vdla.compiler.targets.template import express
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.printer import show


def gpu_functions(graph: Graph, placements: Placements, gpu: Gpu) -> Mapping[str, NodeFunction]:
    """Node name to its kernels, for every node placed on the GPU.

    Nodes whose functions are the same but for their names share the first one.
    """
    known: dict[str, PrimFunc] = {}
    own = (node for node in graph.nodes if placements[node.name].device == GPU)
    return {node.name: gpu_function(node, graph, gpu, known) for node in own}


def gpu_function(
    node: Node, graph: Graph, gpu: Gpu, known: dict[str, PrimFunc] | None = None
) -> NodeFunction:
    """The kernels of a node of a laid-out graph, with its arguments and own constants.

    Args:
        node: one that the target doesn't refuse.
        graph: the node's.
        gpu: what the kernels are for.
        known: functions by their texts: one that is there already is taken, whatever its name, and
            others are put there.

    Raises:
        NoCodeError: the GPU can't hold the kernels.
        ScheduleError: a primitive doesn't apply.
    """
    known = {} if known is None else known
    expression = express(node, graph, TEMPLATES, gpu)
    schedule = expression.unscheduled(symbol_of(node, known))
    text = show(replace(schedule.mod, name=""))
    if text not in known:
        schedule_function(schedule, expression.result, expression.template)
        known[text] = lower_function(schedule.mod, gpu)
    return expression.recipe.function(known[text])


def symbol_of(node: Node, known: Mapping[str, PrimFunc]) -> str:
    """The node's name as C takes it, and as no other function is called."""
    base = name = "gpu_" + re.sub(r"\W", "_", node.name, flags=re.ASCII)
    taken = {func.name for func in known.values()}
    return base if name not in taken else f"{base}_{len(taken)}"
