"""Concatenations and slices without copies.

One image's channels lie in blocks one behind another, and so do images. A part of a concatenation
that ends with a whole block is a range of the result's bytes: what writes it writes it there. A
slice of whole blocks is a range of its data's bytes.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node, Shape
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL
from vdla.compiler.targets.accelerator.refusal import refusal
from vdla.isa.config import Config


def view_slices(graph: Graph, config: Config, min_fill: float = MIN_FILL) -> Graph:
    """Makes slices of addresses, where the accelerator writes the data.

    before: y = QTake(x), channels 16 to 31 of all pixels    after: y = QTakeView(x)
    before: y = Take(x), rows 4 to 7 of all, int32           after: y = QTakeView(x)
    """
    makers: dict[str, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if _is_range(node, graph, config.channel_block):
            assert isinstance(node, ops.QTake | ops.Take)
            maker = makers.get(node.data)
            if maker is not None and refusal(maker, graph, config, min_fill) is None:
                node = ops.QTakeView(**node.values())
        makers[node.output] = node
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _is_range(node: Node, graph: Graph, block: int) -> bool:
    """Whether a node takes all of some blocks of one image's channels, one behind another, or all
    of some vectors of int32."""
    if isinstance(node, ops.Take) and graph.tensors[node.output].dtype == "int32":
        return _is_range_of_rows(node, graph.tensors[node.data].shape)
    if type(node) is not ops.QTake:
        return False
    shape = graph.tensors[node.data].shape
    if len(shape) not in (2, 4) or shape[0] != 1:
        return False
    batch, channels, *image = node.tables()
    first, end = channels[0], channels[0] + len(channels)
    whole = first % block == 0 and (end % block == 0 or end == shape[1])
    others = zip((batch, *image), (1, *shape[2:]), strict=True)
    return (
        first >= 0
        and whole
        and channels == tuple(range(first, end))
        and all(table == tuple(range(size)) for table, size in others)
    )


def _is_range_of_rows(node: ops.Take, shape: Shape) -> bool:
    """Whether a node takes whole vectors, one behind another."""
    return len(shape) == 2 and node.shape[1] == shape[1] and node.start_of_run(shape) is not None


def view_parts(graph: Graph, config: Config, min_fill: float = MIN_FILL) -> Graph:
    """Makes concatenations of addresses; only parts that can't be views are copied.

    before: y = QConcat(a, b), a of 32 channels at the scale of y, b at another one
    after:  b' = QClip(b), at the scale of y; y = QConcatView(a, b')

    A tensor can be a part of one result alone, once; other results get a copy of it. A
    concatenation stays where none of its parts would be a view that the accelerator writes.
    """
    return _Viewer(graph, config, min_fill).run()


class _Viewer:
    """``taken`` are the tensors that are views already."""

    def __init__(self, graph: Graph, config: Config, min_fill: float) -> None:
        self.graph, self.config, self.min_fill = graph.copy(), config, min_fill
        self.makers = graph.producers()
        self.taken: set[str] = set()

    def run(self) -> Graph:
        """The graph with all such concatenations replaced."""
        nodes: list[Node] = []
        for node in self.graph.nodes:
            if type(node) is ops.QConcat and node.axis in (0, 1):
                nodes += self.joined(node)
            else:
                nodes.append(node)
        return replace(self.graph, nodes=tuple(nodes))

    def joined(self, node: ops.QConcat) -> list[Node]:
        """Nodes that a concatenation becomes: copies of some parts, and its addresses."""
        numbers = range(len(node.parts))
        views = {n for n in numbers if self.may_be_view(node, n)}
        together = node.axis == 0 or self.graph.tensors[node.output].shape[0] == 1
        if not (together and self.accelerates(node)) or not any(
            self.accelerates(self.makers.get(node.parts[n])) for n in views
        ):
            return [node]
        copies = {n: self.copy(node, n) for n in numbers if n not in views}
        parts = [copies[n].output if n in copies else node.parts[n] for n in numbers]
        self.taken.update(parts)
        fields = {
            **node.values(),
            "parts": tuple(parts),
            "scales": (1.0,) * len(parts),
            "zps": (node.out_zp,) * len(parts),
            "lo": -128,
            "hi": 127,
        }
        return [*copies.values(), ops.QConcatView(**fields)]

    def may_be_view(self, node: ops.QConcat, number: int) -> bool:
        """Whether a part is in the result as it is, and no view of another one."""
        name = node.parts[number]
        plain = (node.scales[number], node.zps[number]) == (1.0, node.out_zp)
        unlimited = (node.lo, node.hi) == (-128, 127)
        sliced = isinstance(self.makers.get(name), ops.QTakeView)
        free = not sliced and name not in self.taken and name not in self.graph.constants
        return plain and unlimited and free and node.parts.index(name) == number

    def accelerates(self, node: Node | None) -> bool:
        """Whether the accelerator takes a node; the caller makes inputs, and it takes none."""
        if node is None:
            return False
        return refusal(node, self.graph, self.config, self.min_fill) is None

    def copy(self, node: ops.QConcat, number: int) -> ops.QClip:
        """A part at the result's scale and within its limits, bit for bit as the node has it."""
        part, name = node.parts[number], f"{node.name}.part{number}"
        quant = self.graph.tensors[node.output].quant
        self.graph.tensors[name] = replace(self.graph.tensors[part], quant=quant)
        return ops.QClip(
            name=name,
            output=name,
            data=part,
            scale=node.scales[number],
            in_zp=node.zps[number],
            out_zp=node.out_zp,
            lo=node.lo,
            hi=node.hi,
        )
