"""Changes of scale before a concatenation, done by the table that makes the part.

A part at the scale of the result needs no copy (``views.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import requantize
from vdla.isa.numbers import pack_scale


def rescale_tables(graph: Graph) -> Graph:
    """Has a table give the scale of the concatenation that alone reads its result.

    before: b = QTable(x, t); y = QConcat(a, b), b at another scale than y
    after:  b = QTable(x, t'), at the scale of y; y = QConcat(a, b)

    Both roundings are in the new table, the old one's and the concatenation's, so that no number
    changes. A concatenation that also limits its parts stays.
    """
    return rewrite(graph, _rescaled)


def _rescaled(node: ops.QConcat, editor: Editor) -> Made:
    """The concatenation behind tables that give its scale."""
    scales, zeros = list(node.requant.scale), list(node.zeros)
    if type(node) is not ops.QConcat or node.requant.clips:
        return None
    for number, name in enumerate(node.parts):
        maker = editor.own_maker(name, ops.QTable)
        if maker is not None and not node.is_copy(number):
            editor.replace(maker, _at_scale_of(node, number, maker, editor))
            scales[number], zeros[number] = 1.0, node.requant.zero
    requant = replace(node.requant, scale=tuple(scales))
    made = replace(node, zeros=tuple(zeros), requant=requant)
    return None if made == node else made


def _at_scale_of(node: ops.QConcat, number: int, maker: ops.QTable, editor: Editor) -> ops.QTable:
    """A table that gives a part as a concatenation has it."""
    quant = editor.tensors[node.output].quant
    values = editor.constants[maker.table].astype(np.int64) - node.zeros[number]
    table = requantize(values, pack_scale(node.requant.scale[number]), *node.requant.limits)
    editor.retype(maker.output, replace(editor.tensors[maker.output], quant=quant))
    return replace(maker, table=editor.constant(f"{maker.output}.rescaled", table))
