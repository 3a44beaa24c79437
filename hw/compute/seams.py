"""Seams of an engine of micro-ops: what options may do in its stages.

    issue → F1 → F2 → READ → 1 → … → 8 combine → 9 write
    take pass_on            feed    in_place_of_x
                 decide, beyond
                      read, keeps, places

An option changes GEMM or ALU (``instruction``): its hooks are in the engine that executes that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from amaranth import Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component

from vdla.hw.hooks import PortHooks
from vdla.isa.instructions import Instruction


@dataclass(frozen=True)
class Place:
    """A further place that micro-ops of GEMM read, at a port of its own.

    The hook gives what the loops add up to (``pass_on``). The micro-op adds its own field
    ``beside``, as it does to the index of that name. GEMM has an input of the place's name for the
    data.
    """

    memory: str  # that it lies in
    port: str  # of the engine
    beside: str
    when: Callable[[data.View], Value]  # whether micro-ops of an instruction read it


@dataclass(frozen=True)
class Reading:
    """Activity of the micro-op in READ in a cycle."""

    waits: Value  # its operands can't be read
    begun: Signal  # they have been, and it stays; driven by the hook that keeps it
    hold: Value  # READ holds, for this or for another reason


class MicroOpHooks(PortHooks):
    """Hooks of an option in the engine that executes ``instruction``.

    ``kept``: fields of the instruction that its micro-ops take along, beside those that all configs
    keep. ``places``: by their names, what its micro-ops read more. ``marks``: bits of the micro-op
    in READ, which ``decide`` fills.
    """

    instruction: ClassVar[type[Instruction]]
    kept: tuple[str, ...] = ()
    places: Mapping[str, Place] = {}
    marks: tuple[str, ...] = ()

    def begin(self, m: Module, unit: Component) -> None:
        """Makes submodules; ``unit`` is the engine, which has the ports, and its ``micro_ops``."""
        self.unit = unit

    def take(self, m: Module, word: data.View) -> None:
        """Keeps what ``pass_on`` needs of the instruction that the loop nest takes now."""

    def pass_on(self, m: Module, f1: data.View, sums: Mapping[str, Value]) -> None:
        """Fills what F1 keeps of each place: one bit more than the index ``beside``.

        ``sums`` are the loops' sums of the micro-op that comes to F1, by index.
        """

    def decide(self, f2: data.View, first: Value) -> dict[str, Value]:
        """The ``marks`` of the micro-op in F2; ``first``: it starts a reduction."""
        return {}

    def beyond(self, f2: data.View, first: Value) -> tuple[Value, ...]:
        """Conditions on which the micro-op in F2 is a fault, where ALU executes it."""
        return ()

    def read(self, m: Module, read: data.View, reading: Reading) -> None:
        """Looks at the micro-op in READ, ``read``. One that is computed there for several cycles
        has ``reading.begun`` high from the cycle after its operands were read until it passes."""

    def keeps(self, read: data.View) -> tuple[Value, ...]:
        """Conditions on which a micro-op stays in READ, for work of the option that begins when its
        operands can be read: the engine is busy from then on."""
        return ()

    def in_place_of_x(self) -> tuple[Value, ...]:
        """Results of all lanes in stage 8 where the micro-op has no late x, zero for others."""
        return ()

    def feed(self, m: Module, unit: Component, stages: Sequence[data.View]) -> None:
        """Connects what the option has with ``unit``, GEMM or ALU, and with the ``stages`` beside
        it."""
