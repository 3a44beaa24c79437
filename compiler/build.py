"""From an ONNX model to a module: the compiler, top to bottom.

ONNX → typed graph → fuse, fold → fold taps → place → lay out, fuse what the host keeps
     → accelerator operators and host functions → plan memory → link the streams → module
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.codegen.target import NATIVE, Target
from vdla.compiler.codegen.vdla.allocate import AllocationError
from vdla.compiler.codegen.vdla.kernel import Kernel
from vdla.compiler.codegen.vdla.leaf import CodegenError
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.parser import write_values
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.plan import MemoryPlan, align, plan_memory
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.host.steps import (
    Kernels,
    check_external,
    constant_image,
    external_models,
    host_code,
    host_constants,
    host_kernels,
    make_steps,
    tensor_table,
)
from vdla.compiler.lower import UOPS, Linker, lower_schedule
from vdla.compiler.operators.cost import TilingError
from vdla.compiler.operators.template import (
    AnyTemplate,
    Operator,
    Tile,
    operator,
    template_of,
    tile_text,
)
from vdla.compiler.placement.fuse_host import fuse_host
from vdla.compiler.placement.layout import layout
from vdla.compiler.placement.partition import (
    ACCELERATOR,
    HOST,
    Placement,
    Placements,
    partition,
    report,
)
from vdla.compiler.placement.taps import fold_taps
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.tune.choose import default_tile
from vdla.compiler.tune.records import BUNDLED, Records
from vdla.isa.asm import disassemble
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.instructions import instruction_bytes
from vdla.isa.program import Program
from vdla.runtime.module import HostCode, Module

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """How to compile.

    ``device`` "cpu" leaves the accelerator out. ``vthreads`` is how many virtual threads default
    schedules use. ``min_fill`` is the share of the input lanes a convolution must fill.
    ``records`` are tuned schedules to use where they fit; None leaves all to the analytic model.
    ``dump`` is a folder for the program's text after every pass. ``progress`` is told (what, done,
    of). ``host`` is the processor that runs what the accelerator doesn't.
    """

    device: str = ACCELERATOR
    vthreads: int = 2
    min_fill: float = 0.5
    records: Records | None = BUNDLED
    dump: Path | None = None
    progress: Progress = lambda what, done, total: None
    host: Target = NATIVE


def compile_model(
    path: str | Path,
    config: Config,
    options: Options | None = None,
    shapes: Shapes | None = None,
) -> Module:
    """Compiles an ONNX file; ``shapes`` are the sizes that it leaves open.

    Raises:
        ModelError: the file is not a model that can be compiled.
        TilingError: the config's buffers can't hold one tile of some operator, and no host can.
        TargetError: there is no linker for the host's processor, or it would need onnxruntime.
    """
    return compile_graph(import_onnx(path, shapes), config, options)


def compile_graph(graph: Graph, config: Config, options: Options | None = None) -> Module:
    """Compiles an imported graph."""
    options = options or Options()
    dump = Dumper(options.dump)
    graph, placements = _place(graph, config, options, dump)
    check_external(graph, options.host)
    placements, lowered = _lower(graph, placements, config, options, dump)
    graph, placements = _lay_out(graph, placements, config, dump)
    operators = _operators(graph, placements, config)
    kernels = host_kernels(graph, placements)
    steps = make_steps(graph, placements, kernels)
    linkers = _line_up(steps, operators, lowered, config)
    host = host_code(kernels, options.host)
    return _assemble(
        graph, placements, operators, lowered, kernels, host, steps, linkers, config, dump
    )


def placed_graph(
    graph: Graph, config: Config, options: Options | None = None
) -> tuple[Graph, Placements]:
    """An imported graph as the compiler lays it out for its devices, before any schedule."""
    options = options or Options()
    dump = Dumper(options.dump)
    graph, placements = _place(graph, config, options, dump)
    return _lay_out(graph, placements, config, dump)


def _place(
    graph: Graph, config: Config, options: Options, dump: Dumper
) -> tuple[Graph, Placements]:
    """An imported graph's operators as they run, and where each does."""
    graph = optimize(graph, dump=dump.graph)
    if options.device == ACCELERATOR:
        graph = verify(fold_taps(graph, config, options.min_fill))
        dump.graph("fold_taps", graph)
    return graph, partition(graph, config, options.device, options.min_fill)


def _lay_out(
    graph: Graph, placements: Placements, config: Config, dump: Dumper
) -> tuple[Graph, Placements]:
    """The graph with each device's tensors as it wants them, and the copies between devices."""
    graph, placements = layout(graph, placements, config.channel_block)
    dump.graph("layout", graph)
    graph, placements = fuse_host(graph, placements)
    dump.graph("fuse_host", graph)
    return graph, placements


class Dumper:
    """Writes texts as numbered files into a folder, or nowhere."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.counts: dict[str, int] = {}
        self.values: dict[str, Array] = {}

    def graph(self, name: str, graph: Graph) -> None:
        """The graph after a pass, and beside it the arrays that weren't there before it."""
        if self.folder is None:
            return
        path = self.write("graph", name, format_graph(graph))
        found = beside(graph)
        new = {n: a for n, a in found.items() if not _same_array(a, self.values.get(n))}
        self.values.update(new)
        write_values(path.with_suffix(".npz"), new)

    def layer(self, layer: str) -> Callable[[str, str], None] | None:
        """What ``lower`` reports an operator's passes to."""
        if self.folder is None:
            return None

        def write(name: str, text: str) -> None:
            self.write(layer, name, text)

        return write

    def write(self, group: str, name: str, text: str) -> Path:
        """``group/NN_name.txt``, in place of what an earlier dump left under the number."""
        if self.folder is None:
            return Path()
        self.counts[group] = number = self.counts.get(group, 0) + 1
        folder = self.folder / group.replace("/", "_").strip("_")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{number:02}_*"):
            old.unlink()
        path = folder / f"{number:02}_{name}.txt"
        path.write_text(text, encoding="utf-8")
        return path


def _same_array(a: Array, b: Array | None) -> bool:
    """Whether two arrays hold the same bits; -0.0 isn't 0.0, and a NaN is itself."""
    if a is b:
        return True
    return b is not None and (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()


@dataclass(frozen=True)
class Lowered:
    """An accelerator node's tile and its instructions."""

    tile: Tile
    kernel: Kernel


def _lower(
    graph: Graph, placements: Placements, config: Config, options: Options, dump: Dumper
) -> tuple[Placements, dict[str, Lowered]]:
    """The instructions of every accelerator node; one without a legal schedule falls back to the
    host."""
    placements, lowered = dict(placements), {}
    wanted = [n for n in graph.nodes if placements[n.name].device == ACCELERATOR]
    for done, node in enumerate(wanted):
        options.progress("lower", done, len(wanted))
        template = template_of(node, graph, config)
        try:
            tile = default_tile(template, config, options.vthreads, options.records)
            if told := dump.layer(node.name):
                kernel = lower_schedule(template.schedule(tile, config), config, told)
            else:
                kernel = _kernel(template, tile, config)
            lowered[node.name] = Lowered(tile, kernel)
        except (TilingError, AllocationError, CodegenError, ScheduleError) as error:
            placements[node.name] = Placement(HOST, str(error))
    return placements, lowered


@lru_cache(maxsize=512)
def _kernel(template: AnyTemplate, tile: Tile, config: Config) -> Kernel:
    """The instructions of a template: layers that are equal are lowered once in a process."""
    return lower_schedule(template.schedule(tile, config), config)


def _operators(graph: Graph, placements: Placements, config: Config) -> dict[str, Operator]:
    nodes = (n for n in graph.nodes if placements[n.name].device == ACCELERATOR)
    return {node.name: operator(node, graph, config) for node in nodes}


def _line_up(
    steps: Iterable[Mapping[str, Any]],
    operators: Mapping[str, Operator],
    lowered: Mapping[str, Lowered],
    config: Config,
) -> dict[str, Linker]:
    """Per accelerator program, its operators' instructions in line."""
    linkers: dict[str, Linker] = {}
    for step in steps:
        if step["kind"] != "vdla":
            continue
        linker = linkers[step["program"]] = Linker(config)
        for name in step["layers"]:
            linker.add(name, lowered[name].kernel, operators[name].tensors)
    return linkers


def _assemble(
    graph: Graph,
    placements: Placements,
    operators: Mapping[str, Operator],
    lowered: Mapping[str, Lowered],
    kernels: Kernels,
    host: HostCode | None,
    steps: list[dict[str, Any]],
    linkers: Mapping[str, Linker],
    config: Config,
    dump: Dumper,
) -> Module:
    """Lays out DRAM, links the streams, and puts everything into a module."""
    constants: dict[str, Array] = host_constants(graph, kernels)
    for made in operators.values():
        constants.update(made.constants)
        constants.update({n: graph.constants[n] for n in _stored(made.node, graph)})
    for name, linker in linkers.items():
        constants[f"{name}{UOPS}"] = np.frombuffer(linker.uops, np.uint8)
    plan = plan_memory(graph, constants)
    end = align(plan.total_bytes)
    programs, linked = {}, {}
    for name, linker in linkers.items():
        addresses = _Addresses(plan, {UOPS: plan.constants[f"{name}{UOPS}"]})
        linked[name] = linker.link(addresses, end)
        program = Program(config, linked[name].instructions, end)
        end = align(end + len(program.instructions) * instruction_bytes(config))
        programs[name] = program.to_bytes()
        dump.write("stream", name, disassemble(program))
    return Module(
        tensors=tensor_table(graph, plan, constants),
        inputs=list(graph.inputs),
        outputs=list(graph.outputs),
        dram_bytes=end,
        steps=[*map(dict, steps)],
        constants=constant_image(plan, constants),
        host=host,
        external=external_models(graph),
        programs=programs,
        config=asdict(config),
        identity=Identity.of(config),
        metadata={
            "model": graph.name,
            "placement": report(graph, placements),
            "layers": _layers(operators, lowered),
            "streams": {
                name: {"layers": _runs(each.layers), "stages": each.stages}
                for name, each in linked.items()
            },
        },
    )


class _Addresses(dict[str, int]):
    """DRAM addresses: a few given ones, then the memory plan's."""

    def __init__(self, plan: MemoryPlan, given: Mapping[str, int]) -> None:
        super().__init__(given)
        self.plan = plan

    def __missing__(self, name: str) -> int:
        return self.plan.address(name)


def _stored(node: Node, graph: Graph) -> list[str]:
    """Constants that a node reads as activations: a residual known at compile time."""
    parameters = {getattr(node, key, None) for key in ("weight", "bias")}
    return [n for n in node.inputs if n in graph.constants and n not in parameters]


def _layers(
    operators: Mapping[str, Operator], lowered: Mapping[str, Lowered]
) -> list[dict[str, Any]]:
    """What reports say of each accelerator layer besides its cycles."""
    return [
        {
            "name": name,
            "op": made.node.op,
            "output": made.node.output,
            "macs": made.macs,
            "dram_bytes": made.dram_bytes,
            "tile": tile_text(lowered[name].tile),
        }
        for name, made in operators.items()
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


# Layers alone -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """A model as ``placed_graph`` gives it, and its accelerator operators by layer."""

    graph: Graph
    placements: Placements
    layers: list[tuple[str, Operator]]


def accelerator_layers(
    graph: Graph, config: Config, options: Options | None = None
) -> tuple[list[Operator], Placements]:
    """The accelerator operators of an imported graph, and where everything was placed."""
    graph, placements = placed_graph(graph, config, options)
    return list(_operators(graph, placements, config).values()), placements


def place_models(
    paths: Mapping[str, Path], config: Config, shapes: Shapes | None = None
) -> dict[str, Placed]:
    """Imports and places ONNX files given by name; ``shapes`` are the sizes that they leave open.

    A layer goes by its node's name; where there are several models, by its model's.
    """
    placed = {}
    for name, path in paths.items():
        graph, placements = placed_graph(import_onnx(path, shapes), config)
        made = _operators(graph, placements, config)
        layers = [(node if len(paths) == 1 else name, op) for node, op in made.items()]
        placed[name] = Placed(graph, placements, layers)
    return placed
