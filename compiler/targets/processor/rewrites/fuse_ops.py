"""Fusion of operators that work element by element with what they read from or are read by."""

from __future__ import annotations

from vdla.compiler.graph.ir import Graph
from vdla.compiler.targets.groups import fuse_groups
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.operators import template_for
from vdla.compiler.targets.processor.views import view_of


def fuse_ops(graph: Graph, processor: Processor) -> Graph:
    """The graph with its groups as :class:`ops.Fused`; operators with a template take others, and
    views stay what they are."""
    return fuse_groups(
        graph,
        lambda node: template_for(node, graph, processor) is not None,
        lambda node: view_of(node, graph) is None,
    )
