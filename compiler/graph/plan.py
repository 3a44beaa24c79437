"""Static addresses: constants in one region, activations sharing one arena behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Array, Graph
from vdla.compiler.graph.ops.views import View
from vdla.support.numbers import ceil_div

ALIGN = 64


@dataclass(frozen=True)
class MemoryPlan:
    """Byte offsets in the DRAM image: constants from 0 on, then the arena."""

    offsets: dict[str, int]
    constants: dict[str, int]
    constant_bytes: int
    arena_bytes: int

    @property
    def total_bytes(self) -> int:
        """The end of the arena; programs may follow."""
        return self.constant_bytes + self.arena_bytes

    def address(self, name: str) -> int:
        """The offset of a constant or an activation."""
        return self.constants[name] if name in self.constants else self.offsets[name]


def align(value: int, to: int = ALIGN) -> int:
    """``value`` rounded up to a multiple of ``to``."""
    return ceil_div(value, to) * to


def lifetimes(graph: Graph) -> dict[str, tuple[int, int]]:
    """Activation to the first and last node (by position) during which it must be kept.

    Inputs live from before the first node, outputs past the last one.
    """
    end = len(graph.nodes)
    spans = dict.fromkeys(graph.inputs, (-1, -1))
    for i, node in enumerate(graph.nodes):
        for name in graph.activations(node):
            spans[name] = (spans[name][0], i)
        spans[node.output] = (i, i)
    for name in graph.outputs:
        if name in spans:
            spans[name] = (spans[name][0], end)
    return spans


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
) -> MemoryPlan:
    """An address for every tensor.

    Args:
        graph: a laid-out graph.
        constants: what to keep in the constants region; the graph's own unless given.
        views: tensors that are some bytes of another activation, which may be a view itself. A
            tensor with views lives as long as any of them.

    Activations are placed largest first, each at the lowest address where no tensor that lives at
    the same time is.
    """
    kept = graph.constants if constants is None else constants
    fixed: dict[str, int] = {}
    position = 0
    for name, array in kept.items():
        fixed[name] = position
        position += align(max(array.nbytes, 1))
    spans = lifetimes(graph)
    places = {name: _resolved(name, views) for name in views}
    for name, (root, _) in places.items():
        (begin, end), (first, last) = spans[root], spans.pop(name)
        spans[root] = (min(begin, first), max(end, last))
    placed: list[tuple[int, int, str]] = []
    for name in sorted(spans, key=lambda n: (-graph.tensors[n].nbytes, spans[n], n)):
        size = align(max(graph.tensors[name].nbytes, 1))
        start = _first_gap(size, [p for p in placed if _overlap(spans[p[2]], spans[name])])
        placed.append((start, start + size, name))
    offsets = {name: position + start for start, _, name in placed}
    offsets.update((name, offsets[root] + start) for name, (root, start) in places.items())
    arena = max((stop for _, stop, _ in placed), default=0)
    return MemoryPlan(offsets, fixed, position, arena)


def _resolved(name: str, views: Mapping[str, View]) -> View:
    """A view's place in the tensor at the end of its chain of views."""
    whole, offset = views[name]
    while whole in views:
        whole, more = views[whole]
        offset += more
    return View(whole, offset)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _first_gap(size: int, taken: list[tuple[int, int, str]]) -> int:
    start = 0
    for low, high, _ in sorted(taken):
        if start + size <= low:
            break
        start = max(start, high)
    return start
