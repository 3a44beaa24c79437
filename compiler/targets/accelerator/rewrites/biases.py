"""Residuals that are known, and the same at all pixels, become one value for each channel.

before: y = QConv2d(x, + r): [1, 512, 1, 128], r = a constant [1, 512, 1, 128]
after:  y = QConv2d(x, + r'): [1, 512, 1, 128], r' = a constant [1, 512, 1, 1]

That is what the biases of dense layers are where they have a scale of their own. ACC then keeps
them beside the other numbers of each channel, and nothing is loaded for a pixel.
"""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import ACCELERATOR, Placements


def fix_biases(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """Stores what accelerated nodes add by channel, where it is known and pixels don't differ."""

    def fixed(node: Node, editor: Editor) -> Made:
        step = node.step_of(ops.AddStep)
        if step is None or placements[node.name].device != ACCELERATOR:
            return None
        addend = step.addend
        whole = editor.constants.get(addend)
        if whole is None or whole.size == whole.shape[1]:
            return None
        channels = whole[:1, :, :1, :1]
        if not np.array_equal(whole, np.broadcast_to(channels, whole.shape)):
            return None
        return node.renamed({addend: editor.constant(f"{addend}.channels", channels.copy())})

    return rewrite(graph, fixed), placements
