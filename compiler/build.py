"""From an ONNX model to a module: the compiler, top to bottom.

ONNX → typed graph → fuse, fold → for each target: rewrite → place → for each target: lower
     → for each target: lay out → for each target: finish → for each target: part → plan memory
     → for each target: link → module
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from vdla.compiler.assemble import LinkedNetwork, assemble, link
from vdla.compiler.dump import Dumper
from vdla.compiler.frontend.draft import TURNS
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.passes import FIRST, PIPELINE, optimize
from vdla.compiler.graph.spec import Pass, Spec, spec_of
from vdla.compiler.graph.types import Array
from vdla.compiler.models.measuring import Progress, check_samples, measuring
from vdla.compiler.network import Network
from vdla.compiler.placement import ACCELERATOR, PROCESSOR, Placements, report
from vdla.compiler.targets.accelerator.loop_store import LoopStore
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL, Operator
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.compiler.targets.accelerator.target import Accelerator
from vdla.compiler.targets.errors import NoCodeError, TargetError
from vdla.compiler.targets.functions import Traces, untuned
from vdla.compiler.targets.gpu.description import ANY, GPU, Gpu
from vdla.compiler.targets.gpu.target import GpuTarget
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.part import PLAIN, CodeForm
from vdla.compiler.targets.processor.target import ProcessorTarget
from vdla.compiler.targets.search.function_records import FunctionRecords
from vdla.compiler.targets.target import Code, Layout, Target, check_places, place, place_node
from vdla.isa.config import Config
from vdla.runtime.module import Module
from vdla.support.garbage import rare_collection

MAIN = ""  # a graph beside its functions, which have names


@dataclass(frozen=True)
class Options:
    """Options of a compilation.

    ``device`` "cpu" leaves the accelerator out, and "gpu" has a GPU in its place; ``host`` "gpu"
    has a GPU run what the accelerator leaves. ``places`` are nodes that the user places, by their
    names: on "vdla", "gpu" or "cpu"; ``reasons`` says why, where it isn't the user. ``strict``
    leaves to the host what in integers isn't onnxruntime's result bit for bit; ``turns`` is how
    often a loop may run whose number of turns no constant says; ``timing`` makes streams for a
    simulation without numbers. ``samples`` are those of inputs, one behind another, that say what
    ranges floats have. ``loops`` is where processes share scheduled loops. ``vthreads`` is how many
    virtual threads default schedules use. ``min_fill`` is the share of the input lanes that a
    convolution must fill. ``records`` are tuned schedules to use where they fit; None leaves all to
    the analytic model, and ``functions`` those of the processor. ``dump`` is a folder for the text
    after every pass. ``progress`` is told (what, done, of). ``processor`` runs what others don't;
    ``form`` is that of its code. ``gpu`` is what kernels keep to. ``target`` is another's, instead.
    """

    device: str = ACCELERATOR
    host: str = PROCESSOR
    places: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    samples: Mapping[str, Array] = field(default_factory=dict)
    turns: int = TURNS
    timing: bool = False
    loops: LoopStore | None = None
    vthreads: int = 2
    min_fill: float = MIN_FILL
    records: TileRecords | None = BUNDLED
    functions: FunctionRecords | None = None
    dump: Path | None = None
    progress: Progress = lambda what, done, total: None
    processor: Processor = NATIVE
    form: CodeForm = PLAIN
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
        traces = self.traces(self.processor.kind)
        return (*before, ProcessorTarget(self.processor, not before, traces, self.form))

    def traces(self, machine: str) -> Traces:
        """The tuned schedules of functions on a machine."""
        return self.functions.traces(machine) if self.functions else untuned

    def accelerator(self, config: Config) -> Accelerator:
        """The accelerator of a config, as these options have it."""
        kind = self.vthreads, self.min_fill, self.records, self.strict, self.timing, self.loops
        measure = measuring(self.samples, self.progress) if self.samples else None
        return Accelerator(config, *kind, measure)


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
    floats = not options.accelerated
    return import_onnx(path, shapes, floats=floats, strict=strict, turns=options.turns)


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
        if options.samples:
            check_samples(str(path), options.samples, graph)
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
    parts = _rewritten(graph, config, options, dump)
    for each in parts.values():
        each.make(options.progress)
    return _network(parts, parts[MAIN].targets)


def _network(parts: Mapping[str, _Compilation], targets: Sequence[Target]) -> Network:
    """The network of a graph and its functions that are laid out, with the codes that some targets
    make."""
    placements: Placements = {}
    for each in parts.values():
        for part in each.whole():
            placements |= part.placements
    networks = {name: each.network(placements, targets) for name, each in parts.items()}
    main = networks.pop(MAIN)
    return replace(main, functions=networks)


def _rewritten(
    graph: Graph, config: Config, options: Options, dump: Dumper | None = None
) -> dict[str, _Compilation]:
    """A graph, by ``MAIN``, and its functions by their names; all nodes are placed, those of
    regions, too.

    Raises:
        TargetError: a node that the user places is in none of them, or on no target.
    """
    dump = dump or Dumper(options.dump)
    parts = {MAIN: _with_regions(graph, config, options, dump)}
    for name, function in graph.functions.items():
        parts[name] = _with_regions(function, config, options, dump.within(name))
    whole = [part for each in parts.values() for part in each.whole()]
    nodes = [name for part in whole for name in part.named]
    check_places(nodes, options.places)
    return parts


def _with_regions(graph: Graph, config: Config, options: Options, dump: Dumper) -> _Compilation:
    """A graph and its regions, whose nodes are placed."""
    for name, kind in graph.tensors.items():
        if kind.block:
            raise GraphError(
                f"{graph.name}: expected images as [N, C, H, W], found {name} in blocks of "
                f"{kind.block} channels; a graph after the pass layout or block_images is laid out "
                "for its device and doesn't compile again"
            )
    compilation = _compilation(graph, config, options, dump)
    compilation.rewrite()
    for node in compilation.graph.of(ops.Control):
        compilation.regions[node.name] = [
            _with_regions(region, config, options, dump.within(region.name))
            for region in node.regions
        ]
    return compilation


def placed_network(graph: Graph, config: Config, options: Options | None = None) -> Network:
    """An imported graph laid out for its targets, with the code of what the last of them runs."""
    parts = _placed(graph, config, options or Options())
    return _network(parts, parts[MAIN].targets[-1:])


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
    placed = _placed(graph, config, options or Options())[MAIN]
    return placed.graph, placed.placements


class PlacedGraph(NamedTuple):
    """A graph, a region or a function that is laid out, and its runs: the known turns around it."""

    graph: Graph
    placements: Placements
    runs: int = 1


def placed_graphs(
    graph: Graph, config: Config, options: Options | None = None
) -> list[PlacedGraph]:
    """An imported graph with its regions and functions, as ``placed_graph`` gives each."""
    parts = _placed(graph, config, options or Options()).values()
    return [one for part in parts for one in part.placed()]


@dataclass
class _Compilation:
    """A graph on its way through its targets.

    ``places`` are nodes that aren't placed by what targets can, and ``reasons`` says why.
    ``lowered`` is the code of nodes that have it, and ``spec`` is what the graph may hold by now.
    ``regions`` are those of its nodes, by their names, and ``named`` are the nodes that a user may
    place.
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
    named: list[str] = field(default_factory=list)

    def rewrite(self) -> None:
        """Optimizes the graph, has each target change it, and places its nodes; then each target
        makes one operator of several of its own."""
        self.place()
        self._run([each for target in self.targets for each in target.fusions])

    def place(self) -> None:
        """Optimizes the graph, has each target change it, and places its nodes."""
        prepares = [each for target in self.targets for each in target.prepares]
        rewrites = [each for target in self.targets for each in target.rewrites]
        pipeline = [*FIRST, *prepares, *PIPELINE, *rewrites]
        self.spec = reduce(Spec.after, pipeline, spec_of(self.graph))
        self.graph = optimize(self.graph, pipeline, self.dump.graph)
        self.named = [node.name for node in self.graph.nodes]
        self.placements = place(self.graph, self.targets, self.places, self.reasons)

    def make(self, progress: Progress) -> None:
        """Makes the codes of all nodes, those of regions, too, and lays all out."""
        self.check()
        self.lower(progress)
        self.lay_out()
        for region in self.inner():
            region.make(progress)

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

    def inner(self) -> Iterator[_Compilation]:
        """The regions of its nodes."""
        return (region for regions in self.regions.values() for region in regions)

    def whole(self) -> Iterator[_Compilation]:
        """The graph itself, and all regions in it."""
        yield self
        for region in self.inner():
            yield from region.whole()

    def placed(self, runs: int = 1) -> Iterator[PlacedGraph]:
        """The graph, which runs so often, and all regions in it."""
        yield PlacedGraph(self.graph, self.placements, runs)
        for node in self.graph.of(ops.Control):
            turns = node.turns if isinstance(node, ops.Scan) else 1
            for region in self.regions[node.name]:
                yield from region.placed(runs * turns)

    def network(self, placements: Placements, targets: Sequence[Target]) -> Network:
        """The laid-out graph and its regions, with the codes that some targets make of their nodes;
        ``placements`` are those of the whole network, which decide what tensors share."""
        codes: dict[str, Code[object]] = {}
        for target in targets:
            codes |= target.finish(self.graph, placements, self.lowered)
        regions = {
            name: [each.network(placements, targets) for each in regions]
            for name, regions in self.regions.items()
        }
        return Network(self.graph, self.placements, self.targets, codes, regions)


def _placed(graph: Graph, config: Config, options: Options) -> dict[str, _Compilation]:
    """A graph by ``MAIN`` and its functions by their names, laid out without any code."""
    parts = _rewritten(graph, config, options)
    for part in parts.values():
        for each in part.whole():
            each.lay_out()
    return parts


def _compilation(
    graph: Graph, config: Config, options: Options, dump: Dumper | None = None
) -> _Compilation:
    """A graph at the beginning of its way."""
    targets, dump = options.targets(config), dump or Dumper(options.dump)
    return _Compilation(graph, targets, dump, options.places, options.reasons)


# Layers alone -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """A model as ``placed_graphs`` gives it, and its accelerator operators by layer."""

    graphs: list[PlacedGraph]
    layers: list[tuple[str, Operator]]

    @property
    def rows(self) -> list[dict[str, str]]:
        """Rows of the placement report."""
        return [row for each in self.graphs for row in report(each.graph, each.placements)]


def accelerator_layers(
    graph: Graph, config: Config, options: Options | None = None
) -> tuple[list[Operator], Placements]:
    """The accelerator operators of an imported graph and its regions, and where all was placed."""
    placed = placed_graphs(graph, config, options := options or Options())
    placements = {name: where for each in placed for name, where in each.placements.items()}
    return list(_operators(placed, config, options).values()), placements


def place_models(
    paths: Mapping[str, Path], config: Config, shapes: Shapes | None = None
) -> dict[str, Placed]:
    """Imports and places ONNX files given by name; ``shapes`` are the sizes that they leave open.

    A layer goes by its node's name; where there are several models, by its model's.
    """
    models, options = {}, Options()
    for name, path in paths.items():
        placed = placed_graphs(import_onnx(path, shapes), config, options)
        operators = _operators(placed, config, options)
        layers = [(node if len(paths) == 1 else name, op) for node, op in operators.items()]
        models[name] = Placed(placed, layers)
    return models


def _operators(
    placed: Sequence[PlacedGraph], config: Config, options: Options
) -> dict[str, Operator]:
    """The accelerator operators of some graphs, by their nodes' names."""
    accelerator, result = options.accelerator(config), dict[str, Operator]()
    for graph, placements, _ in placed:
        result |= accelerator.operators(graph, placements)
    return result
