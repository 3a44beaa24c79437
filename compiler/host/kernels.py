"""Host functions: a node in, a function of loop IR and its arguments out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from vdla.compiler.codegen.target import NATIVE, Target, Vectors
from vdla.compiler.graph.express import HostKernel, HostRecipe
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.host.schedules import schedule_function
from vdla.compiler.passes.host import with_inits
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step
from vdla.compiler.target.cpu import dot4
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.printer import show

Traces = Callable[[str, Target], Sequence[Step] | None]  # of a function's digest


def untuned(digest: str, target: Target) -> None:
    """No tuned schedule for any function."""


def host_kernel(
    node: Node,
    graph: Graph,
    symbol: str | None = None,
    target: Target = NATIVE,
    traces: Traces = untuned,
) -> HostKernel:
    """The host function of a node of a laid-out graph, with its arguments and own constants.

    ``traces`` gives the tuned schedule of a function, by its digest, where there is one.
    """
    recipe = HostRecipe(node, graph, target.vectors.lanes)
    result = node.express(recipe)
    schedule = recipe.schedule(result, symbol or symbol_of(node))
    trace = traces(digest_of(schedule.mod), target)
    try:
        schedule.replay(list(trace or ()), intrinsics(target.vectors, result))
    except ScheduleError:  # tuned with primitives that were others than today's
        schedule, trace = recipe.schedule(result, symbol or symbol_of(node)), None
    if trace is None:
        schedule_function(schedule, result, target.vectors)
    kernel = recipe.kernel(schedule)
    return replace(kernel, func=with_inits(kernel.func))


def symbol_of(node: Node) -> str:
    """The node's name as a linker takes it."""
    return "host_" + re.sub(r"\W", "_", node.name, flags=re.ASCII)


def digest_of(func: PrimFunc) -> str:
    """Sixteen hex digits of a function's text less its name: equal ones can be scheduled alike."""
    text = show(replace(func, name=""))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def intrinsics(vectors: Vectors, result: Tensor) -> dict[str, TensorIntrin]:
    """A processor's own instructions for channel blocks of a result, by the names in traces."""
    if not vectors.dot4:
        return {}
    lanes = result.shape[-1]
    found = dot4(f"{vectors.dot4}.{32 * lanes}", lanes)
    return {found.name: found}
