"""Channels in other places, and images cut or padded, as convolutions whose weights are 0 and 1.

Where channels lie in blocks, a channel can't be moved alone. But the multipliers bring any input
channel to any output channel: a convolution with one weight of 1 for each output channel copies
them, bit for bit. The window's place and its stride cut rows and columns, its padding adds some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.types import Array, Requant
from vdla.compiler.targets.accelerator.capability import Capability

MOST_TAPS = 16  # rows or columns of a window: beyond, the host copies


def select_channels(graph: Graph, accelerator: Capability) -> Graph:
    """Makes convolutions of moves that the accelerator has no addresses for.

    before: y = QTake(x), channels in another order, parts of blocks, a stride, a crop
    after:  y = QConv2d(x, selection)
    before: y = QConcat(a, b), a of 24 channels, where blocks have 16
    after:  part = QConv2d(a, selection); y = QConv2d(b, selection, + part)

    A node stays that would become a convolution that the accelerator refuses.
    """

    of_any_fill = replace(accelerator, min_fill=0.0)  # for what is added to the accelerator's own

    def tried(made: Sequence[ops.QConv2d], editor: Editor) -> Made:
        takers = (of_any_fill if each.epilogue else accelerator for each in made)
        fit = all(taker.takes(each, editor) for taker, each in zip(takers, made, strict=True))
        return made if made and fit else None

    def wanted(node: Node, editor: Editor) -> bool:
        return len(editor.shape(node.output)) == 4 and not accelerator.takes(node, editor)

    def selected(node: ops.QTake, editor: Editor) -> Made:
        return tried(_selected(node, editor), editor) if wanted(node, editor) else None

    def joined(node: ops.QConcat, editor: Editor) -> Made:
        if not wanted(node, editor):
            return None
        own = [accelerator.takes(editor.maker(part, Node), editor) for part in node.parts]
        return tried(_joined(node, own, editor), editor)

    return rewrite(graph, selected, joined)


class _Axis(NamedTuple):
    """A window of one weight in one direction."""

    taps: int
    tap: int  # the one that is 1
    stride: int
    before: int
    after: int


def _selected(node: ops.QTake, editor: Editor) -> Sequence[ops.QConv2d]:
    """A QTake as a convolution; none where rows or columns don't step evenly."""
    shape = editor.shape(node.data)
    images, channels, rows, columns = node.tables()
    down, across = _axis(rows, shape[2]), _axis(columns, shape[3])
    if list(images) != list(range(shape[0])) or down is None or across is None:
        return ()
    weight = np.zeros((len(channels), shape[1], down.taps, across.taps), np.int8)
    for output, channel in enumerate(channels):
        if channel != OUTSIDE:
            weight[output, channel, down.tap, across.tap] = 1
    zero = int(node.fill)
    conv = _convolution(node.name, node.output, node.data, weight, editor)
    return (
        replace(
            conv,
            strides=(down.stride, across.stride),
            pads=(down.before, across.before, down.after, across.after),
            zeros=(zero,),
            requant=replace(conv.requant, zero=zero),
        ),
    )


def _axis(table: Sequence[int], size: int) -> _Axis | None:
    """The window that sees the places of a table; None where they don't step evenly."""
    known = [n for n, place in enumerate(table) if place != OUTSIDE]
    if not known:
        return None
    first = known[0]
    steps = {table[b] - table[a] for a, b in pairwise(known)}
    stride = steps.pop() if len(known) > 1 else 1
    start = table[first] - first * stride  # where the first window looks
    if steps or stride < 1 or len(known) != known[-1] - first + 1:
        return None
    before, tap = max(0, -start), max(0, start)
    room = size + before - (len(table) - 1) * stride  # rows that the last window may have
    taps = max(tap + 1, room - stride + 1)
    after = max(0, taps - room)
    places = [start + n * stride for n in range(len(table))]
    inside = [place if 0 <= place < size else OUTSIDE for place in places]
    if inside != list(table) or taps > MOST_TAPS:
        return None
    return _Axis(taps, tap, stride, before, after)


def _joined(node: ops.QConcat, own: Sequence[bool], editor: Editor) -> Sequence[ops.QConv2d]:
    """Parts one behind another: each is brought to its channels and added to those before it, first
    those that are the accelerator's ``own``.

    What a part adds to others' channels is 0, so that the sum is exact.
    """
    if node.axis != 1:
        return ()
    shape = editor.shape(node.output)
    sizes = [editor.shape(part)[1] for part in node.parts]
    starts = list(accumulate(sizes, initial=0))[:-1]
    nodes: list[ops.QConv2d] = []
    order = sorted(range(len(sizes)), key=lambda number: not own[number])
    for number in order:
        part, start, last = node.parts[number], starts[number], number == order[-1]
        kind = editor.tensors[node.output]
        output = node.output if last else editor.tensor(f"{node.name}.to{number}", kind)
        name = node.name if last else output
        weight = np.zeros((shape[1], sizes[number], 1, 1), np.int8)
        weight[start : start + sizes[number], :, 0, 0] = np.eye(sizes[number], dtype=np.int8)
        zero, limits = node.requant.zero, node.requant.limits[1:] if last else (-128, 127)
        conv = replace(
            _convolution(name, output, part, weight, editor),
            zeros=node.zeros[number : number + 1],
            requant=Requant((node.requant.scale[number],) * shape[1], zero),
        )
        if nodes:
            total = Requant((1.0, 1.0), zero, *limits)
            before = ops.AddStep(addend=nodes[-1].output, zeros=(zero, zero), requant=total)
            conv = replace(conv, epilogue=(before,))
        nodes.append(conv)
    return nodes


def _convolution(name: str, output: str, data: str, weight: Array, editor: Editor) -> ops.QConv2d:
    """A convolution without a change of scale, its weights and biases new constants."""
    return ops.QConv2d(
        name=name,
        output=output,
        data=data,
        weight=editor.constant(f"{name}.selection", weight),
        bias=editor.constant(f"{name}.nothing", np.zeros(len(weight), np.int32)),
        zeros=(0,),
        requant=Requant((1.0,) * len(weight), 0),
        moves=True,
    )
