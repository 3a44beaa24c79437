"""Functions of a graph's nodes on a processor: nodes of one form share theirs, and constants."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, count

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.express import NodeFunction
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import PROCESSOR, Placements
from vdla.compiler.targets.functions import Functions, Traces, symbol_of, untuned
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.functions import HOST, node_function
from vdla.compiler.targets.processor.views import views
from vdla.compiler.tir.ir import PrimFunc


def node_functions(
    graph: Graph,
    placements: Placements,
    processor: Processor = NATIVE,
    traces: Traces = untuned,
) -> Functions:
    """Node name to its function, for every node placed on the processor.

    Nodes whose functions are the same but for their names share the first one. ``traces`` gives
    tuned schedules.
    """
    functions: dict[str, NodeFunction] = {}
    known: dict[str, PrimFunc] = {}
    like: dict[Hashable, tuple[NodeFunction, Sequence[str]]] = {}
    symbols: set[str] = set()
    arrays: dict[bytes, str] = {}
    seen = views(graph, placements)
    for node in graph.nodes:
        is_own = placements[node.name].device == PROCESSOR and not isinstance(node, ops.Control)
        if not is_own or node.output in seen:
            continue
        form, names = _form(node, graph)
        if form in like:
            first, places = like[form]
            functions[node.name] = _for_others(first, dict(zip(places, names, strict=True)))
            continue
        base = symbol_of(HOST, node)
        tried = chain((base,), (f"{base}_{n}" for n in count(len(symbols))))
        symbol = next(name for name in tried if name not in symbols)
        function = node_function(node, graph, symbol, processor, traces, known)
        functions[node.name] = _with_shared(function, arrays)
        like[form] = functions[node.name], names
        symbols.add(function.func.name)
    return functions


def _form(node: Node, graph: Graph) -> tuple[Hashable, Sequence[str]]:
    """Form that a node's function depends on, and the names of the tensors that it stands for:
    names of activations don't matter, as from step to step of a recurrent layer."""
    names: dict[str, str] = {}
    parts = []
    for part in node.parts if isinstance(node, ops.Fused) else (node,):
        for name in (*part.inputs, part.output):
            if name not in graph.constants:
                names.setdefault(name, f"tensor {len(names)}")
        own = replace(part.renamed(names), name="", output=names[part.output])
        kinds = tuple(graph.tensors[name] for name in (*part.inputs, part.output))
        parts.append((type(part), kinds, *(getattr(own, field.name) for field in fields(own))))
    return tuple(parts), list(names)


def _for_others(function: NodeFunction, names: Mapping[str, str]) -> NodeFunction:
    """A function of some tensors, of others with the same form."""
    return replace(function, args=tuple(names.get(name, name) for name in function.args))


def _with_shared(function: NodeFunction, arrays: dict[bytes, str]) -> NodeFunction:
    """A function that reads constants of other functions' where its own are equal.

    Each step of a recurrent layer rearranges the same weights, which stay in a cache as one.
    ``arrays`` has the names of the constants so far, by what they hold.
    """
    names: dict[str, str] = {}
    for name, array in function.constants.items():
        key = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16)
        key.update(f"{array.shape} {array.dtype}".encode())
        names[name] = arrays.setdefault(key.digest(), name)
    constants = {names[name]: array for name, array in function.constants.items()}
    args = tuple(names.get(name, name) for name in function.args)
    return replace(function, args=args, constants=constants)
