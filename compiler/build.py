"""From an ONNX model to a module: the compiler, top to bottom.

ONNX → typed graph → fuse, fold → fold taps → place → lay out, fuse what the host keeps
     → accelerator operators and host functions → plan memory → link the streams → module
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vdla.compiler.assemble import Lowered, Network, assemble
from vdla.compiler.dump import Dumper
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.passes import optimize
from vdla.compiler.placement import (
    ACCELERATOR,
    HOST,
    Placement,
    Placements,
)
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.targets.accelerator.description.fit import IntrinsicError
from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.template import (
    AnyTemplate,
    Operator,
    Tile,
    operator,
    template_of,
)
from vdla.compiler.targets.accelerator.partition import partition
from vdla.compiler.targets.accelerator.rewrites.fuse_host import fuse_host
from vdla.compiler.targets.accelerator.rewrites.layout import layout
from vdla.compiler.targets.accelerator.rewrites.taps import fold_taps
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor, Vectors
from vdla.compiler.targets.processor.kernels import untuned
from vdla.compiler.targets.processor.rewrites.fuse_ops import fuse_ops
from vdla.compiler.targets.processor.rewrites.images import block_images
from vdla.compiler.targets.processor.rewrites.products import stack_products
from vdla.compiler.targets.processor.search.function_records import FunctionRecords
from vdla.compiler.targets.processor.steps import (
    check_external,
    host_kernels,
)
from vdla.isa.config import Config
from vdla.runtime.module import Module

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]

# What keeps an operator from the accelerator: no tile or no instructions of its schedule.
NO_KERNEL = (TilingError, AllocationError, CodegenError, ScheduleError, IntrinsicError)

# A graph that is the processor's alone, on its way to functions.
HOST_PASSES: tuple[tuple[str, Callable[[Graph, Vectors], Graph]], ...] = (
    ("stack_products", lambda graph, _: stack_products(graph)),
    ("block_images", block_images),
    ("fuse_ops", lambda graph, _: fuse_ops(graph)),
)


@dataclass(frozen=True)
class Options:
    """How to compile.

    ``device`` "cpu" leaves the accelerator out. ``vthreads`` is how many virtual threads default
    schedules use. ``min_fill`` is the share of the input lanes a convolution must fill.
    ``records`` are tuned schedules to use where they fit; None leaves all to the analytic model.
    ``functions`` are those of the host's functions. ``dump`` is a folder for the program's text
    after every pass. ``progress`` is told (what, done, of). ``host`` is the processor that runs
    what the accelerator doesn't.
    """

    device: str = ACCELERATOR
    vthreads: int = 2
    min_fill: float = 0.5
    records: TileRecords | None = BUNDLED
    functions: FunctionRecords | None = None
    dump: Path | None = None
    progress: Progress = lambda what, done, total: None
    host: Processor = NATIVE


def compile_model(
    path: str | Path,
    config: Config,
    options: Options | None = None,
    shapes: Shapes | None = None,
) -> Module:
    """Compiles an ONNX file; ``shapes`` are the sizes that it leaves open.

    Raises:
        ModelError: the file is not a model that can be compiled; for the accelerator, one without
            quantized operators.
        TilingError: the config's buffers can't hold one tile of some operator, and no host can.
        TargetError: there is no linker for the host's processor, or it would need onnxruntime.
    """
    options = options or Options()
    graph = import_onnx(path, shapes, floats=options.device == HOST)
    return compile_graph(graph, config, options)


def compile_graph(graph: Graph, config: Config, options: Options | None = None) -> Module:
    """Compiles an imported graph.

    Raises:
        GraphError: it is laid out for a device already.
    """
    options = options or Options()
    for name, kind in graph.tensors.items():
        if kind.block:
            raise GraphError(
                f"{graph.name}: expected images as [N, C, H, W], found {name} in blocks of "
                f"{kind.block} channels; a graph after the pass layout or block_images is laid out "
                "for its device and doesn't compile again"
            )
    dump = Dumper(options.dump)
    graph, placements = _place(graph, config, options, dump)
    check_external(graph, options.host)
    placements, lowered = _lower(graph, placements, config, options, dump)
    graph, placements = _lay_out(graph, placements, config, options, dump)
    operators = _operators(graph, placements, config)
    traces = options.functions.trace if options.functions else untuned
    kernels = host_kernels(graph, placements, options.host, traces)
    network = Network(graph, placements, operators, lowered, kernels)
    return assemble(network, config, options.host, dump)


def placed_graph(
    graph: Graph, config: Config, options: Options | None = None
) -> tuple[Graph, Placements]:
    """An imported graph as the compiler lays it out for its devices, before any schedule."""
    options = options or Options()
    dump = Dumper(options.dump)
    graph, placements = _place(graph, config, options, dump)
    return _lay_out(graph, placements, config, options, dump)


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
    graph: Graph, placements: Placements, config: Config, options: Options, dump: Dumper
) -> tuple[Graph, Placements]:
    """The graph with each device's tensors as it wants them, and the copies between devices."""
    if options.device == HOST:
        for name, run in HOST_PASSES:
            graph = run(graph, options.host.vectors)
            dump.graph(name, graph)
        return graph, partition(graph, config, HOST)
    graph, placements = layout(graph, placements, config.channel_block)
    dump.graph("layout", graph)
    graph, placements = fuse_host(graph, placements)
    dump.graph("fuse_host", graph)
    return graph, placements


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
        except NO_KERNEL as error:
            placements[node.name] = Placement(HOST, str(error))
    return placements, lowered


@lru_cache(maxsize=512)
def _kernel(template: AnyTemplate, tile: Tile, config: Config) -> Kernel:
    """The instructions of a template: layers that are equal are lowered once in a process."""
    return lower_schedule(template.schedule(tile, config), config)


def _operators(graph: Graph, placements: Placements, config: Config) -> dict[str, Operator]:
    nodes = (n for n in graph.nodes if placements[n.name].device == ACCELERATOR)
    return {node.name: operator(node, graph, config) for node in nodes}


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
        operators = _operators(graph, placements, config)
        layers = [(node if len(paths) == 1 else name, op) for node, op in operators.items()]
        placed[name] = Placed(graph, placements, layers)
    return placed
