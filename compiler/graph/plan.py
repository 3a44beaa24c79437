"""Static addresses: constants in one region, activations sharing one arena behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.liveness import live_after
from vdla.compiler.graph.ops.flow import Leave
from vdla.compiler.graph.ops.views import View
from vdla.compiler.graph.types import Array
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

ALIGN = 64  # bytes of which addresses are multiples, at least
SHARED_BYTES = 4096  # of constants that are looked for among those before them


@dataclass(frozen=True)
class MemoryPlan:
    """Byte offsets in the DRAM image: constants from 0 on, then the arena, which has activations
    and ``scratch``, what nodes keep there for themselves."""

    offsets: dict[str, int]
    constants: dict[str, int]
    constant_bytes: int
    arena_bytes: int
    scratch: dict[str, int] = field(default_factory=dict)

    @property
    def total_bytes(self) -> int:
        """The end of the arena; programs may follow."""
        return self.constant_bytes + self.arena_bytes

    def address(self, name: str) -> int:
        """The offset of a constant, an activation or a node's own tensor."""
        tables = self.constants, self.offsets, self.scratch
        return next(table for table in tables if name in table)[name]


def align(value: int, to: int = ALIGN) -> int:
    """``value`` rounded up to a multiple of ``to``."""
    return ceil_div(value, to) * to


def alignment(config: Config) -> int:
    """Bytes of which addresses in a config's DRAM are multiples: no beat may begin between two."""
    return max(ALIGN, config.port_bytes)


def lifetimes(
    graph: Graph,
    beside: Mapping[str, str] = MappingProxyType({}),
    scratch: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> dict[str, tuple[int, int]]:
    """Activation to the first and last node (by position) during which it must be kept.

    Inputs live from before the first node, outputs past the last one. ``beside`` names nodes that
    run beside an earlier one: what that reads is kept until they are done, and so is what is in
    ``scratch``, tensors that only a node's own code knows, by the node's name.
    """
    end = len(graph.nodes)
    last = {node.name: i for i, node in enumerate(graph.nodes)}
    last |= {before: last[after] for after, before in beside.items()}
    spans = _spans(graph)
    for i, node in enumerate(graph.nodes):
        for name in graph.activations(node):
            spans[name] = (spans[name][0], max(spans[name][1], last[node.name]))
        spans |= dict.fromkeys(scratch.get(node.name, ()), (i, last[node.name]))
    called = _first_called(graph)
    return {
        name: (first, till) if till < called or name in graph.outputs else (-1, end)
        for name, (first, till) in spans.items()
    }


def _spans(graph: Graph) -> dict[str, tuple[int, int]]:
    """Activation to the first and the last node at which its value is needed; in a loop, that may
    be before it is written."""
    end, spans = len(graph.nodes), dict.fromkeys(graph.inputs, (-1, -1))
    for i, node in enumerate(graph.nodes):
        for name in node.outputs:
            first, till = spans.get(name, (i, i))
            spans[name] = (first, max(till, i))
    for name, places in live_after(graph).items():
        first, till = spans[name]
        first = min(first, (places & -places).bit_length() - 1) if places else first
        spans[name] = (first, max(till, places.bit_length()))
    for name in graph.outputs:
        if name in spans:
            spans[name] = (spans[name][0], end)
    return spans


def _first_called(graph: Graph) -> int:
    """The first node of the functions behind a graph with jumps: what they have keeps its place all
    the time, since they may be called anywhere."""
    ends = (i for i, node in enumerate(graph.nodes) if isinstance(node, Leave))
    return next(ends, len(graph.nodes)) + 1


def address_views(graph: Graph) -> dict[str, View]:
    """The tensors of a laid-out graph that addresses alone place in others.

    Only where tensors lie in blocks of channels: on the accelerator.
    """
    nodes = (n for n in graph.nodes if isinstance(n, ops.ByAddresses))
    blocked = (n for n in nodes if graph.tensors[n.output].block)
    return {name: view for n in blocked for name, view in n.views(graph.tensors).items()}


def plan_memory(
    graph: Graph,
    constants: Mapping[str, Array] | None = None,
    views: Mapping[str, View] = MappingProxyType({}),
    beside: Mapping[str, str] = MappingProxyType({}),
    scratch: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    to: int = ALIGN,
) -> MemoryPlan:
    """An address for every tensor.

    Args:
        graph: a laid-out graph.
        constants: what to keep in the constants region; the graph's own unless given. Large ones
            of the same bytes, as steps that share their weights have, are stored once.
        views: tensors that are some bytes of another activation, which may be a view itself. A
            tensor with views lives as long as any of them.
        beside: nodes that run beside an earlier one, and which.
        scratch: the bytes of tensors that only a node's own code reads and writes, by the node's
            name and theirs.
        to: bytes of which each address is a multiple.

    Activations are placed largest first, each at the lowest address where no tensor that lives at
    the same time is.
    """
    kept = graph.constants if constants is None else constants
    fixed: dict[str, int] = {}
    position = 0
    shared: dict[tuple[int, bytes], int] = {}
    for name, array in kept.items():
        key = (array.nbytes, _digest(array)) if array.nbytes >= SHARED_BYTES else None
        if key in shared:
            fixed[name] = shared[key]
            continue
        fixed[name] = position
        if key is not None:
            shared[key] = position
        position += align(max(array.nbytes, 1), to)
    spans = lifetimes(graph, beside, scratch)
    places = {name: _resolved(name, views) for name in views}
    for name, (root, _) in places.items():
        (begin, end), (first, last) = spans[root], spans.pop(name)
        spans[root] = (min(begin, first), max(end, last))
    own = {name: size for tensors in scratch.values() for name, size in tensors.items()}
    nbytes = {name: own[name] if name in own else graph.tensors[name].nbytes for name in spans}
    order = sorted(spans, key=lambda n: (-nbytes[n], spans[n], n))
    sizes = [align(max(nbytes[name], 1), to) for name in order]
    starts = _first_gaps(sizes, [spans[name] for name in order])
    offsets = {name: position + start for name, start in zip(order, starts, strict=True)}
    offsets.update((name, offsets[root] + start) for name, (root, start) in places.items())
    arena = max((start + size for start, size in zip(starts, sizes, strict=True)), default=0)
    own_offsets = {name: offsets.pop(name) for name in own}
    return MemoryPlan(offsets, fixed, position, arena, own_offsets)


def _digest(array: Array) -> bytes:
    """SHA-256 of an array's bytes, by which it is told from others."""
    return sha256(array.tobytes()).digest()


def _resolved(name: str, views: Mapping[str, View]) -> View:
    """A view's place in the tensor at the end of its chain of views."""
    whole, offset = views[name]
    while whole in views:
        whole, more = views[whole]
        offset += more
    return View(whole, offset)


def _first_gaps(sizes: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[int]:
    """The lowest address of each block of memory, in order, where none of those before it that
    lives at the same time is."""
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
    starts, stops = np.zeros((2, len(sizes)), np.int64)
    for number, size in enumerate(sizes):
        begin, end = spans[number]
        together = np.flatnonzero((begins[:number] <= end) & (ends[:number] >= begin))
        taken = together[np.lexsort((stops[together], starts[together]))]
        tops = np.maximum.accumulate(np.append(0, stops[taken]))
        fits = np.append(tops[:-1] + size <= starts[taken], True)
        starts[number] = tops[np.argmax(fits)]
        stops[number] = starts[number] + size
    return [int(start) for start in starts]
