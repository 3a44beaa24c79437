"""Host functions: a node in, a function of loop IR and its arguments out."""

from __future__ import annotations

import re
from dataclasses import replace

from vdla.compiler.codegen.target import NATIVE, Target
from vdla.compiler.graph.express import HostKernel, HostRecipe
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.host.schedules import schedule_function
from vdla.compiler.passes.host import with_inits


def host_kernel(
    node: Node, graph: Graph, symbol: str | None = None, target: Target = NATIVE
) -> HostKernel:
    """The host function of a node of a laid-out graph, with its arguments and own constants."""
    vectors = target.vectors
    recipe = HostRecipe(
        node, graph, vectors.lanes, vectors.registers, vectors.fused, target.winograd
    )
    result = node.express(recipe)
    schedule = recipe.schedule(result, symbol or symbol_of(node))
    schedule_function(schedule, result, vectors)
    kernel = recipe.kernel(schedule)
    return replace(kernel, func=with_inits(kernel.func))


def symbol_of(node: Node) -> str:
    """The node's name as a linker takes it."""
    return "host_" + re.sub(r"\W", "_", node.name, flags=re.ASCII)
