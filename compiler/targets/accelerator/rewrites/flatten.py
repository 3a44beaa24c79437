"""Dense layers behind a flatten read the image itself, as a convolution over all of it.

Pixels of an image in channel blocks don't lie in the order of a flat vector: the host would copy
them between two programs of the accelerator.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL, template_of
from vdla.compiler.targets.accelerator.refusal import refusal
from vdla.isa.config import Config


def read_images(graph: Graph, config: Config, min_fill: float = MIN_FILL) -> Graph:
    """Lets dense layers read the images that the accelerator writes.

    before: x: [1, 64, 7, 7] of QConv2d; f = QReshape(x): [1, 3136]; y = QDense(f, w: [512, 3136])
    after:  y = QDense(x, w)
    """

    def whole(node: ops.QDense, editor: Editor) -> Made:
        flat = editor.maker(node.data, ops.QReshape)
        maker = editor.maker(flat.data, Node) if flat else None
        if flat is None or maker is None:
            return None
        now, made = editor.graph(), replace(node, data=flat.data)
        accelerated = refusal(maker, now, config, min_fill) is None
        return made if accelerated and _fits(made, now, config, min_fill) else None

    return rewrite(graph, whole)


def _fits(node: ops.QDense, graph: Graph, config: Config, min_fill: float) -> bool:
    """Whether its data is an image that fills the lanes, and the buffers hold a tile of it."""
    shape, flat = graph.tensors[node.data].shape, graph.constants[node.weight].shape[1]
    if len(shape) != 4 or shape[1] * shape[2] * shape[3] != flat:
        return False
    if shape[1] < min_fill * config.block_in:
        return False
    tiles = template_of(node, graph, config).tiles(config, 1)
    return next(tiles, None) is not None
