"""The accelerator as a target of the compiler: what it runs, and the code of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.measured import Measure
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.passes import MOVING, Rewrite
from vdla.compiler.graph.passes.affine import spell_affine
from vdla.compiler.graph.passes.fuse_integer import fuse_residual
from vdla.compiler.graph.passes.pieces import join_pieces
from vdla.compiler.graph.passes.round_images import round_images
from vdla.compiler.graph.passes.round_weights import round_weights
from vdla.compiler.graph.passes.spellings import respell
from vdla.compiler.graph.passes.unroll import unroll
from vdla.compiler.graph.spec import LAYOUT, Pass
from vdla.compiler.placement import ACCELERATOR, Placement, Placements
from vdla.compiler.schedule import ScheduleError
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.codegen.kernel import Kernel
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.targets.accelerator.description.fit import IntrinsicError
from vdla.compiler.targets.accelerator.kernels import kernel_of
from vdla.compiler.targets.accelerator.loop_store import LoopStore
from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.template import (
    BY_NODE,
    MIN_FILL,
    AnyTemplate,
    Operator,
    Tile,
    operator_of,
    template_of,
)
from vdla.compiler.targets.accelerator.part import Layer, StreamPart
from vdla.compiler.targets.accelerator.rewrites.biases import fix_biases
from vdla.compiler.targets.accelerator.rewrites.byte_products import products_of_bytes
from vdla.compiler.targets.accelerator.rewrites.byte_sums import sums_as_bytes
from vdla.compiler.targets.accelerator.rewrites.flatten import read_images
from vdla.compiler.targets.accelerator.rewrites.floats import quantize_floats
from vdla.compiler.targets.accelerator.rewrites.fuse_attention import attends, fuse_attention
from vdla.compiler.targets.accelerator.rewrites.fuse_conversions import fuse_conversions
from vdla.compiler.targets.accelerator.rewrites.fuse_separable import (
    Costs,
    fuse_separable,
    fuses,
)
from vdla.compiler.targets.accelerator.rewrites.fuse_tables import fuse_tables, looks_up
from vdla.compiler.targets.accelerator.rewrites.heads import pad_heads
from vdla.compiler.targets.accelerator.rewrites.host import host_around
from vdla.compiler.targets.accelerator.rewrites.layers import normalizes
from vdla.compiler.targets.accelerator.rewrites.layout import layout
from vdla.compiler.targets.accelerator.rewrites.parts import part_layers
from vdla.compiler.targets.accelerator.rewrites.rescale import rescale_tables
from vdla.compiler.targets.accelerator.rewrites.rows import sequences_as_rows
from vdla.compiler.targets.accelerator.rewrites.selection import select_channels
from vdla.compiler.targets.accelerator.rewrites.sequences import sequences_as_images
from vdla.compiler.targets.accelerator.rewrites.sparse import name_sparse
from vdla.compiler.targets.accelerator.rewrites.tails import leave_tails
from vdla.compiler.targets.accelerator.rewrites.taps import fold_taps
from vdla.compiler.targets.accelerator.rewrites.views import view_parts, view_slices
from vdla.compiler.targets.accelerator.rewrites.wide import fuse_wide
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.target import Code, Layout, Report, Target
from vdla.isa.config import Config

# What keeps an operator from the accelerator: no tile or no instructions of its schedule.
NO_KERNEL = (TilingError, AllocationError, CodegenError, ScheduleError, IntrinsicError)


@dataclass(frozen=True)
class Lowered:
    """A node's template, its tile and its instructions."""

    template: AnyTemplate
    tile: Tile
    kernel: Kernel


@dataclass(frozen=True)
class Accelerator(Target):
    """The accelerator of a config.

    ``vthreads`` is how many virtual threads default schedules use. ``min_fill`` is the share of the
    input lanes that a convolution must fill. ``records`` are tuned schedules to use where they fit;
    None leaves all to the analytic model. ``strict`` leaves to the host what in integers isn't the
    float operators' result bit for bit. ``timing`` makes streams that only their cycles are wanted
    of: tuned layers of one geometry share their instructions, whatever numbers stand in these.
    ``loops`` is where processes share scheduled loops. ``measure`` gives ranges of tensors of
    floats on samples, where there are any.
    """

    DEVICE: ClassVar[str] = ACCELERATOR
    LOWERS: ClassVar[bool] = True

    config: Config
    vthreads: int = 2
    min_fill: float = MIN_FILL
    records: TileRecords | None = BUNDLED
    strict: bool = False
    timing: bool = False
    loops: LoopStore | None = None
    measure: Measure | None = None

    @property
    def capability(self) -> Capability:
        """The nodes of a graph that it takes."""
        return Capability(self.config, self.min_fill, self.strict)

    @property
    def prepares(self) -> Sequence[Pass[Rewrite]]:
        """Turns of short loops as one graph; islands of 16 bits as integers; attention's operators
        in one spelling, normalizations and softmax in pieces as one, where it has integers for
        them; int8 for what a file leaves in floats between integers."""

        def on(rewrite: Callable[[Graph, Capability], Graph]) -> Rewrite:
            return lambda graph: rewrite(graph, self.capability)

        def quantized(graph: Graph) -> Graph:
            return quantize_floats(graph, self.capability, self.measure)

        flips = frozenset((ops.FlipSign,))
        unrolled: Pass[Rewrite] = Pass("unroll", unroll)
        fused: Pass[Rewrite] = Pass("fuse_wide", on(fuse_wide), adds=flips)
        rounds: tuple[Pass[Rewrite], ...] = (
            Pass("round_weights", round_weights),
            Pass("round_images", round_images, adds=flips),
        )
        if not normalizes(self.config):
            return (unrolled, fused) if self.strict else (unrolled, fused, *rounds)
        whole: Pass[Rewrite] = Pass(
            "quantize_floats", quantized, adds=MOVING | flips | {ops.QConcat}
        )
        if self.strict:
            return unrolled, whole, fused
        return (
            unrolled,
            *rounds,
            whole,
            fused,
            Pass("spell_affine", spell_affine),
            Pass("respell", respell),
            Pass("join_pieces", join_pieces),
        )

    @property
    def rewrites(self) -> Sequence[Pass[Rewrite]]:
        """Moves become addresses, or convolutions; convolutions of few channels get more."""

        def on(rewrite: Callable[[Graph, Capability], Graph]) -> Rewrite:
            return lambda graph: rewrite(graph, self.capability)

        return (
            Pass("sequences_as_rows", on(sequences_as_rows), adds=frozenset((ops.QTakeView,))),
            Pass("part_layers", on(part_layers)),
            Pass("pad_heads", on(pad_heads)),
            Pass("sequences_as_images", on(sequences_as_images), adds=frozenset((ops.QView,))),
            Pass("sums_as_bytes", on(sums_as_bytes)),
            Pass("fuse_sums", fuse_residual),
            Pass("read_images", on(read_images)),
            Pass("view_slices", on(view_slices), adds=frozenset((ops.QTakeView,))),
            Pass("select_channels", on(select_channels), adds=frozenset((ops.AddStep,))),
            Pass("rescale_tables", rescale_tables),
            Pass("view_parts", on(view_parts), adds=frozenset((ops.QConcatView,))),
            Pass("products_of_bytes", on(products_of_bytes)),
            Pass("fold_taps", on(fold_taps), adds=frozenset((ops.Im2col,))),
        )

    @property
    def fusions(self) -> Sequence[Pass[Layout]]:
        """Little work behind the host's stays there; known residuals by channel; separable
        convolutions take in their neighbours where the config can and it pays, products their
        softmax, convolutions the functions of their results; layers that leave out zero tiles say
        so.
        """

        def fused(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
            costs = Costs(self.config, self.vthreads, self.records)
            return fuse_separable(graph, placements, costs)

        result: list[Pass[Layout]] = [
            Pass("leave_tails", leave_tails),
            Pass("fix_biases", fix_biases),
        ]
        if fuses(self.config):
            result.append(Pass("fuse_separable", fused, adds=frozenset((ops.Fused,))))
        if attends(self.config):

            def attended(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
                return fuse_attention(graph, placements, self.config)

            result.append(Pass("fuse_attention", attended, adds=frozenset((QAttention,))))
        if looks_up(self.config):
            result.append(Pass("fuse_tables", fuse_tables, adds=frozenset((ops.TableStep,))))
        result.append(Pass("name_sparse", partial(name_sparse, config=self.config)))
        return result

    @property
    def layouts(self) -> Sequence[Pass[Layout]]:
        """Channel blocks for the accelerator; the processor's conversions as one pass each,
        before or behind all streams where they can be."""

        def laid_out(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
            return layout(graph, placements, self.config.channel_block)

        def converted(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
            return host_around(*fuse_conversions(graph, placements))

        return (
            Pass("layout", laid_out, adds=LAYOUT, blocks=True),
            Pass("fuse_conversions", converted, adds=frozenset((ops.Fused,))),
        )

    def refusal(self, node: Node, graph: Graph) -> str | None:
        """Reason for which a node is better off on the processor: no template, or one
        that says so.
        """
        return self.capability.refusal(node, graph)

    def placement(self, node: Node, refusals: Sequence[str]) -> Placement:
        """On the accelerator; the template says as what."""
        if isinstance(node, ops.ByAddresses):
            return Placement(ACCELERATOR, node.PLACED)
        return Placement(ACCELERATOR, BY_NODE[type(node)].placed(node))

    def lower(self, node: Node, graph: Graph, report: Report | None = None) -> Lowered | None:
        """The instructions of a node; None where addresses alone do its work.

        Raises:
            NoCodeError: the config has no legal schedule for it.
        """
        if isinstance(node, ops.ByAddresses):
            return None
        template = template_of(node, graph, self.config)
        try:
            tile = default_tile(template, self.config, self.vthreads, self.records)
            if report is None or template.instructions(tile, self.config) is not None:
                known = template.geometry if self.timing and template.TUNED else template
                return Lowered(template, tile, kernel_of(known, tile, self.config, self.loops))
            schedule = template.schedule(tile, self.config)
            return Lowered(template, tile, lower_schedule(schedule, self.config, report))
        except NO_KERNEL as error:
            raise NoCodeError(str(error)) from error

    def operators(
        self,
        graph: Graph,
        placements: Placements,
        lowered: Mapping[str, Lowered | None] = MappingProxyType({}),
    ) -> dict[str, Operator]:
        """Operators by their nodes' names: templates with their places in the graph. A node that is
        no work has none."""
        operators = {}
        for node in graph.nodes:
            accelerated = placements[node.name].device == ACCELERATOR
            if accelerated and not isinstance(node, ops.ByAddresses):
                known = lowered.get(node.name)
                template = known.template if known else template_of(node, graph, self.config)
                operator = operator_of(node, graph, template, self.config)
                sizes = known.kernel.tensors if known else {}
                operators[node.name] = operator.with_kernel(sizes)
        return operators

    def finish(
        self, graph: Graph, placements: Placements, lowered: Mapping[str, Lowered | None]
    ) -> dict[str, Code[Layer]]:
        """Layers by their nodes' names, with the constants that they read."""
        codes = {}
        for name, operator in self.operators(graph, placements, lowered).items():
            made = lowered[name]
            assert made is not None  # which a node that is no work is, and it has no operator
            layer = Layer(operator, made.tile, made.kernel)
            node = operator.node
            stored = [n for n in node.inputs if n in graph.constants and n not in node.parameters]
            constants = {**operator.constants, **{n: graph.constants[n] for n in stored}}
            codes[name] = Code(layer, tuple(operator.tensors.values()), constants)
        return codes

    def part(
        self, graph: Graph, placements: Placements, codes: Mapping[str, Code[Layer]]
    ) -> StreamPart:
        """Streams of the layers."""
        return StreamPart(graph, codes, self.config)
