"""From a network whose every operator has its code to a module: addresses, streams, one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.dump import Dumper
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.plan import MemoryPlan, address_views, align, alignment, plan_memory
from vdla.compiler.graph.types import Array
from vdla.compiler.linear import linear
from vdla.compiler.network import Network, Parts
from vdla.compiler.targets.target import Needs
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import Plan


@dataclass(frozen=True)
class LinkedNetwork:
    """A network with its addresses: all but the code of functions.

    ``parts`` are the targets', whose streams are linked; ``steps`` are the run plan, ``constants``
    what nothing writes; ``dram_bytes`` is the end of all.
    """

    network: Network
    parts: Parts
    steps: Plan
    constants: Mapping[str, Array]
    memory: MemoryPlan
    dram_bytes: int

    @property
    def image(self) -> bytes:
        """DRAM's constants, from its first byte on."""
        image = np.zeros(self.memory.constant_bytes, np.uint8)
        for name, array in self.constants.items():
            data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
            start = self.memory.constants[name]
            image[start : start + data.size] = data
        return image.tobytes()


def link(network: Network, config: Config) -> LinkedNetwork:
    """Lays out DRAM and links the streams.

    Raises:
        QueueError: the config's queues are too small for a stream to end.
    """
    network = linear(network)
    parts = network.parts()
    steps = network.steps(parts)
    needs = _together([part.needs() for part in reversed([*parts.values()])])
    views = {**needs.views, **address_views(network.graph)}
    memory = plan_memory(
        network.graph, needs.constants, views, needs.beside, needs.scratch, alignment(config)
    )
    end = align(memory.total_bytes)
    for part in parts.values():
        end = part.link(memory, end)
    return LinkedNetwork(network, parts, steps, needs.constants, memory, end)


def _together(needs: Sequence[Needs]) -> Needs:
    """Needs of all parts; constants lie in this order."""
    return Needs(
        {name: array for each in needs for name, array in each.constants.items()},
        {name: sizes for each in needs for name, sizes in each.scratch.items()},
        {after: before for each in needs for after, before in each.beside.items()},
        {name: view for each in needs for name, view in each.views.items()},
    )


def assemble(network: Network, config: Config, dump: Dumper) -> Module:
    """Lays out DRAM, links the streams, and has each target put its code into a module.

    Raises:
        TargetError: a target's tools lack something, as a linker.
    """
    linked = link(network, config)
    graph, memory = linked.network.graph, linked.memory
    module = Module(
        tensors=tensor_table(graph, memory, linked.constants),
        inputs=list(network.graph.inputs),
        outputs=list(network.graph.outputs),
        dram_bytes=linked.dram_bytes,
        steps=linked.steps,
        constants=linked.image,
        config=config.to_dict(),
        identity=Identity.of(config),
        metadata={
            "model": graph.name,
            "placement": network.report(),
            "layers": [],
            "memory": {
                "constants": memory.constant_bytes,
                "activations": memory.arena_bytes,
                "tensors": sum(graph.tensors[name].nbytes for name in memory.offsets),
            },
            "work": {
                name: code.work
                for name, code in linked.network.codes.items()
                if code.work is not None
            },
            "indices": _index_sizes(graph),
            "streams": {},
        },
        arguments=network.graph.arguments,
        values=network.graph.values,
    )
    for part in linked.parts.values():
        part.complete(module, dump)
    return module


def tensor_table(
    graph: Graph, plan: MemoryPlan, constants: Mapping[str, Array]
) -> dict[str, TensorInfo]:
    """Every tensor with an address: the activations, and the constants that are kept."""
    table: dict[str, TensorInfo] = {}
    for name, offset in plan.offsets.items():
        kind = graph.tensors[name]
        table[name] = TensorInfo(kind.physical, kind.dtype, offset)
    for name, array in constants.items():
        table[name] = TensorInfo(array.shape, str(array.dtype), plan.constants[name])
    return table


def _index_sizes(graph: Graph) -> dict[str, int]:
    """The inputs that are indices into other tensors, and the length of the axis they are of; the
    least of several."""
    result: dict[str, int] = {}
    for node in graph.nodes:
        for part in node.parts if isinstance(node, ops.Fused) else (node,):
            if isinstance(part, ops.Gather | ops.GatherElements) and part.indices in graph.inputs:
                size = graph.tensors[part.data].shape[part.axis]
                result[part.indices] = min(size, result.get(part.indices, size))
    return result
