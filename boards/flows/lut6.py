"""Number of LUTs of an AMD device that hold those of a netlist: each is one function, or two small
ones.

1. A LUT of a 7-series or UltraScale+ device is a function of six inputs, or two functions that
   take no more than five nets between them (UG474, UG574: outputs O6 and O5). yosys writes down the
   functions; the vendor's tools, whose counts others publish, put them together.
2. Two are put together if they have a net in common: others lie apart on a chip.
3. One in front of a carry chain or a wide multiplexer stays alone: these have the second output.
4. Who has the fewest partners takes first, and takes the partner with the fewest. It isn't the
   best matching, so there may be fewer LUTs than it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

INPUTS = 5  # of two functions in one LUT
REACH = 64  # of the LUTs on a net, how far apart in the netlist two may be: nets of thousands exist


def pairs(functions: Sequence[frozenset[int]]) -> int:
    """Number of LUTs that hold two of the ``functions``, each given by the nets it takes."""
    partners = _partners(functions)
    alone = {n: len(some) for n, some in enumerate(partners) if some}
    queue = [(count, n) for n, count in alone.items()]
    heapify(queue)
    result = 0
    while queue:
        count, one = heappop(queue)
        if not count or alone.get(one) != count:  # none is left, or it has found one, or has fewer
            continue
        other = min((n for n in partners[one] if n in alone), key=lambda n: (alone[n], n))
        result += 1
        for paired in (one, other):
            del alone[paired]
            for n in partners[paired]:
                if n in alone:
                    alone[n] -= 1
                    heappush(queue, (alone[n], n))
    return result


def _partners(functions: Sequence[frozenset[int]]) -> list[set[int]]:
    """For each function, those it fits into one LUT with."""
    on: dict[int, list[int]] = {}
    for n, nets in enumerate(functions):
        if len(nets) <= INPUTS:
            for net in nets:
                on.setdefault(net, []).append(n)
    partners: list[set[int]] = [set() for _ in functions]
    for users in on.values():
        for place, one in enumerate(users):
            for other in users[place + 1 : place + 1 + REACH]:
                if len(functions[one] | functions[other]) <= INPUTS:
                    partners[one].add(other)
                    partners[other].add(one)
    return partners
