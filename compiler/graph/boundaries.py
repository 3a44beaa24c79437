"""Questions of passes that work where integers begin and end in a graph."""

from __future__ import annotations

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.quantize import AnyDequantize, Dequantize, Quantize
from vdla.compiler.graph.ops.wide import Quantize16


def int8_source(name: str | None, around: Neighbours) -> Dequantize | None:
    """The Dequantize that makes a tensor of int8 with one scale; None where none does."""
    node = around.maker(name, Dequantize)
    if node is None or node.axis is not None or around.tensors[node.data].dtype != "int8":
        return None
    return node


def quantizing(node: Node, around: Neighbours) -> Quantize | None:
    """The Quantize node with one scale that alone reads a node's result; None where there is
    none."""
    end = around.own_reader(node.output, Quantize)
    return end if end is not None and end.axis is None else None


def is_early(node: Quantize | Quantize16, around: Neighbours) -> bool:
    """Whether a node quantizes what no integers were before: an input, or a part of one."""
    return all(around.maker(name, AnyDequantize) is None for name in _floats_before(node, around))


def behind(node: Quantize | Quantize16, around: Neighbours) -> list[Node]:
    """The float operators that make what a node quantizes, as far as the next Dequantize."""
    makers = (around.maker(name, Node) for name in _floats_before(node, around))
    return [maker for maker in makers if maker and not isinstance(maker, AnyDequantize)]


def _floats_before(node: Quantize | Quantize16, around: Neighbours) -> list[str]:
    """The tensors that what a node quantizes is made of, as far as what a Dequantize writes."""
    names = {node.data: around.maker(node.data, Node)}
    rest = [*names.values()]
    while rest:
        maker = rest.pop()
        if maker is not None and not isinstance(maker, AnyDequantize):
            new = {name: around.maker(name, Node) for name in maker.inputs if name not in names}
            names |= new
            rest += new.values()
    return list(names)


def is_late(node: Dequantize, around: Neighbours) -> bool:
    """Whether nothing becomes integers again behind a node."""
    return not meets(node.output, Quantize, (Node,), around)


def meets(name: str, kind: type[Node], passed: tuple[type[Node], ...], around: Neighbours) -> bool:
    """Whether a node of some kind follows, behind others that work by element."""
    seen, rest = {name}, [name]
    while rest:
        for node in around.readers(rest.pop()):
            if isinstance(node, kind):
                return True
            if node.output not in seen and (isinstance(node, passed) or node.ELEMENTWISE):
                seen.add(node.output)
                rest.append(node.output)
    return False


def leading(graph: Graph) -> set[str]:
    """The tensors that lead to a quantization, by way of floats."""
    result = set[str]()
    for node in reversed(graph.nodes):
        leads = isinstance(node, Quantize) or not result.isdisjoint(node.outputs)
        if leads and not isinstance(node, AnyDequantize):
            result.update(node.inputs)
    return result
