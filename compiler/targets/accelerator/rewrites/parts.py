"""Slices of dense layers as layers of their own, where slices are no whole blocks of channels.

The gates of a recurrent cell are often slices of one vector. Where their size is no multiple of a
block, no addresses make a slice; but a layer's outputs may as well be made in parts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.layers import ByElement, operands, operands_first


def part_layers(graph: Graph, accelerator: Capability) -> Graph:
    """Makes parts of layers that are only read in slices, and of what works on them by element.

    before: d = QDense(x): [1, 80]; a = QTake(d): [1, 40]; b = QTake(d): [1, 40]
    after:  a = QDense(x), of the first 40 outputs; b = QDense(x), of the others

    Slices must be vectors' channels one behind another, each taken at most once.
    """

    def cut(layer: ops.QDense | ByElement, editor: Editor) -> Made:
        """Nothing: parts of a layer stand in the places of its slices."""
        slices = _slices(layer, accelerator.block, editor)
        for each in slices:
            if isinstance(layer, ops.QDense):
                editor.replace(each, _part(layer, each, editor))
            else:
                editor.replace(each, *operands_first(each, layer, editor))
        return () if slices else None

    return rewrite(graph, cut)


def _slices(node: Node, block: int, editor: Editor) -> list[ops.QTake]:
    """The slices that a layer's vectors are read in; none where others read them, or all slices are
    whole blocks."""
    shape, uses = editor.shape(node.output), editor.readers(node.output)
    alike = all(editor.shape(name) == shape for name in operands(node))
    if len(shape) != 2 or node.output in editor.outputs:
        return []
    if not (alike or isinstance(node, ops.QDense)):
        return []
    slices = [use for use in uses if type(use) is ops.QTake]
    ranges = [_channels(each, shape[0]) for each in slices]
    known = [each for each in ranges if each is not None]
    once = sum(map(len, known)) == len({n for each in known for n in each})
    ends = [end for each in known for end in (each.start, each.stop)]
    whole = all(end % block == 0 or end == shape[1] for end in ends)
    return slices if len(known) == len(uses) and once and not whole else []


def _part(layer: ops.QDense, node: ops.QTake, editor: Editor) -> ops.QDense:
    """A layer of some of the outputs."""
    places = np.asarray(node.tables()[1])
    weight, bias = (
        np.ascontiguousarray(editor.constants[n][places]) for n in (layer.weight, layer.bias)
    )
    return replace(
        layer,
        name=node.name,
        output=node.output,
        weight=editor.constant(f"{node.name}.weight", weight),
        bias=editor.constant(f"{node.name}.bias", bias),
        requant=replace(layer.requant, scale=tuple(layer.requant.scale[place] for place in places)),
    )


def _channels(node: ops.QTake, rows: int) -> range | None:
    """The channels that a node takes of all vectors, one behind another; None where it doesn't."""
    images, channels = node.tables()
    result = range(channels[0], channels[0] + len(channels))
    whole = images == tuple(range(rows)) and channels[0] >= 0
    return result if whole and channels == tuple(result) else None
