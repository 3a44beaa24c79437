"""Dense layers behind a flatten read the image itself, as a convolution over all of it.

Pixels of an image in channel blocks don't lie in the order of a flat vector: the host would copy
them between two programs of the accelerator.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.operators.template import template_of


def read_images(graph: Graph, accelerator: Capability) -> Graph:
    """Lets dense layers read the images that the accelerator writes.

    before: x: [1, 64, 7, 7] of QConv2d; f = QReshape(x): [1, 3136]; y = QDense(f, w: [512, 3136])
    after:  y = QDense(x, w)
    """

    def whole(node: ops.QDense, editor: Editor) -> Made:
        flat = editor.maker(node.data, ops.QReshape)
        if flat is None or not accelerator.takes(editor.maker(flat.data, Node), editor):
            return None
        made = replace(node, data=flat.data)
        return made if _fits(made, editor.graph(), accelerator) else None

    return rewrite(graph, whole)


def _fits(node: ops.QDense, graph: Graph, accelerator: Capability) -> bool:
    """Whether its data is an image that fills the lanes, and the buffers hold a tile of it."""
    shape, flat = graph.tensors[node.data].shape, graph.constants[node.weight].shape[1]
    if len(shape) != 4 or shape[1] * shape[2] * shape[3] != flat:
        return False
    config = accelerator.config
    if shape[1] < accelerator.min_fill * config.block_in:
        return False
    tiles = template_of(node, graph, config).tiles(config, 1)
    return next(tiles, None) is not None
