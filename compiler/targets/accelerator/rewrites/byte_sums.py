"""Sums of 16 bits that lie as bytes in DRAM, where all that reads them reads bytes or adds.

A normalization reads bytes, and a residual stream is added to by the next sum: two bytes are half
of what an int32 takes, and nothing has to split it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.byte_sum import QByteSum
from vdla.compiler.graph.ops.wide import QBytes, QWideSum
from vdla.compiler.targets.accelerator.capability import Capability

IMAGE = 4  # axes


def sums_as_bytes(graph: Graph, accelerator: Capability) -> Graph:
    """Has sums of 16 bits write and read bytes, bit for bit.

    before: h = QWideSum(x, p): int32; b = QBytes(h): int8[2, …]; y = QWideNormalize(b)
    after:  b = QByteSum(x, p): int8[2, …]; y = QWideNormalize(b)
    """
    split = _split(Neighbours(graph), graph)
    if not split:
        return graph
    editor = Editor(graph)
    names: dict[str, str] = {}  # of bytes, by the names of whole tensors

    def summed(node: QWideSum) -> Made:
        """The sum of bytes in the place of one."""
        if node.output not in split and not {*node.terms} & names.keys():
            return None
        output, offset = _output(node, editor, split, names), _by_channel(node, editor)
        return QByteSum(
            name=node.name,
            output=output,
            terms=tuple(names.get(n, n) for n in node.terms),
            bytes=tuple(n in names for n in node.terms),
            zeros=node.zeros,
            weights=node.weights,
            shift=node.shift,
            low=node.low,
            high=node.high,
            requant=node.requant,
            offset=offset,
        )

    def read(node: QBytes) -> Made:
        """Nothing: what reads bytes reads the sum's."""
        if node.data not in names:
            return None
        editor.rename(node.output, names[node.data])
        return ()

    result = editor.walk(summed, read)
    fits = all(accelerator.refusal(node, result) is None for node in result.of(QByteSum))
    return result if fits else graph


def _split(around: Neighbours, graph: Graph) -> set[str]:
    """The sums whose results are bytes: who reads them reads bytes, or can."""
    sums = {n.output: n for n in graph.of(QWideSum) if _is_plain(n, around)}
    result = {name for name, node in sums.items() if node.requant is None}
    while True:
        kept = {name for name in result if _reads_bytes(name, sums, result, around)}
        if kept == result:
            return result
        result = kept


def _is_plain(node: QWideSum, around: Neighbours) -> bool:
    """Whether a sum is of one image, and of one constant for each channel."""
    shape = around.shape(node.output)
    if len(shape) != IMAGE or shape[0] != 1 or node.output in around.outputs:
        return False
    return node.offset is None or around.shape(node.offset) in ((1, shape[1], 1, 1), (1,) * IMAGE)


def _reads_bytes(name: str, sums: dict[str, QWideSum], split: set[str], around: Neighbours) -> bool:
    """Whether all that reads a tensor reads bytes, or is a sum that can and writes int8 or bytes,
    and something does."""
    readers = around.readers(name)

    def fits(node: Node) -> bool:
        if isinstance(node, QBytes):
            return True
        own = sums.get(node.output)
        return own is node and (own.requant is not None or node.output in split)

    return bool(readers) and all(map(fits, readers))


def _output(node: QWideSum, editor: Editor, split: set[str], names: dict[str, str]) -> str:
    """The tensor that a sum writes: bytes, or what it was."""
    if node.output not in split:
        return node.output
    _, *rest = editor.shape(node.output)
    kind = replace(editor.tensors[node.output], shape=(2, *rest), dtype="int8", quant=None)
    names[node.output] = editor.tensor(f"{node.output}.both", kind)
    return names[node.output]


def _by_channel(node: QWideSum, editor: Editor) -> str | None:
    """A sum's constant as one number for each channel."""
    if node.offset is None:
        return None
    channels = editor.shape(node.output)[1]
    array = np.broadcast_to(editor.constants[node.offset].reshape(-1), (channels,))
    return editor.constant(f"{node.offset}.channels", np.ascontiguousarray(array))
