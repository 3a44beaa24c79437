"""Functions of a convolution's result are looked up before that is stored.

before: v = QConv2d(x); y = QTable(v, table)         after: y = QConv2d(x, table behind it)

What is looked up doesn't go through DRAM, and VECTOR does it while COMPUTE goes on.
"""

from __future__ import annotations

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import ACCELERATOR, Placement, Placements
from vdla.compiler.targets.accelerator.operators.template import BY_NODE
from vdla.compiler.targets.accelerator.options.tables import no_tables
from vdla.isa.config import Config


def looks_up(config: Config) -> bool:
    """Whether a config has tables to look results up in."""
    return no_tables(config) is None


def fuse_tables(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """Joins each table to the convolution that alone makes what it reads, both accelerated."""
    placed = dict(placements)

    def joined(node: ops.QTable, editor: Editor) -> Made:
        maker = editor.own_maker(node.data, Node)
        made = maker.with_step(node) if maker is not None else None
        if maker is None or made is None:
            return None
        if any(placed[each.name].device != ACCELERATOR for each in (maker, node)):
            return None
        placed[made.name] = Placement(ACCELERATOR, BY_NODE[type(made)].placed(made))
        editor.erase(maker)
        return made

    return rewrite(graph, joined), placed
