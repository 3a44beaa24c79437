"""Host functions: a node in, a function of loop IR and its arguments out."""

from __future__ import annotations

import re
from dataclasses import replace

from vdla.compiler.codegen.target import NATIVE, Target
from vdla.compiler.graph.express import HostKernel, HostRecipe
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.host.schedules import schedule_function
from vdla.compiler.passes.host import with_inits
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.printer import show


def host_kernel(
    node: Node,
    graph: Graph,
    symbol: str | None = None,
    target: Target = NATIVE,
    known: dict[str, PrimFunc] | None = None,
) -> HostKernel:
    """The host function of a node of a laid-out graph, with its arguments and own constants.

    ``known`` has functions by what they are before they are scheduled: one that is there already is
    taken, whatever its name, and others are put there.
    """
    vectors = target.vectors
    recipe = HostRecipe(
        node, graph, vectors.lanes, vectors.registers, vectors.fused, target.winograd
    )
    result = node.express(recipe)
    schedule = recipe.schedule(result, symbol or symbol_of(node))
    text = show(replace(schedule.mod, name="")) if known is not None else ""
    if known is not None and text in known:
        return recipe.kernel(known[text])
    schedule_function(schedule, result, vectors)
    func = with_inits(schedule.mod)
    if known is not None:
        known[text] = func
    return recipe.kernel(func)


def symbol_of(node: Node) -> str:
    """The node's name as a linker takes it."""
    return "host_" + re.sub(r"\W", "_", node.name, flags=re.ASCII)
