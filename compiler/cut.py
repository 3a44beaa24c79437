"""Two devices for the nodes of a graph, at the least cost: a minimum cut.

The nodes are on one side or the other; each costs something there, and each value that is read on
the other side costs a transfer, once. That is a cut of a flow network between two terminals, and
the least cut is the best of all placements (H. S. Stone, Multiprocessor scheduling with the aid of
network flow algorithms, 1977). The flow is found by shortest augmenting paths (Edmonds and Karp).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from math import inf
from typing import TypeVar

N = TypeVar("N", bound=Hashable)

FIRST, SECOND = "first", "second"  # the terminals
LEAST = 1e-12  # of a capacity that is left: less is an error of rounding


class _Network:
    """A flow network: what each edge can still carry."""

    def __init__(self) -> None:
        self.left: dict[object, dict[object, float]] = {FIRST: {}, SECOND: {}}

    def edge(self, start: object, end: object, capacity: float) -> None:
        """Adds an edge, or capacity to one."""
        for one in (start, end):
            self.left.setdefault(one, {})
        self.left[start][end] = self.left[start].get(end, 0.0) + capacity
        self.left[end].setdefault(start, 0.0)

    def reached(self) -> dict[object, object]:
        """Nodes that can be reached from the first terminal, each with the one that it is reached
        from.
        """
        before: dict[object, object] = {FIRST: FIRST}
        waiting = deque([FIRST])
        while waiting:
            one = waiting.popleft()
            for other, capacity in self.left[one].items():
                if capacity > LEAST and other not in before:
                    before[other] = one
                    waiting.append(other)  # type: ignore[arg-type]
        return before

    def fill(self) -> dict[object, object]:
        """Sends all that the network carries; gives what is reached then."""
        while SECOND in (before := self.reached()):
            path, one = [], SECOND  # type: tuple[list[tuple[object, object]], object]
            while one != FIRST:
                path.append((before[one], one))
                one = before[one]
            most = min(self.left[start][end] for start, end in path)
            for start, end in path:
                self.left[start][end] -= most
                self.left[end][start] += most
        return before


def least_cut(
    costs: Mapping[N, tuple[float, float]],
    values: Iterable[tuple[N | None, Iterable[N], float, float]],
) -> set[N]:
    """The nodes on the first side at the least cost.

    Args:
        costs: what each node costs on the first side and on the second; ``inf`` where it can't be.
        values: the node that gives a value (None for the second side itself), those that read it,
            and what it costs to bring it to the first side, and to the second.
    """
    network = _Network()
    whole = 1.0 + sum(min(cost) for cost in costs.values() if min(cost) < inf)
    whole += sum(sum(v for v in pair if v < inf) for pair in costs.values())
    for node, (first, second) in costs.items():
        network.edge(FIRST, ("node", node), min(second, whole))
        network.edge(("node", node), SECOND, min(first, whole))
    for number, (giver, readers, to_first, to_second) in enumerate(values):
        own = SECOND if giver is None else ("node", giver)
        on_first, on_second = ("on first", number), ("on second", number)
        network.edge(on_first, own, to_first)
        network.edge(own, on_second, to_second)
        for reader in readers:
            network.edge(("node", reader), on_first, whole)
            network.edge(on_second, ("node", reader), whole)
    before = network.fill()
    return {node for node in costs if ("node", node) in before}
