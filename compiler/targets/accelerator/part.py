"""The accelerator's part of a module: streams with their addresses, and figures of their layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from vdla.compiler.dump import Dumper
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.plan import MemoryPlan, align, alignment
from vdla.compiler.graph.types import Array
from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.lower import UOPS, Linked, Linker
from vdla.compiler.targets.accelerator.operators.template import Operator, Tile, tile_text
from vdla.compiler.targets.target import Code, Needs, Part
from vdla.isa.asm import disassemble
from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes
from vdla.isa.program import Program
from vdla.runtime.module import Module
from vdla.runtime.plan import Accelerate


@dataclass(frozen=True)
class Layer:
    """An operator with its tile and its instructions."""

    operator: Operator
    tile: Tile
    kernel: Kernel


class StreamPart(Part):
    """Streams of layers: a program for each row of nodes.

    ``linked`` and ``programs`` are the streams by name, once they are linked; ``uops`` are their
    micro-ops, by where they lie in DRAM.
    """

    codes: Mapping[str, Code[Layer]]

    def __init__(self, graph: Graph, codes: Mapping[str, Code[Layer]], config: Config) -> None:
        self.graph, self.codes, self.config = graph, codes, config
        self.accelerated: list[Accelerate] = []
        self.linkers: dict[str, Linker] = {}
        self.linked: dict[str, Linked] = {}
        self.programs: dict[str, Program] = {}
        self.uops: dict[int, Array] = {}

    def steps(self, row: Sequence[Node]) -> list[Accelerate]:
        """One step, whose layers are the nodes that are work."""
        layers = [node.name for node in row if not isinstance(node, ops.ByAddresses)]
        reads, writes = dict[str, None](), dict[str, None]()
        for node in row:
            reads |= dict.fromkeys(n for n in self.graph.activations(node) if n not in writes)
            writes[node.output] = None
        name = f"program{len(self.accelerated)}"
        step = Accelerate(name, tuple(layers), tuple(reads), tuple(writes))
        self.accelerated.append(step)
        return [step]

    def needs(self) -> Needs:
        """Constants and scratch of the layers, and the streams' micro-ops."""
        self.linkers = {step.program: self._line_up(step.layers) for step in self.accelerated}
        constants = dict(super().needs().constants)
        for name, linker in self.linkers.items():
            constants[f"{name}{UOPS}"] = np.frombuffer(linker.uops, np.uint8)
        pairs = (pair for each in self.linkers.values() for pair in each.beside.items())
        scratch = {name: code.program.operator.scratch for name, code in self.codes.items()}
        return Needs(constants, scratch, dict(pairs))

    def _line_up(self, layers: Iterable[str]) -> Linker:
        """A program's instructions in line."""
        linker = Linker(self.config)
        for name in layers:
            layer = self.codes[name].program
            linker.add(name, layer.kernel, layer.operator.tensors)
        return linker

    def link(self, memory: MemoryPlan, start: int) -> int:
        """Links the streams; they lie one behind another, after all that they touch.

        Raises:
            QueueError: the config's queues are too small for a stream to end.
        """
        for name, linker in self.linkers.items():
            start = align(start, alignment(self.config))
            uops = memory.constants[f"{name}{UOPS}"]
            linked = linker.link(_Addresses(memory, {UOPS: uops}), start)
            start = max(start, align(linked.end, alignment(self.config)))
            program = Program(self.config, linked.instructions, start)
            size = len(program.instructions) * instruction_bytes(self.config)
            start = align(start + size, alignment(self.config))
            self.linked[name], self.programs[name] = linked, program
            self.uops[uops] = np.frombuffer(linker.uops, np.uint8)
        return start

    def complete(self, module: Module, dump: Dumper) -> None:
        """Gives a module the programs, and figures of their layers for reports."""
        for name, program in self.programs.items() if dump.folder is not None else ():
            dump.write("stream", name, disassemble(program))
        module.programs = {name: program.to_bytes() for name, program in self.programs.items()}
        module.metadata["layers"] = [_figures(n, code.program) for n, code in self.codes.items()]
        module.metadata["streams"] = {
            name: {"layers": _runs(each.layers), "stages": each.stages}
            for name, each in self.linked.items()
        }


class _Addresses(dict[str, int]):
    """DRAM addresses: a few given ones, then the memory plan's."""

    def __init__(self, plan: MemoryPlan, given: Mapping[str, int]) -> None:
        super().__init__(given)
        self.plan = plan

    def __missing__(self, name: str) -> int:
        return self.plan.address(name)


def _figures(name: str, layer: Layer) -> dict[str, object]:
    """Figures of a layer besides its cycles: name, operator, output, multiply-adds, bytes of DRAM,
    tile.
    """
    operator = layer.operator
    return {
        "name": name,
        "op": operator.node.op,
        "output": operator.node.output,
        "macs": operator.macs,
        "dram_bytes": operator.dram_bytes,
        "tile": tile_text(layer.tile),
    }


def _runs(names: Iterable[str]) -> list[tuple[str, int]]:
    """Equal neighbours as (name, how many)."""
    return [(name, len(list(run))) for name, run in groupby(names)]
