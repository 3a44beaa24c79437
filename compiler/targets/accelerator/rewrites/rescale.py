"""Changes of scale before a concatenation, done by the table that makes the part.

A part at the scale of the result needs no copy (``views.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.numbers import requantize
from vdla.isa.numbers import pack_scale


def rescale_tables(graph: Graph) -> Graph:
    """Has a table give the scale of the concatenation that alone reads its result.

    before: b = QTable(x, t); y = QConcat(a, b), b at another scale than y
    after:  b = QTable(x, t'), at the scale of y; y = QConcat(a, b)

    Both roundings are in the new table, the old one's and the concatenation's, so that no number
    changes. A concatenation that also limits its parts stays.
    """
    graph, uses, makers = graph.copy(), graph.uses(), graph.producers()
    changed: dict[str, Node] = {}
    for node in graph.nodes:
        if type(node) is not ops.QConcat or (node.lo, node.hi) != (-128, 127):
            continue
        scales, zeros = list(node.scales), list(node.zps)
        for number, name in enumerate(node.parts):
            maker, plain = makers.get(name), (scales[number], zeros[number]) == (1.0, node.out_zp)
            alone = len(uses[name]) == 1 and name not in graph.outputs
            if isinstance(maker, ops.QTable) and alone and not plain:
                changed[maker.name] = _rescaled(maker, node, number, graph)
                scales[number], zeros[number] = 1.0, node.out_zp
        changed[node.name] = replace(node, scales=tuple(scales), zps=tuple(zeros))
    return replace(graph, nodes=tuple(changed.get(node.name, node) for node in graph.nodes))


def _rescaled(maker: ops.QTable, node: ops.QConcat, number: int, graph: Graph) -> ops.QTable:
    """A table that gives a part as the concatenation has it; ``graph`` gets its results."""
    name, quant = f"{maker.output}.rescaled", graph.tensors[node.output].quant
    values = graph.constants[maker.table].astype(np.int64) - node.zps[number]
    limits = node.out_zp, node.lo, node.hi
    graph.constants[name] = requantize(values, pack_scale(node.scales[number]), *limits)
    graph.tensors[name] = graph.tensors[maker.table]
    graph.tensors[maker.output] = replace(graph.tensors[maker.output], quant=quant)
    return replace(maker, table=name)
