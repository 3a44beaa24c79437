"""From an ONNX model to a module: the compiler, top to bottom.

ONNX → typed graph → fuse, fold → for each target: rewrite → place → for each target: lower
     → for each target: lay out → for each target: finish → for each target: part → plan memory
     → for each target: link → module
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vdla.compiler.assemble import LinkedNetwork, assemble, link
from vdla.compiler.dump import Dumper
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.passes import PIPELINE, optimize
from vdla.compiler.graph.spec import Pass, Spec, spec_of
from vdla.compiler.network import Network
from vdla.compiler.placement import ACCELERATOR, PROCESSOR, Placements
from vdla.compiler.targets.accelerator.loop_store import LoopStore
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL, Operator
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.compiler.targets.accelerator.target import Accelerator
from vdla.compiler.targets.errors import NoCodeError, TargetError
from vdla.compiler.targets.functions import Traces, untuned
from vdla.compiler.targets.gpu.description import ANY, GPU, Gpu
from vdla.compiler.targets.gpu.target import GpuTarget
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.target import ProcessorTarget
from vdla.compiler.targets.search.function_records import FunctionRecords
from vdla.compiler.targets.target import Code, Layout, Target, place, place_node
from vdla.isa.config import Config
from vdla.runtime.module import Module
from vdla.support.garbage import rare_collection

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """Options of a compilation.

    ``device`` "cpu" leaves the accelerator out, and "gpu" has a GPU in its place; ``host`` "gpu"
    has a GPU run what the accelerator leaves. ``places`` are nodes that the user places, by their
    names: on "vdla", "gpu" or "cpu"; ``reasons`` says why, where it isn't the user. ``strict``
    leaves to the host what in integers isn't onnxruntime's result bit for bit; ``timing`` makes
    streams for a simulation without numbers.
    ``loops`` is where processes share scheduled loops. ``vthreads`` is how many virtual threads
    default schedules use. ``min_fill`` is the share of the input lanes a convolution must fill.
    ``records`` are tuned schedules to use where they fit; None leaves all to the analytic model.
    ``functions`` are those of the processor's functions. ``dump`` is a folder for the text after
    every pass. ``progress`` is told (what, done, of). ``processor`` runs what the others don't;
    ``gpu`` is what kernels must keep to. ``target`` is another package's, in the accelerator's
    place.
    """

    device: str = ACCELERATOR
    host: str = PROCESSOR
    places: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    timing: bool = False
    loops: LoopStore | None = None
    vthreads: int = 2
    min_fill: float = MIN_FILL
    records: TileRecords | None = BUNDLED
    functions: FunctionRecords | None = None
    dump: Path | None = None
    progress: Progress = lambda what, done, total: None
    processor: Processor = NATIVE
    gpu: Gpu = ANY
    target: Target | None = None

    @property
    def accelerated(self) -> bool:
        """Whether the network is compiled for the accelerator."""
        return self.device not in (PROCESSOR, GPU) and self.target is None

    def targets(self, config: Config) -> tuple[Target, ...]:
        """Targets that a network is compiled for, in the order in which they are asked."""
        before: list[Target] = []
        if self.target is not None:
            before.append(self.target)
        elif self.accelerated:
            before.append(self.accelerator(config))
        if GPU in (self.device, self.host):
            before.append(GpuTarget(self.gpu, traces=self.traces(self.gpu.name)))
        alone = not before
        return (
            *before,
            ProcessorTarget(self.processor, alone=alone, traces=self.traces(self.processor.kind)),
        )

    def traces(self, machine: str) -> Traces:
        """The tuned schedules of functions on a machine."""
        return self.functions.traces(machine) if self.functions else untuned

    def accelerator(self, config: Config) -> Accelerator:
        """The accelerator of a config, as these options have it."""
        kind = self.vthreads, self.min_fill, self.records, self.strict, self.timing, self.loops
        return Accelerator(config, *kind)


def import_graph(
    path: str | Path, options: Options | None = None, shapes: Shapes | None = None
) -> Graph:
    """The graph of an ONNX file as these options have it; ``shapes`` are the sizes that it leaves
    open.

    Raises:
        ModelError: as ``import_onnx``.
    """
    options = options or Options()
    strict = options.strict and options.accelerated
    return import_onnx(path, shapes, floats=not options.accelerated, strict=strict)


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
        TilingError: the config's buffers can't hold one tile of an operator, and no processor can.
        TargetError: there is no linker for the processor, or it would need onnxruntime.
    """
    options = options or Options()
    with rare_collection():
        graph = import_graph(path, options, shapes)
        return compile_graph(graph, config, options)


def compile_graph(graph: Graph, config: Config, options: Options | None = None) -> Module:
    """Compiles an imported graph.

    Raises:
        GraphError: it is laid out for a device already.
    """
    options = options or Options()
    dump = Dumper(options.dump)
    return assemble(_whole_network(graph, config, options, dump), config, dump)


def link_graph(graph: Graph, config: Config, options: Options | None = None) -> LinkedNetwork:
    """An imported graph's streams and addresses, as ``compile_graph`` makes them; no processor's
    machine code is made."""
    options = options or Options()
    return link(_whole_network(graph, config, options, Dumper(options.dump)), config)


def _whole_network(graph: Graph, config: Config, options: Options, dump: Dumper) -> Network:
    """A graph with its functions, and the code of each node."""
    whole = _laid_out(graph, config, options, dump)
    functions = {
        name: _laid_out(function, config, options, dump.within(name))
        for name, function in graph.functions.items()
    }
    parts = [part for each in (whole, *functions.values()) for part in each.whole()]
    placements = {name: place for part in parts for name, place in part.placements.items()}
    return replace(
        whole.finish(placements),
        functions={name: function.finish(placements) for name, function in functions.items()},
    )


def _laid_out(graph: Graph, config: Config, options: Options, dump: Dumper) -> _Compilation:
    """A graph and its regions as their devices have them, with what was lowered."""
    for name, kind in graph.tensors.items():
        if kind.block:
            raise GraphError(
                f"{graph.name}: expected images as [N, C, H, W], found {name} in blocks of "
                f"{kind.block} channels; a graph after the pass layout or block_images is laid out "
                "for its device and doesn't compile again"
            )
    compilation = _compilation(graph, config, options, dump)
    compilation.rewrite()
    compilation.check()
    compilation.lower(options.progress)
    compilation.lay_out()
    for node in compilation.graph.of(ops.Control):
        if node.regions:
            compilation.regions[node.name] = [
                _laid_out(region, config, options, dump.within(region.name))
                for region in node.regions
            ]
    return compilation


def placed_network(graph: Graph, config: Config, options: Options | None = None) -> Network:
    """An imported graph laid out for its targets, without any code."""
    return _placed(graph, config, options or Options()).network({})


def rewritten_graph(
    graph: Graph, config: Config, options: Options | None = None
) -> tuple[Graph, Placements]:
    """An imported graph as its devices compute it, before any fuses operators of its own."""
    compilation = _compilation(graph, config, options or Options())
    compilation.place()
    return compilation.graph, compilation.placements


def placed_graph(
    graph: Graph, config: Config, options: Options | None = None
) -> tuple[Graph, Placements]:
    """An imported graph as the compiler lays it out for its devices, before any schedule."""
    placed = _placed(graph, config, options or Options())
    return placed.graph, placed.placements


@dataclass
class _Compilation:
    """A graph on its way through its targets.

    ``places`` are nodes that aren't placed by what targets can, and ``reasons`` says why.
    ``lowered`` is the code of nodes that have it, and ``spec`` is what the graph may hold by now.
    ``regions`` are those of its nodes that hold any, by their names.
    """

    graph: Graph
    targets: Sequence[Target]
    dump: Dumper
    places: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    placements: Placements = field(default_factory=dict)
    lowered: dict[str, Any] = field(default_factory=dict)
    spec: Spec = field(default_factory=Spec)
    regions: dict[str, list[_Compilation]] = field(default_factory=dict)

    def whole(self) -> Iterator[_Compilation]:
        """The graph itself, then its regions, each with its own."""
        yield self
        for region in (each for regions in self.regions.values() for each in regions):
            yield from region.whole()

    def rewrite(self) -> None:
        """Optimizes the graph, has each target change it, and places its nodes; then each target
        makes one operator of several of its own."""
        self.place()
        self._run([each for target in self.targets for each in target.fusions])

    def place(self) -> None:
        """Optimizes the graph, has each target change it, and places its nodes."""
        prepares = [each for target in self.targets for each in target.prepares]
        rewrites = [each for target in self.targets for each in target.rewrites]
        pipeline = [*prepares, *PIPELINE, *rewrites]
        self.spec = reduce(Spec.after, pipeline, spec_of(self.graph))
        self.graph = optimize(self.graph, pipeline, self.dump.graph)
        self.placements = place(self.graph, self.targets, self.places, self.reasons)

    def check(self) -> None:
        """Raises TargetError where a target objects to the placed graph."""
        for target in self.targets:
            objection = target.objection(self.graph)
            if objection is not None:
                raise TargetError(objection)

    def lower(self, progress: Progress) -> None:
        """Has targets make the code of their nodes; a node without falls to the next target."""
        for number, target in enumerate(self.targets):
            if target.LOWERS:
                own = self._placed_on(target)
                for done, node in enumerate(own):
                    progress("lower", done, len(own))
                    self._lower(node, target, self.targets[number + 1 :])

    def _lower(self, node: Node, target: Target, others: Sequence[Target]) -> None:
        try:
            report = self.dump.layer(node.name)
            self.lowered[node.name] = target.lower(node, self.graph, report)
        except NoCodeError as error:
            self.placements[node.name] = place_node(node, self.graph, others, [str(error)])

    def _placed_on(self, target: Target) -> list[Node]:
        return [n for n in self.graph.nodes if self.placements[n.name].device == target.DEVICE]

    def lay_out(self) -> None:
        """Gives each target its tensors as it wants them, with the copies between devices."""
        self._run([each for target in self.targets for each in target.layouts])

    def _run(self, passes: Sequence[Pass[Layout]]) -> None:
        for each in passes:
            graph, self.placements = each.run(self.graph, self.placements)
            self._check(each, graph)

    def _check(self, done: Pass[Any], graph: Graph) -> None:
        """Takes the graph that a pass left, if it is one that it may leave."""
        self.spec = self.spec.after(done)
        self.graph = verify(graph, self.spec, before=self.graph)
        self.dump.graph(done.name, graph)

    def finish(self, placements: Placements) -> Network:
        """The graph and its regions with code that the targets made of their nodes; ``placements``
        are those of all graphs that it is compiled with, on which depends how tensors lie."""
        codes: dict[str, Code[object]] = {}
        for target in self.targets:
            codes |= target.finish(self.graph, placements, self.lowered)
        regions = {
            name: [region.finish(placements) for region in regions]
            for name, regions in self.regions.items()
        }
        return replace(self.network(codes), regions=regions)

    def network(self, codes: Mapping[str, Code[object]]) -> Network:
        """The laid-out graph, with codes of its nodes."""
        return Network(self.graph, self.placements, self.targets, codes)


def _placed(graph: Graph, config: Config, options: Options) -> _Compilation:
    """A graph that is laid out, without any code."""
    compilation = _compilation(graph, config, options)
    compilation.rewrite()
    compilation.lay_out()
    return compilation


def _compilation(
    graph: Graph, config: Config, options: Options, dump: Dumper | None = None
) -> _Compilation:
    """A graph at the beginning of its way."""
    targets, dump = options.targets(config), dump or Dumper(options.dump)
    return _Compilation(graph, targets, dump, options.places, options.reasons)


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
    options = options or Options()
    placed = _placed(graph, config, options)
    operators = options.accelerator(config).operators(placed.graph, placed.placements)
    return list(operators.values()), placed.placements


def place_models(
    paths: Mapping[str, Path], config: Config, shapes: Shapes | None = None
) -> dict[str, Placed]:
    """Imports and places ONNX files given by name; ``shapes`` are the sizes that they leave open.

    A layer goes by its node's name; where there are several models, by its model's.
    """
    models, options = {}, Options()
    for name, path in paths.items():
        placed = _placed(import_onnx(path, shapes), config, options)
        operators = options.accelerator(config).operators(placed.graph, placed.placements)
        layers = [(node if len(paths) == 1 else name, op) for node, op in operators.items()]
        models[name] = Placed(placed.graph, placed.placements, layers)
    return models
