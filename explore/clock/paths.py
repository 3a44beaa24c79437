"""Static timing of a mapped netlist: when each net settles after the clock, and the longest path.

Paths lie between cells of one clock, that of the most cells: a path to another clock's cells is no
limit of this one. What a port gives comes ``port_ns`` after the clock; what goes to a port is no
path's end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from vdla.boards.flows.yosys import Flat, unit_of
from vdla.explore.clock.cells import BLOCK, LOGIC, Cells, Kind, of_pin

NEVER = -1.0  # when a net settles that no path leads to


class Arc(NamedTuple):
    """A way into a net: from a source net over a wire to a cell's pin, and through the cell."""

    source: int
    cell: int
    pin: str
    wire_ns: float
    cell_ns: float
    level: int


class End(NamedTuple):
    """A path's end: a net that goes over a wire to a pin, where it has to be before the clock."""

    net: int
    cell: int
    pin: str
    wire_ns: float
    setup_ns: float


@dataclass(frozen=True)
class Step:
    """A step of a path: a cell's kind with the pins that it goes through, its own delay, that of
    the wire before it, and when it is done, in ns. ``sinks`` is how many the wire has, ``level`` is
    1 if the step is a level of logic: none is where a path begins or ends, or within a chain."""

    kind: str
    pins: str
    cell_ns: float
    wire_ns: float
    sinks: int
    at_ns: float
    level: int


class Paths:
    """Static timing of a netlist by the delays of a family's cells, with its wires at a scale."""

    def __init__(self, flat: Flat, cells: Cells, scale: float = 1.0) -> None:
        self.flat, self.cells = flat, cells
        self.kinds = [cells.kind(kind, parameters) for _, kind, _, parameters in flat.cells]
        self._driver: dict[int, tuple[int, str, int]] = {}
        self._sinks = Counter[int]()
        for index, (_, kind, pins, _) in enumerate(flat.cells):
            directions = flat.directions[kind]
            for pin, bits in pins.items():
                if directions[pin] == "output":
                    own = {bit: (index, pin, i) for i, bit in enumerate(bits) if bit is not None}
                    self._driver |= own
                else:
                    self._sinks.update(bit for bit in bits if bit is not None)
        self.clock = self._main_clock()
        self.ends = list(self._ends())
        self._arcs = self._in_order()
        self.rescale(scale)

    def rescale(self, scale: float) -> None:
        """Takes the wires at another scale."""
        self.scale = scale
        self._at: dict[int, float] = {}
        self._by: dict[int, Arc] = {}
        for net, arcs in self._arcs.items():
            best = self._launch(net)
            for arc in arcs:
                before = self._at.get(arc.source, NEVER)
                at = before + scale * arc.wire_ns + arc.cell_ns
                if before >= 0.0 and at > best:
                    best, self._by[net] = at, arc
            self._at[net] = best

    def _main_clock(self) -> int | None:
        """The net that clocks the most cells."""
        nets = Counter[int]()
        for index in range(len(self.kinds)):
            nets.update(set(self._clocks(index)))
        return nets.most_common(1)[0][0] if nets else None

    def _clocks(self, index: int) -> list[int]:
        kind, pins = self.kinds[index], self.flat.cells[index][2]
        names = kind.clocks if kind else ()
        return [bit for name in names for bit in pins.get(name, ()) if bit is not None]

    def _ends(self) -> Iterator[End]:
        """Inputs that have to stand before the main clock."""
        for index, kind in enumerate(self.kinds):
            if kind is None or not kind.setup or self.clock not in self._clocks(index):
                continue
            for pin, bits in self.flat.cells[index][2].items():
                setup = of_pin(kind.setup, pin)
                for bit in bits if setup is not None else ():
                    if bit is not None:
                        yield End(bit, index, pin, self._wire(bit, index, pin), setup or 0.0)

    def _in_order(self) -> dict[int, list[Arc]]:
        """The ways into each net that leads to an end, each net behind those that it follows. A
        loop is left out where it closes."""
        arcs, order = dict[int, list[Arc]](), dict[int, list[Arc]]()
        left = [end.net for end in self.ends]
        while left:
            net = left.pop()
            if net in order:
                continue
            if net in arcs:  # all before it are done
                order[net] = arcs[net]
                continue
            arcs[net] = self._into(net)
            left.append(net)
            left += [arc.source for arc in arcs[net] if arc.source not in arcs]
        return order

    def _into(self, net: int) -> list[Arc]:
        """The ways into a net through its driver."""
        if net not in self._driver:
            return []
        index, output, place = self._driver[net]
        kind, (_, name, pins, _) = self.kinds[index], self.flat.cells[index]
        arcs = _of_output(kind, output)
        result = []
        for pin, bits in pins.items() if kind and arcs else ():
            delay = of_pin(arcs, pin)
            if delay is None or self.flat.directions[name][pin] == "output":
                continue
            for other, bit in enumerate(bits):
                if bit is not None and not (kind and kind.rising and other > place):
                    level = int(kind is not None and pin not in kind.chain)
                    result.append(Arc(bit, index, pin, self._wire(bit, index, pin), delay, level))
        return result

    def _launch(self, net: int) -> float:
        """When a net changes by the clock alone, without a path before it."""
        if net not in self._driver:
            return self.cells.port_ns
        index, output, _ = self._driver[net]
        kind = self.kinds[index]
        launch = of_pin(kind.launch, output) if kind else None
        return launch if launch is not None and self.clock in self._clocks(index) else NEVER

    def _wire(self, net: int, index: int, pin: str) -> float:
        """Delay of the wire from a net's driver to a cell's pin, at scale 1."""
        sink, driver = self.kinds[index], self._driver.get(net)
        source = self.kinds[driver[0]] if driver else None
        if sink is None or (driver and source and _is_direct(source, driver[1], sink, pin)):
            return 0.0
        blocks = (sink.role == BLOCK) + (source is not None and source.role == BLOCK)
        return self.cells.wires.delay(self._sinks[net], blocks)

    def arrival(self, net: int) -> float:
        """When a net has settled, in ns after the clock; below 0 where no path leads there."""
        return self._at.get(net, NEVER)

    def needed(self, end: End) -> float:
        """The ns that a period needs for a path's end; below 0 where no path leads there."""
        before = self.arrival(end.net)
        return before if before < 0.0 else before + self.scale * end.wire_ns + end.setup_ns

    def longest(self) -> dict[str, float]:
        """The longest path that ends at a register of each unit."""
        worst: dict[str, float] = {}
        for end in self.ends:
            unit = unit_of(self.flat.cells[end.cell][0])
            worst[unit] = max(worst.get(unit, 0.0), self.needed(end))
        return worst

    def period_ns(self) -> float:
        """The least period of the main clock."""
        return max([0.0, *map(self.needed, self.ends)])

    def critical(self) -> list[Step]:
        """The longest path, from its register on; empty where there is none."""
        end = max(self.ends, key=self.needed, default=None)
        if end is None or (needed := self.needed(end)) < 0.0:
            return []
        kind, net = self.flat.cells[end.cell][1], end.net
        wire, sinks = self.scale * end.wire_ns, self._sinks[net]
        steps = [Step(kind, end.pin, end.setup_ns, wire, sinks, needed, 0)]
        while arc := self._by.get(net):
            kind, output = self.flat.cells[arc.cell][1], self._driver[net][1]
            wire, sinks = self.scale * arc.wire_ns, self._sinks[arc.source]
            pins, at = f"{arc.pin} {output}", self._at[net]
            steps.append(Step(kind, pins, arc.cell_ns, wire, sinks, at, arc.level))
            net = arc.source
        launch, (index, output, _) = self._at[net], self._driver.get(net, (-1, "port", 0))
        kind = self.flat.cells[index][1] if index >= 0 else "port"
        steps.append(Step(kind, output, launch, 0.0, 0, launch, 0))
        return steps[::-1]


def _of_output(kind: Kind | None, output: str) -> dict[str, float]:
    """The inputs that a kind's output follows, and by how much."""
    if kind is None:
        return {}
    arcs = kind.arcs.get(output) or kind.arcs.get(output.rstrip("0123456789"), {})
    return dict(arcs)


def _is_direct(source: Kind, output: str, sink: Kind, pin: str) -> bool:
    """Whether no wire lies between two pins: in a chain, or beside the LUT that feeds a cell."""
    if output in source.chain and pin in sink.chain:
        return True
    packed = pin in sink.packed or pin.rstrip("0123456789") in sink.packed
    return packed and source.role == LOGIC
