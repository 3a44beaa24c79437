"""Delays of cells and wires of a family of devices, in ns.

A ``Kind`` is a cell of a mapped netlist: what its outputs follow, when its outputs change after the
clock, and how long before the clock its inputs have to stand. Pins are found by their whole name,
else by the name without the number behind it: ``A`` is each of ``A0`` to ``A17``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log2

Times = Mapping[str, float]  # ns by pin
Parameters = Mapping[str, object]  # of a cell, by name
FLIP_FLOP, LOGIC, BLOCK, CHAIN = "flip-flop", "logic", "block", "chain"  # what a kind is, for wires


@dataclass(frozen=True)
class Kind:
    """A kind of cell.

    ``arcs`` are ns from inputs to an output without a clock, by the output's name and the input's;
    with ``rising`` bits a bit of an output follows inputs' bits up to its own, as in a carry chain.
    ``launch`` is from the clock to outputs, ``setup`` from inputs to the clock, at ``clocks``.
    ``chain`` are pins of a chain: no wire lies between two of them. ``packed`` are inputs that a
    LUT beside the cell feeds without a wire. ``variant`` makes the kind for a cell's parameters.
    """

    role: str
    arcs: Mapping[str, Times] = field(default_factory=dict)
    launch: Times = field(default_factory=dict)
    setup: Times = field(default_factory=dict)
    clocks: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    packed: tuple[str, ...] = ()
    rising: bool = False
    variant: Callable[[Parameters], Kind] | None = None


@dataclass(frozen=True)
class Wires:
    """Delay of a wire in ns: ``first``, ``doubling`` more for each doubling of its sinks, and
    ``block`` more where it begins or ends at a block RAM or a multiplier, since these stand in
    columns."""

    first: float
    doubling: float
    block: float

    def delay(self, sinks: int, blocks: int) -> float:
        """Delay of a wire with so many sinks, of whose two ends so many are at blocks."""
        return self.first + self.doubling * log2(max(sinks, 1)) + self.block * blocks


@dataclass(frozen=True)
class Cells:
    """Kinds of cells of a family, by yosys's name or what it begins with, and its wires."""

    kinds: Mapping[str, Kind]
    wires: Wires
    port_ns: float = 0.0  # when a port's input arrives after the clock

    def kind(self, name: str, parameters: Parameters) -> Kind | None:
        """The kind of a cell; None where no path leads through it."""
        result = self.kinds.get(name) or self.kinds.get(name.rstrip("0123456789"))
        return result.variant(parameters) if result and result.variant else result

    @cached_property
    def levels(self) -> Cells:
        """The family with 1 for each cell on the way and 0 for what stands in a chain; wires and
        clocks take nothing. So delays are levels of logic."""
        return Cells({name: _levels(kind) for name, kind in self.kinds.items()}, Wires(0, 0, 0))


def _levels(kind: Kind) -> Kind:
    arcs = {
        output: {pin: 0.0 if pin in kind.chain else 1.0 for pin in times}
        for output, times in kind.arcs.items()
    }
    none = dict.fromkeys
    variant = kind.variant
    return replace(
        kind,
        arcs=arcs,
        launch=none(kind.launch, 0.0),
        setup=none(kind.setup, 0.0),
        variant=None if variant is None else lambda parameters: _levels(variant(parameters)),
    )


def of_pin(table: Mapping[str, float], pin: str) -> float | None:
    """Figure that a table has for a pin, by its whole name or without its number; None if it has
    none."""
    return table.get(pin, table.get(pin.rstrip("0123456789")))
