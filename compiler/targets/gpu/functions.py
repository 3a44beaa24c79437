"""Functions of a GPU: a node in, kernels and their arguments out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vdla.compiler.graph.express import NodeFunction
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import Placements
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.functions import Traces, digest_of, replayed, symbol_of, untuned
from vdla.compiler.targets.gpu.description import ANY, GPU, Gpu
from vdla.compiler.targets.gpu.lower import lower_function
from vdla.compiler.targets.gpu.operators import TEMPLATES, schedule_function
from vdla.compiler.targets.template import AnyScheduled, Expression, express
from vdla.compiler.tir.ir import BoundsError, PrimFunc

Known = dict[str, PrimFunc]  # kernels by the digests of what they compute


def gpu_functions(
    graph: Graph, placements: Placements, gpu: Gpu, known: Known, traces: Traces = untuned
) -> Mapping[str, NodeFunction]:
    """Node name to its kernels, for every node placed on the GPU.

    Nodes whose functions are the same but for their names share the first one.
    """
    own = (node for node in graph.nodes if placements[node.name].device == GPU)
    return {node.name: gpu_function(node, graph, gpu, known, traces) for node in own}


def gpu_function(
    node: Node,
    graph: Graph,
    gpu: Gpu = ANY,
    known: Known | None = None,
    traces: Traces = untuned,
) -> NodeFunction:
    """The kernels of a node of a laid-out graph, with its arguments and own constants.

    Args:
        node: one that the target doesn't refuse.
        graph: the node's.
        gpu: what the kernels are for.
        known: a function that is there already is taken, whatever its name, and others are put
            there.
        traces: gives the tuned schedule of a function, by its digest, where there is one.

    Raises:
        NoCodeError: the GPU has no code for it; the message says why.
    """
    return expressed(node, graph, gpu, {} if known is None else known, traces)[1]


def expressed(
    node: Node, graph: Graph, gpu: Gpu, known: Known, traces: Traces = untuned
) -> tuple[Expression, NodeFunction]:
    """A node's expression, by a template where its kernels can be had, and the kernels."""
    try:
        return _expressed(node, graph, TEMPLATES, gpu, known, traces)
    except NoCodeError:
        return _expressed(node, graph, (), gpu, known, traces)


def _expressed(
    node: Node,
    graph: Graph,
    templates: Sequence[type[AnyScheduled]],
    gpu: Gpu,
    known: Known,
    traces: Traces,
) -> tuple[Expression, NodeFunction]:
    """A node's expression and kernels, by one of some templates, or by none."""
    try:
        expression = express(node, graph, templates, gpu)
        symbol = _symbol_of(node, known)
        schedule = expression.unscheduled(symbol)
        digest = digest_of(schedule.mod)
        if digest not in known:
            tuned = _tuned(schedule, gpu, traces(digest))
            known[digest] = tuned or _default(expression, symbol, gpu)
    except (ScheduleError, BoundsError) as error:
        raise NoCodeError(str(error)) from error
    return expression, expression.recipe.function(known[digest])


def _default(expression: Expression, symbol: str, gpu: Gpu) -> PrimFunc:
    """The kernels of an expression's schedule without any search."""
    schedule = expression.unscheduled(symbol)
    schedule_function(schedule, expression.result, expression.template)
    return lower_function(schedule.mod, gpu)


def _tuned(schedule: Schedule, gpu: Gpu, trace: Sequence[Step] | None) -> PrimFunc | None:
    """The kernels as a trace schedules them; None where the GPU can't hold them."""
    if not replayed(schedule, trace):
        return None
    try:
        return lower_function(schedule.mod, gpu)
    except NoCodeError:
        return None


def _symbol_of(node: Node, known: Known) -> str:
    """The node's name as C takes it, and as no other function is called."""
    base = symbol_of("gpu_", node)
    taken = {func.name for func in known.values()}
    return base if base not in taken else f"{base}_{len(taken)}"
