"""From a network whose every operator has its code to a module: addresses, streams, one file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from vdla.compiler.dump import Dumper
from vdla.compiler.graph.ir import Array, Graph, Node
from vdla.compiler.graph.plan import MemoryPlan, address_views, align, alignment, plan_memory
from vdla.compiler.placement import Placements, report
from vdla.compiler.targets.accelerator.lower import UOPS, Linked, Linker
from vdla.compiler.targets.accelerator.operators.template import Operator, tile_text
from vdla.compiler.targets.accelerator.target import Lowered
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.lower import kernels_of
from vdla.compiler.targets.processor.codegen.llvm import compile_assembly, compile_ir
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.in_place import in_place
from vdla.compiler.targets.processor.steps import (
    Functions,
    constant_image,
    external_models,
    function_constants,
    function_work,
    index_sizes,
    make_steps,
    native_code,
    tensor_table,
)
from vdla.compiler.targets.target import Code
from vdla.compiler.tir.printer import show
from vdla.isa.asm import disassemble
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.instructions import instruction_bytes
from vdla.isa.program import Program
from vdla.runtime.kernels import Kernels
from vdla.runtime.module import Module
from vdla.runtime.plan import Plan, accelerator_steps


@dataclass(frozen=True)
class Network:
    """A laid-out graph with the code of each node, by its name, and no addresses yet."""

    graph: Graph
    placements: Placements
    operators: Mapping[str, Operator]
    lowered: Mapping[str, Lowered]
    functions: Functions
    kernels: Functions
    codes: Mapping[str, Code]


@dataclass(frozen=True)
class LinkedNetwork:
    """A network with its addresses: all but the code of processors and GPUs.

    ``network`` has its functions in place where that is possible; ``steps`` are the run plan,
    ``constants`` what nothing writes. ``linked`` and ``programs`` are the accelerator's streams by
    name; ``dram_bytes`` is the end of all.
    """

    network: Network
    steps: Plan
    constants: Mapping[str, Array]
    memory: MemoryPlan
    linked: Mapping[str, Linked]
    programs: Mapping[str, Program]
    dram_bytes: int

    @property
    def image(self) -> bytes:
        """DRAM's constants, from its first byte on."""
        return constant_image(self.memory, self.constants)

    @property
    def uops(self) -> dict[int, Array]:
        """The streams' micro-ops, by where they lie in DRAM."""
        names = [f"{name}{UOPS}" for name in self.programs]
        return {self.memory.constants[name]: self.constants[name] for name in names}


def link(network: Network, config: Config) -> LinkedNetwork:
    """Lays out DRAM and links the streams.

    Raises:
        QueueError: the config's queues are too small for a stream to end.
    """
    graph = network.graph
    functions, shared = in_place(graph, network.placements, network.functions)
    network = replace(network, functions=functions)
    steps = make_steps(graph, network.placements, functions, network.kernels, network.codes)
    linkers = _line_up(steps, network, config)
    constants = _constants(network, linkers)
    beside = {after: before for each in linkers.values() for after, before in each.beside.items()}
    views = {**shared, **address_views(graph)}
    scratch = {name: operator.scratch for name, operator in network.operators.items()}
    memory = plan_memory(graph, constants, views, beside, scratch, alignment(config))
    linked, programs = _link(linkers, memory, config)
    end = max(map(_end, programs.values()), default=align(memory.total_bytes))
    return LinkedNetwork(network, steps, constants, memory, linked, programs, end)


def assemble(
    network: Network, config: Config, processor: Processor, gpu: Gpu, dump: Dumper
) -> Module:
    """Lays out DRAM, links the streams, and puts everything into a module for a processor and, if
    it has kernels, a GPU.

    Raises:
        TargetError: there is no linker for the processor, or the GPU's architecture isn't known.
    """
    graph = network.graph
    _write_functions(network.functions, "loops", dump)
    _write_functions(network.kernels, "kernels", dump)
    whole = link(network, config)
    before, memory = network.functions, whole.memory
    network, functions = whole.network, whole.network.functions
    changed = {n: f for n, f in functions.items() if f.func is not before[n].func}
    _write_functions(changed, "in_place", dump)
    _write_code(functions, processor, dump)
    for name, program in whole.programs.items() if dump.folder is not None else ():
        dump.write("stream", name, disassemble(program))
    return Module(
        tensors=tensor_table(graph, memory, whole.constants),
        inputs=list(graph.inputs),
        outputs=list(graph.outputs),
        dram_bytes=whole.dram_bytes,
        steps=whole.steps,
        constants=whole.image,
        host=native_code(functions, processor),
        external=external_models(graph),
        kernels=_kernels(network, gpu),
        outside={name: code.code for name, code in network.codes.items()},
        programs={name: program.to_bytes() for name, program in whole.programs.items()},
        config=config.to_dict(),
        identity=Identity.of(config),
        metadata={
            "model": graph.name,
            "placement": report(graph, network.placements),
            "layers": _layers(network),
            "memory": {
                "constants": memory.constant_bytes,
                "activations": memory.arena_bytes,
                "tensors": sum(graph.tensors[name].nbytes for name in memory.offsets),
            },
            "work": function_work(graph, {**functions, **network.kernels}),
            "indices": index_sizes(graph),
            "streams": {
                name: {"layers": _runs(each.layers), "stages": each.stages}
                for name, each in whole.linked.items()
            },
        },
    )


def _kernels(network: Network, gpu: Gpu) -> Kernels | None:
    """The kernels of a GPU's functions, if it has any."""
    functions = {made.func.name: made.func for made in network.kernels.values()}
    return kernels_of(functions.values(), gpu) if functions else None


def _write_functions(functions: Functions, name: str, dump: Dumper) -> None:
    """The text of a processor's functions after a pass, if anybody wants it."""
    for node, function in functions.items():
        if report := dump.layer(node):
            report(name, show(function.func))


def _write_code(functions: Functions, processor: Processor, dump: Dumper) -> None:
    """LLVM's text and the assembly of each function of a processor, if anybody wants them."""
    for node, function in functions.items():
        if report := dump.layer(node):
            report("llvm", compile_ir([function.func], processor))
            report("assembly", compile_assembly([function.func], processor))


def _line_up(plan: Plan, network: Network, config: Config) -> dict[str, Linker]:
    """Per accelerator program, its operators' instructions in line."""
    linkers: dict[str, Linker] = {}
    for step in accelerator_steps(plan):
        linker = linkers[step.program] = Linker(config)
        for name in step.layers:
            linker.add(name, network.lowered[name].kernel, network.operators[name].tensors)
    return linkers


def _constants(network: Network, linkers: Mapping[str, Linker]) -> dict[str, Array]:
    """All that the processor and the accelerator read and nothing writes."""
    graph = network.graph
    constants = function_constants(graph, {**network.functions, **network.kernels, **network.codes})
    for op in network.operators.values():
        constants.update(op.constants)
        constants.update({n: graph.constants[n] for n in _stored(op.node, graph)})
    for name, linker in linkers.items():
        constants[f"{name}{UOPS}"] = np.frombuffer(linker.uops, np.uint8)
    return constants


def _link(
    linkers: Mapping[str, Linker], memory: MemoryPlan, config: Config
) -> tuple[dict[str, Linked], dict[str, Program]]:
    """The streams with their addresses; they lie one behind another, after all that they touch."""
    linked, programs, to = {}, {}, alignment(config)
    start = align(memory.total_bytes, to)
    for name, linker in linkers.items():
        addresses = _Addresses(memory, {UOPS: memory.constants[f"{name}{UOPS}"]})
        linked[name] = linker.link(addresses, start)
        start = max(start, align(linked[name].end, to))
        programs[name] = Program(config, linked[name].instructions, start)
        start = _end(programs[name])
    return linked, programs


def _end(program: Program) -> int:
    """The first byte of DRAM behind a stream, aligned."""
    size = len(program.instructions) * instruction_bytes(program.config)
    return align(program.base + size, alignment(program.config))


class _Addresses(dict[str, int]):
    """DRAM addresses: a few given ones, then the memory plan's."""

    def __init__(self, plan: MemoryPlan, given: Mapping[str, int]) -> None:
        super().__init__(given)
        self.plan = plan

    def __missing__(self, name: str) -> int:
        return self.plan.address(name)


def _stored(node: Node, graph: Graph) -> list[str]:
    """Constants that a node reads as activations: a residual known at compile time."""
    return [n for n in node.inputs if n in graph.constants and n not in node.parameters]


def _layers(network: Network) -> list[dict[str, object]]:
    """Figures of each accelerator layer for reports, besides its cycles: name, operator, output,
    multiply-adds, bytes of DRAM, tile.
    """
    return [
        {
            "name": name,
            "op": op.node.op,
            "output": op.node.output,
            "macs": op.macs,
            "dram_bytes": op.dram_bytes,
            "tile": tile_text(network.lowered[name].tile),
        }
        for name, op in network.operators.items()
    ]


def _runs(names: Iterable[str]) -> list[tuple[str, int]]:
    """Equal neighbours as (name, how many)."""
    runs: list[tuple[str, int]] = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    return runs
