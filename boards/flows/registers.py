"""Registers around an ECP5's multipliers moved into them, in the netlist that yosys wrote.

yosys leaves the registers of a MULT18X18D unused (Lattice's TN1267). nextpnr
places and routes what stands in the netlist, so a register is moved here where it can be:

1. Registers in front of both inputs are moved together: nextpnr knows no times of a multiplier
   with one of them. A bit that is constant stays as it is.
2. A register behind the output is moved if it takes what the multiplier alone gives it, all the
   output's bits that are used are registered, and none goes anywhere else.
3. All registers of a multiplier have one clock and no enable. A reset is synchronous and makes
   zero; all bits of an input have the same, and those of the output have none.
4. A register that others read as well stays for these, and its copy is in the multiplier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vdla.boards.flows.yosys import Netlist

Bit = int | str  # of a net, or a constant
Cell = dict[str, Any]
Cells = dict[str, Cell]

MULTIPLIER, REGISTER = "MULT18X18D", "TRELLIS_FF"
INPUT_BITS, OUTPUT_BITS = 18, 36
INPUTS, OUTPUT = ("A", "B"), "P"
PARAMETERS = {"A": "REG_INPUTA", "B": "REG_INPUTB", "P": "REG_OUTPUT"}
RESETS = {"A": "RST0", "B": "RST1"}
NONE = "0"  # the constant that a port without a net has


class Control(NamedTuple):
    """What registers that are moved together have in common: the nets of clock and reset; the
    latter is NONE where they have no reset."""

    clock: Bit
    reset: Bit


def move_registers(modules: Netlist) -> int:
    """Moves registers into multipliers of their own module in a netlist of yosys; gives the number
    of registers that are gone."""
    before = sum(len(module["cells"]) for module in modules.values())
    for module in modules.values():
        _Mover(module["cells"], module["ports"]).move_all()
    return before - sum(len(module["cells"]) for module in modules.values())


class _Mover:
    """The cells of a module, what drives each net, and how often it is read."""

    def __init__(self, cells: Cells, ports: Mapping[str, Cell]) -> None:
        self.cells = cells
        self.registers: dict[Bit, str] = {}  # the register that drives a net
        self.readers: dict[Bit, list[str]] = defaultdict(list)  # cells that read a net
        for name, cell in cells.items():
            if cell["type"] == REGISTER:
                self.registers[cell["connections"]["Q"][0]] = name
            for bit in _read(cell):
                self.readers[bit].append(name)
        for port in ports.values():
            for bit in port["bits"]:
                self.readers[bit].append("")

    def move_all(self) -> None:
        """Moves what can be moved, multiplier by multiplier."""
        for name, cell in list(self.cells.items()):
            if cell["type"] == MULTIPLIER:
                self._move(name, cell)

    def _move(self, name: str, cell: Cell) -> None:
        """Moves the registers around a multiplier."""
        pins = cell["connections"]
        inputs = {port: self._before(pins, port) for port in INPUTS}
        output = self._behind(pins)
        clocks = {control.clock for control in inputs.values() if control}
        if None in inputs.values() or len(clocks) != 1:
            inputs = {}
        if output and inputs and {output.clock} != clocks:
            output = None
        for port, control in inputs.items():
            assert control is not None
            self._take_input(name, cell, port, control)
        if output:
            self._take_output(cell, output)

    def _before(self, pins: dict[str, list[Bit]], port: str) -> Control | None:
        """What the registers of an input have in common; None if it isn't registered."""
        bits = {pins[f"{port}{n}"][0] for n in range(INPUT_BITS)} - {"0", "1", "x"}
        return self._common(bits)

    def _behind(self, pins: dict[str, list[Bit]]) -> Control | None:
        """What the registers behind the output have in common; None if not all are registers."""
        nets = _outputs(pins)
        used = {bit: self.readers[bit] for bit in nets if self.readers[bit]}
        if any(len(readers) != 1 for readers in used.values()):
            return None
        registers = [self.cells.get(name) for (name,) in used.values()]
        if any(r is None or r["type"] != REGISTER for r in registers):
            return None
        if any(r["connections"]["DI"][0] not in used for r in registers if r):
            return None  # read as a clock, or a reset
        control = self._common({r["connections"]["Q"][0] for r in registers if r})
        return control if control and control.reset == NONE else None

    def _common(self, bits: set[Bit]) -> Control | None:
        """What registers that drive all of the nets have in common; None if there are none."""
        if not bits or any(bit not in self.registers for bit in bits):
            return None
        controls = {_control(self.cells[self.registers[bit]]) for bit in bits}
        return controls.pop() if len(controls) == 1 else None

    def _take_input(self, name: str, cell: Cell, port: str, control: Control) -> None:
        """Takes the registers of an input in, out of the netlist if nothing else reads them."""
        pins = cell["connections"]
        _enable(cell, port, control)
        for n in range(INPUT_BITS):
            bit = pins[f"{port}{n}"][0]
            if bit not in self.registers:
                continue
            register = self.registers[bit]
            data = self.cells[register]["connections"]["DI"][0]
            pins[f"{port}{n}"] = [data]
            self.readers[data].append(name)
            self.readers[bit].remove(name)
            if not self.readers[bit]:
                self._remove(register)

    def _take_output(self, cell: Cell, control: Control) -> None:
        """Takes the registers of the output in: its pins have their nets."""
        pins = cell["connections"]
        _enable(cell, OUTPUT, control)
        for n in range(OUTPUT_BITS):
            for name in list(self.readers[pins[f"{OUTPUT}{n}"][0]]):
                pins[f"{OUTPUT}{n}"] = self.cells[name]["connections"]["Q"]
                self._remove(name)

    def _remove(self, register: str) -> None:
        """Takes a register out of the netlist."""
        cell = self.cells.pop(register)
        del self.registers[cell["connections"]["Q"][0]]
        for bit in _read(cell):
            self.readers[bit].remove(register)


def _read(cell: Cell) -> Iterator[Bit]:
    """Nets that a cell reads, one for each pin."""
    for pin, bits in cell["connections"].items():
        if cell["port_directions"][pin] == "input":
            yield from bits


def _outputs(pins: dict[str, list[Bit]]) -> list[Bit]:
    """Nets of a multiplier's output."""
    return [pins[f"{OUTPUT}{n}"][0] for n in range(OUTPUT_BITS) if f"{OUTPUT}{n}" in pins]


def _control(register: Cell) -> Control | None:
    """A register's clock and reset; None if a multiplier has no such register."""
    pins, kind = register["connections"], register["parameters"]
    plain = (
        kind.get("CEMUX", "1").strip() == "1"
        and kind.get("CLKMUX", "CLK") == "CLK"
        and kind.get("LSRMUX", "LSR") == "LSR"
        and kind.get("REGSET", "RESET") == "RESET"
    )
    reset = pins.get("LSR", [NONE])[0]
    synchronous = kind.get("SRMODE", "LSR_OVER_CE") == "LSR_OVER_CE" or reset == NONE
    return Control(pins["CLK"][0], reset) if plain and synchronous else None


def _enable(cell: Cell, port: str, control: Control) -> None:
    """Switches the registers of a port on."""
    connections, directions, kind = (
        cell[key] for key in ("connections", "port_directions", "parameters")
    )
    name = PARAMETERS[port]
    kind.update({f"{name}_CLK": "CLK0", f"{name}_CE": "CE0", "RESETMODE": "SYNC"})
    pins = {"CLK0": control.clock, "CE0": "1"}
    if port in RESETS:
        kind[f"{name}_RST"] = RESETS[port]
        pins[RESETS[port]] = control.reset
    for pin, bit in pins.items():
        connections[pin], directions[pin] = [bit], "input"
