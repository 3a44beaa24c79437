"""The time that a host takes for its part of a network, by a model of its processor.

The functions are those that a module for the processor has, with its vector registers and its
schedules; the accelerator's programs aren't made. What the model knows is in
``targets/processor/timing``.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.assemble import tensor_table
from vdla.compiler.build import Options, placed_network
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.plan import address_views, plan_memory
from vdla.compiler.linear import linear
from vdla.compiler.network import Network
from vdla.compiler.placement import ACCELERATOR, PROCESSOR
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.codegen.llvm import compile_optimized
from vdla.compiler.targets.processor.part import HostPart
from vdla.compiler.targets.processor.timing.machine import Machine, machine_for
from vdla.compiler.targets.processor.timing.model import HostTime, modelled
from vdla.isa.config import Config
from vdla.runtime.plan import runs, shared_tensors


def host_time(
    graph: Graph, config: Config, options: Options, machine: Machine | None = None
) -> HostTime:
    """The time of what the processor of some options runs of an imported graph.

    Args:
        graph: as ``import_graph`` gives it.
        config: the accelerator's, for options that have one.
        options: ``processor`` is the one that functions are compiled for.
        machine: that processor's description; by default the one of its name.

    Raises:
        TargetError: the processor isn't described, or another device takes part.
    """
    for target in options.targets(config):
        if target.DEVICE not in (ACCELERATOR, PROCESSOR):
            raise TargetError(
                "host time: expected a network for a processor, with the accelerator or without, "
                f"found one for {target.DEVICE}"
            )
    machine = machine or machine_for(options.processor)
    network = processor_network(graph, config, options)
    graph, parts = network.graph, network.parts()
    steps, host = network.steps(parts), parts[PROCESSOR]
    assert isinstance(host, HostPart)
    needs = host.needs()
    memory = plan_memory(graph, needs.constants, {**needs.views, **address_views(graph)})
    text = compile_optimized(host.functions.values(), options.processor)
    operators = {
        node.name: _operators(node)
        for node in graph.nodes
        if network.placements[node.name].device == PROCESSOR
    }
    table = tensor_table(graph, memory, needs.constants)
    often = dict(zip(steps, runs(steps), strict=True))
    shared = shared_tensors(steps, (*graph.inputs, *graph.outputs))
    result = modelled(text, steps, table, operators, machine)
    count = sum(often[step] * table[name].nbytes for step, name in shared)
    return replace(result, shared_bytes=count)


def processor_network(graph: Graph, config: Config, options: Options) -> Network:
    """An imported graph laid out for its devices, with the functions that the processor runs; the
    accelerator's instructions aren't made."""
    return linear(placed_network(graph, config, options))


def _operators(node: Node) -> tuple[str, ...]:
    """The operators that one function computes."""
    parts = node.parts if isinstance(node, ops.Fused) else (node,)
    return tuple(part.op for part in parts)
