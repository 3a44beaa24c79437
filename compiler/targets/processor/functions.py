"""Functions of a processor: a node in, a function of loop IR and its arguments out."""

from __future__ import annotations

from vdla.compiler.graph.express import NodeFunction
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.targets.functions import Traces, digest_of, replayed, symbol_of, untuned
from vdla.compiler.targets.processor.description.intrinsics import dot4
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor, Vectors
from vdla.compiler.targets.processor.operators import TEMPLATES, schedule_function
from vdla.compiler.targets.processor.passes import with_inits
from vdla.compiler.targets.template import express
from vdla.compiler.tir.in_bounds import with_promises
from vdla.compiler.tir.ir import BoundsError, PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin

HOST = "host_"  # what its symbols begin with


def node_function(
    node: Node,
    graph: Graph,
    symbol: str | None = None,
    processor: Processor = NATIVE,
    traces: Traces = untuned,
    known: dict[str, PrimFunc] | None = None,
) -> NodeFunction:
    """The function of a node of a laid-out graph, with its arguments and own constants.

    ``traces`` gives the tuned schedule of a function, by its digest, where there is one. ``known``
    has functions by their digests: one that is there already is taken, whatever its name, and
    others are put there.
    """
    expression = express(node, graph, TEMPLATES, processor)
    name = symbol or symbol_of(HOST, node)
    schedule = expression.unscheduled(name, checked=False)
    digest, known = digest_of(schedule.mod), {} if known is None else known
    if digest not in known:
        trace = traces(digest)
        tuned = schedule if trace is None else expression.unscheduled(name)
        if replayed(tuned, trace, intrinsics(processor.vectors)):
            schedule = tuned
        else:
            schedule_function(schedule, expression.result, expression.template, processor.vectors)
        known[digest] = with_promises(with_inits(schedule.mod))
    kernel = expression.recipe.function(known[digest])
    _check_indices(kernel, graph)
    return kernel


def _check_indices(kernel: NodeFunction, graph: Graph) -> None:
    """Raises BoundsError where a constant leaves the range that indices need of it."""
    for param, name in zip(kernel.func.params, kernel.args, strict=True):
        if param.value_range is None:
            continue
        value = kernel.constants.get(name, graph.constants.get(name))
        low, high = param.value_range
        if value is None or (value.size and not low <= value.min() <= value.max() <= high):
            shown = "unknown values" if value is None else f"{value.min()}..{value.max()}"
            raise BoundsError(
                f"{kernel.func.name}: {name}: expected indices in {low}..{high}, found {shown}"
            )


def intrinsics(vectors: Vectors) -> dict[str, TensorIntrin]:
    """A processor's dot product instructions by their names, on vectors of 1 lane to all lanes."""
    result = [dot4(vectors.dot4, lanes) for lanes in range(vectors.lanes, 0, -1)]
    return {intrin.name: intrin for intrin in result}
