"""Placement by cost: each operator on the device that is faster with it, transfers counted.

What the accelerator can run costs its cycles there, by the model that chooses its schedules, and on
the host the time of its function, by the model of the host's processor. A tensor that is made on
one side and read on the other is laid out anew by the host, at so many cycles per byte, and costs
the calls of another program and another row of functions. The placement is the best of all
(``cut.py``). A region is placed by one of its runs, whatever their number: nothing that is on one
side there is read on the other side of what is around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from vdla.compiler.build import Options, accelerator_layers, rewritten_graph
from vdla.compiler.cut import least_cut
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.types import TensorType
from vdla.compiler.host_time import host_time
from vdla.compiler.placement import ACCELERATOR, PROCESSOR, Placements
from vdla.compiler.targets.accelerator.estimates import layer_cycles
from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.processor.codegen.llvm import compile_optimized
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.timing.cycles import Cycles
from vdla.compiler.targets.processor.timing.instructions import functions_of
from vdla.compiler.targets.processor.timing.machine import Machine
from vdla.isa.config import Config

SAMPLE = (1, 64, 28, 28)  # of bytes, whose change of layout is priced


@dataclass(frozen=True)
class Choice:
    """A node that the accelerator can run and the host does better, and both times in seconds."""

    accelerator: float
    host: float

    @property
    def reason(self) -> str:
        """Reason for its place on the host, for people."""
        return (
            f"by cost: {1e3 * self.host:.3f} ms here and {1e3 * self.accelerator:.3f} ms on the "
            "accelerator, transfers of its neighbourhood counted"
        )


def choices(graph: Graph, config: Config, options: Options, machine: Machine) -> dict[str, Choice]:
    """The nodes that the host should run although the accelerator can, by their names.

    Args:
        graph: as ``import_graph`` gives it.
        config: the accelerator's.
        options: with an accelerator; nodes that the user places stay where they are.
        machine: the host, for whose processor ``options`` compiles.
    """
    graphs = _rewritten_graphs(graph, config, options)
    placements = {name: where for _, placed in graphs for name, where in placed.items()}
    nodes = [node for each, _ in graphs for node in each.nodes]
    device = _accelerator_seconds(graph, config, options)
    host = _host_seconds(graph, nodes, config, options, machine)
    costs = {n.name: _costs(n, placements, options.places, device, host) for n in nodes}
    prices = _layout_cycles(config, options.processor, machine)
    chosen = least_cut(costs, [v for each, _ in graphs for v in _values(each, prices, machine)])
    return {
        name: Choice(device.get(name, 0.0), host.get(name, 0.0))
        for name in costs
        if placements[name].device == ACCELERATOR
        and name not in chosen
        and name not in options.places
    }


def _rewritten_graphs(
    graph: Graph, config: Config, options: Options
) -> list[tuple[Graph, Placements]]:
    """An imported graph with its regions and functions, as ``rewritten_graph`` gives each."""
    result, waiting = list[tuple[Graph, Placements]](), [graph, *graph.functions.values()]
    for each in waiting:  # which grows
        result.append(rewritten_graph(each, config, options))
        waiting += [r for node in result[-1][0].of(ops.Control) for r in node.regions]
    return result


def _costs(
    node: Node,
    placements: Placements,
    places: Mapping[str, str],
    device: Mapping[str, float],
    host: Mapping[str, float],
) -> tuple[float, float]:
    """Seconds of a node on the accelerator and on the host; infinite where it can't be, or where
    the user doesn't want it."""
    own = host.get(node.name, 0.0)
    if placements[node.name].device != ACCELERATOR:
        return inf, own
    return device.get(node.name, 0.0), inf if node.name in places else own


def _accelerator_seconds(graph: Graph, config: Config, options: Options) -> dict[str, float]:
    """Seconds of each operator on the accelerator; what another one takes in has none."""
    operators, _ = accelerator_layers(graph, config, options)
    result = {}
    for operator in operators:
        try:
            cycles = layer_cycles(operator, config, options.vthreads)
        except TilingError:
            continue  # it falls to the host anyway
        result[operator.node.name] = cycles / config.clock_mhz / 1e6
    return result


def _host_seconds(
    graph: Graph, nodes: Sequence[Node], config: Config, options: Options, machine: Machine
) -> dict[str, float]:
    """Seconds of each of some nodes on the host, if it ran them as it would beside an
    accelerator."""
    places = {node.name: PROCESSOR for node in nodes}
    alone = replace(options, places=places, dump=None)
    return {step.name: step.seconds for step in host_time(graph, config, alone, machine).steps}


def _values(
    graph: Graph, cycles: tuple[float, float], machine: Machine
) -> list[tuple[str | None, list[str], float, float]]:
    """The tensors of a graph: who gives and reads them, and what they cost between the devices,
    where a byte takes so many ``cycles`` on its way there and back."""
    makers, uses = graph.producers, graph.uses
    result: list[tuple[str | None, list[str], float, float]] = []
    for name, kind in graph.tensors.items():
        readers = [node.name for node in uses[name]]
        if name in graph.constants or not readers:
            continue
        count = kind.nbytes
        seconds = machine.row_seconds + count / machine.bytes_per_second
        to_device, to_host = (seconds + count * each / machine.clock_mhz / 1e6 for each in cycles)
        maker = makers.get(name)
        result.append((maker.name if maker else None, readers, to_device, to_host))
    return result


def _layout_cycles(config: Config, processor: Processor, machine: Machine) -> tuple[float, float]:
    """Cycles per byte to bring a tensor into blocks of channels, and back, by the model."""
    block, plain = config.channel_block, TensorType(SAMPLE, "int8")
    packed = replace(plain, block=block)
    pack = ops.Pack(name="pack", data="x", output="y", block=block)
    unpack = ops.Unpack(name="unpack", data="y", output="z", block=block)
    kinds = {"x": plain, "y": packed, "z": plain}
    graph = Graph(("x",), ("z",), (pack, unpack), kinds)
    funcs = [node_function(node, graph, node.name, processor).func for node in graph.nodes]
    cycles = Cycles(functions_of(compile_optimized(funcs, processor)), machine)
    pack_cycles, unpack_cycles = (cycles.of(func.name).cycles for func in funcs)
    return pack_cycles / plain.nbytes, unpack_cycles / plain.nbytes
