"""Reading of a netlist: a circuit that grows cell by cell, in the words of a family's file.

Cells are read kind by kind: first those that clocks come from or that only lead a net elsewhere,
then those that make constants, then all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from vdla.boards.board import BoardError
from vdla.boards.netlists.cells import Bit, Cell, Module
from vdla.boards.netlists.circuit import (
    CORE,
    FAST,
    HIGH,
    LOW,
    SMALL_BITS,
    SMALL_WORDS,
    Circuit,
    Net,
    SmallRam,
)

LATE = "late"  # the clock of the SDRAM's pin
LOCKED = "locked"
OSCILLATOR = "oscillator"  # the output that is the PLL's input
DRIVES = ".drives"  # behind a pad's name: the output that says whether it drives its pin
NEAR = Fraction(1, 1000)  # MHz, and ns: so near is the same

SmallWay = tuple[str, tuple[Net, ...], tuple[Net, ...], Net]  # clock, read, write, enable
Add = Callable[["Reader", Cell], None]


@dataclass(frozen=True)
class Times:
    """Clocks that a board's PLL is to make: MHz by its name, and ns that LATE is later."""

    mhz: Mapping[str, Fraction]
    late: Fraction


class Reader:
    """A circuit, and the nets of a module's bits."""

    def __init__(self, module: Module, times: Times) -> None:
        self.module, self.times, self.circuit = module, times, Circuit()
        self._nets: dict[Bit, Net] = {"0": LOW, "1": HIGH, "x": LOW, "z": LOW}
        self._clocks: dict[Net, str] = {}
        self._pads = {bit: name for name, bit in _port_bits(module)}
        self._small: dict[SmallWay, list[tuple[Net, Net, int]]] = {}
        self._asynchronous: list[tuple[str, Net]] = []
        self._constants: dict[Net, Net] = {}
        self._searched = 0  # gates that are no constants, or are among them

    def read(self, kinds: Mapping[str, Add]) -> Circuit:
        """The circuit of all cells, which are read in the order of ``kinds``.

        Raises:
            BoardError: a cell is of a kind that isn't known, or used in a way that isn't.
        """
        cells = self.module.cells.values()
        for cell in cells:
            if cell.kind not in kinds:
                raise BoardError(
                    f"cell {cell.name}: expected one of the kinds {', '.join(sorted(kinds))}, "
                    f"found {cell.kind}"
                )
        for kind, add in kinds.items():
            for cell in cells:
                if cell.kind == kind:
                    add(self, cell)
        self._add_small_rams()
        self._check_resets()
        return self.circuit

    # Nets -----------------------------------------------------------------------------------------

    def of(self, bit: Bit) -> Net:
        """The net of a bit; what is unknown is low."""
        if bit not in self._nets:
            self._nets[bit] = self.circuit.net()
        return self._nets[bit]

    def pin(self, cell: Cell, pin: str, default: Net = LOW) -> Net:
        """The net at a pin of one bit; ``default`` where there is none."""
        bits = cell.pins.get(pin)
        return self.of(bits[0]) if bits else default

    def bus(self, cell: Cell, pin: str) -> tuple[Net, ...]:
        """The nets at a pin, the lowest bit first."""
        return tuple(self.of(bit) for bit in cell.pins.get(pin, ()))

    def pins(self, cell: Cell, name: str, count: int) -> tuple[Net, ...]:
        """The nets at pins that are numbered; low where there is none."""
        return tuple(self.pin(cell, f"{name}{n}") for n in range(count))

    def output(self, cell: Cell, pin: str) -> Net:
        """The net at an output; a new one where there is none."""
        bits = cell.pins.get(pin)
        return self.of(bits[0]) if bits else self.circuit.net()

    def outputs(self, cell: Cell, name: str, count: int) -> tuple[Net, ...]:
        """The nets at outputs: those of a pin of several bits, or of pins that are numbered."""
        if name in cell.pins:
            return self.bus(cell, name)
        return tuple(self.output(cell, f"{name}{n}") for n in range(count))

    def buses(self, cell: Cell, name: str, count: int) -> tuple[Net, ...]:
        """The nets at a pin of several bits, or at pins that are numbered; a new one where there is
        none, which is low."""
        bits = cell.pins.get(name)
        if bits:
            nets = [self.of(bit) for bit in bits]
            return (*nets, *(self.circuit.net() for _ in range(count - len(nets))))
        return self.outputs(cell, name, count)

    def gate(self, cell: Cell, table: int, inputs: Iterable[str], output: str) -> None:
        """Adds a gate between pins."""
        nets = (self.pin(cell, pin) for pin in inputs)
        self.circuit.gate(table, *nets, output=self.output(cell, output))

    def alias(self, cell: Cell, source: str, target: str) -> None:
        """Leads the net at one pin to another."""
        if bits := cell.pins.get(target):
            self._nets[bits[0]] = self.pin(cell, source)

    def small_ram_bit(self, way: SmallWay, output: Net, data: Net, words: int) -> None:
        """Adds one bit of a small RAM; ``words`` has that bit of each word."""
        self._small.setdefault(way, []).append((output, data, words))

    # Clocks, pads ---------------------------------------------------------------------------------

    def clock(self, cell: Cell, pin: str, inverted: bool = False) -> str:
        """The clock at a pin: CORE, or FAST, as LATE is here.

        Raises:
            BoardError: it is no clock of the PLL, or a complement.
        """
        name = self._clocks.get(self.pin(cell, pin))
        if name is None or inverted:
            kind = "a complement" if inverted else "another net"
            raise BoardError(
                f"cell {cell.name}: expected one of the PLL's clocks for registers at {pin}, "
                f"found {kind}"
            )
        return CORE if name == CORE else FAST

    def pll_output(self, cell: Cell, pin: str, clock: str, mhz: Fraction, late: Fraction) -> None:
        """Takes an output of a PLL, of ``mhz`` and ``late`` µs behind its first.

        Raises:
            BoardError: the clock isn't what the board's design asks for.
        """
        wanted = (self.times.mhz.get(clock, Fraction(0)), self.times.late if clock == LATE else 0)
        if abs(mhz - wanted[0]) > NEAR or abs(late * 1000 - wanted[1]) > NEAR:
            raise BoardError(
                f"cell {cell.name}: expected {pin} of {float(wanted[0]):g} MHz, "
                f"{float(wanted[1]):g} ns late, found {float(mhz):g} MHz, {float(late * 1000):g} ns"
            )
        self._clocks[self.output(cell, pin)] = clock
        self.circuit.inputs[clock] = self.output(cell, pin)

    def lock(self, cell: Cell, pin: str, oscillator: str) -> None:
        """Takes the output that says that a PLL has locked, and the pad of its oscillator."""
        self.circuit.inputs[LOCKED] = self.output(cell, pin)
        self.circuit.outputs[OSCILLATOR] = self.pin(cell, oscillator)

    def clock_out(self, cell: Cell, data: Sequence[str], clock: str, output: str) -> None:
        """Takes a register of double rate that shows a clock, high in its first half.

        Raises:
            BoardError: it shows something else.
        """
        levels = tuple(self.pin(cell, pin) for pin in data)
        constants = tuple(self.constant(net) for net in levels)
        if constants != (HIGH, LOW) or self._clocks.get(self.pin(cell, clock)) != LATE:
            raise BoardError(
                f"cell {cell.name}: expected the SDRAM's clock, high in its first half, found "
                f"another"
            )
        self.alias(cell, clock, output)

    def constant(self, net: Net) -> Net:
        """LOW or HIGH for a net that a gate without inputs drives, else the net."""
        for gate in self.circuit.gates[self._searched :]:
            if gate.table in (0, (1 << (1 << len(gate.inputs))) - 1):
                self._constants[gate.output] = HIGH if gate.table else LOW
        self._searched = len(self.circuit.gates)
        return self._constants.get(net, net)

    def pad_name(self, cell: Cell, pin: str) -> str:
        """The name of a pad: its port's, with the number of its bit in a port of several.

        Raises:
            BoardError: it is at no port.
        """
        name = self._pads.get(cell.pins[pin][0])
        if name is None:
            raise BoardError(f"cell {cell.name}: expected a pad at a port, found one at none")
        return name

    def asynchronous(self, cell: Cell, reset: Net) -> None:
        """Notes a reset that needs no clock. Here it takes one, which is the same for one that only
        comes from the PLL's lock, before its clocks are there."""
        self._asynchronous.append((cell.name, reset))

    def _check_resets(self) -> None:
        gates = {gate.output: gate.inputs for gate in self.circuit.gates}
        allowed = {LOW, HIGH, self.circuit.inputs.get(LOCKED, LOW)}
        for name, reset in self._asynchronous:
            stack = [reset]
            while stack:
                net = stack.pop()
                if net in gates:
                    stack += gates[net]
                elif net not in allowed:
                    raise BoardError(
                        f"cell {name}: expected an asynchronous reset from the PLL's lock alone, "
                        "found another"
                    )

    def _add_small_rams(self) -> None:
        for (clock, read, write, enable), bits in self._small.items():
            for first in range(0, len(bits), SMALL_BITS):
                some = bits[first : first + SMALL_BITS]
                rows = range(SMALL_WORDS)
                words = tuple(
                    sum((table >> row & 1) << n for n, (_, _, table) in enumerate(some))
                    for row in rows
                )
                spare = SMALL_BITS - len(some)
                outputs = (
                    *(out for out, _, _ in some),
                    *(self.circuit.net() for _ in range(spare)),
                )
                data = (*(net for _, net, _ in some), *([LOW] * spare))
                self.circuit.small_rams.append(
                    SmallRam(clock, outputs, read, write, data, enable, words)
                )


def _port_bits(module: Module) -> Iterable[tuple[str, Bit]]:
    """Names of ports' bits: ``NAME[i]`` of a port of several."""
    for name, bits in module.ports.items():
        for number, bit in enumerate(bits):
            yield (name if len(bits) == 1 else f"{name}[{number}]"), bit
