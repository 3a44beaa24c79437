"""Registers around an ECP5's multipliers and block RAMs moved into them, in a netlist of yosys.

yosys leaves the registers of a MULT18X18D, and those behind a DP16KD, unused (Lattice's TN1267 and
TN1264). nextpnr places and routes what stands in the netlist, so a register is moved here:

1. Registers in front of both inputs of a multiplier are moved together: nextpnr knows no times of
   one with a single input registered. A bit that is constant stays as it is.
2. Registers behind an output are moved if all the output's bits that are used are registered, and
   none goes anywhere else. A block RAM 36 bits wide has one output, else it has two.
3. All registers of a cell have one clock and no enable. A reset is synchronous and makes zero; all
   bits of an input have the same, and those of an output have none.
4. A register that others read as well stays for these, and its copy is in the multiplier.
5. A product's registers have a reset that is low. By default they would have RST0, which nextpnr
   gives to a reset of another multiplier of the same block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vdla.boards.flows.yosys import Netlist

Bit = int | str  # of a net, or a constant
Cell = dict[str, Any]
Cells = dict[str, Cell]

MULTIPLIER, RAM, REGISTER = "MULT18X18D", "DP16KD", "TRELLIS_FF"
INPUT_BITS, OUTPUT_BITS = 18, 36
INPUTS = ("A", "B")
RESETS = {"A": "RST0", "B": "RST1"}  # of a multiplier's inputs
PRODUCT_RESET = "RST3"
PRODUCT = [f"P{n}" for n in range(OUTPUT_BITS)]
HALVES = {port: [f"DO{port}{n}" for n in range(OUTPUT_BITS // 2)] for port in "AB"}  # of a RAM
WHOLE = 36  # bits of a block RAM whose halves are one output, of port B
NONE = "0"  # the constant that a port without a net has


class Control(NamedTuple):
    """Nets that registers which are moved together have in common: the clock's and the reset's,
    which is NONE where they have no reset."""

    clock: Bit
    reset: Bit


def move_registers(modules: Netlist) -> int:
    """Moves registers into multipliers and block RAMs of their own module in a netlist of yosys;
    gives the number of registers that are gone."""
    before = sum(len(module["cells"]) for module in modules.values())
    for module in modules.values():
        _Mover(module["cells"], module["ports"]).move_all()
    return before - sum(len(module["cells"]) for module in modules.values())


class _Mover:
    """The cells of a module, the register that drives each net, and the cells that read it."""

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
        """Moves what can be moved, cell by cell."""
        for name, cell in list(self.cells.items()):
            if cell["type"] == MULTIPLIER:
                self._around(name, cell)
            elif cell["type"] == RAM:
                self._behind_ram(cell)

    def _around(self, name: str, cell: Cell) -> None:
        """Moves the registers around a multiplier."""
        pins = cell["connections"]
        inputs = {port: self._before(pins, port) for port in INPUTS}
        output = self._behind(pins, PRODUCT)
        clocks = {control.clock for control in inputs.values() if control}
        if None in inputs.values() or len(clocks) != 1:
            inputs = {}
        if output and inputs and {output.clock} != clocks:
            output = None
        for port, control in inputs.items():
            assert control is not None
            self._take_input(name, cell, port, control)
        if output:
            controls = {"CLK": "CLK0", "CE": "CE0", "RST": PRODUCT_RESET}
            _set(cell, {f"REG_OUTPUT_{name}": pin for name, pin in controls.items()})
            _connect(cell, {"CLK0": output.clock, "CE0": "1", PRODUCT_RESET: NONE})
            self._take_output(cell, PRODUCT)

    def _behind_ram(self, cell: Cell) -> None:
        """Moves the registers behind a block RAM."""
        whole = int(cell["parameters"]["DATA_WIDTH_A"], 2) == WHOLE
        outputs = {"B": HALVES["A"] + HALVES["B"]} if whole else HALVES
        for port, output in outputs.items():
            control = self._behind(cell["connections"], output)
            if control and cell["connections"][f"CLK{port}"] == [control.clock]:
                ports = "AB" if whole else port
                _set(cell, {f"REGMODE_{each}": "OUTREG" for each in ports})
                _connect(cell, {f"OCE{each}": "1" for each in ports})
                self._take_output(cell, output)

    def _before(self, pins: dict[str, list[Bit]], port: str) -> Control | None:
        """The control of an input's registers; None if it isn't registered."""
        bits = {pins[f"{port}{n}"][0] for n in range(INPUT_BITS)} - {"0", "1", "x"}
        return self._common(bits)

    def _behind(self, pins: dict[str, list[Bit]], output: Sequence[str]) -> Control | None:
        """The control of the registers behind an output; None if not all are registers."""
        nets = [pins[pin][0] for pin in output if pin in pins]
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
        """The control of the registers that drive all of the nets; None if they have several."""
        if not bits or any(bit not in self.registers for bit in bits):
            return None
        controls = {_control(self.cells[self.registers[bit]]) for bit in bits}
        return controls.pop() if len(controls) == 1 else None

    def _take_input(self, name: str, cell: Cell, port: str, control: Control) -> None:
        """Takes the registers of an input in, out of the netlist if nothing else reads them."""
        pins, register, reset = cell["connections"], f"REG_INPUT{port}", RESETS[port]
        _set(cell, {f"{register}_CLK": "CLK0", f"{register}_CE": "CE0", f"{register}_RST": reset})
        _set(cell, {"RESETMODE": "SYNC"})
        _connect(cell, {"CLK0": control.clock, "CE0": "1", reset: control.reset})
        for n in range(INPUT_BITS):
            bit = pins[f"{port}{n}"][0]
            if bit not in self.registers:
                continue
            moved = self.registers[bit]
            data = self.cells[moved]["connections"]["DI"][0]
            pins[f"{port}{n}"] = [data]
            self.readers[data].append(name)
            self.readers[bit].remove(name)
            if not self.readers[bit]:
                self._remove(moved)

    def _take_output(self, cell: Cell, output: Sequence[str]) -> None:
        """Takes the registers of an output in: its pins have their nets."""
        pins = cell["connections"]
        for pin in output:
            for name in list(self.readers[pins[pin][0]] if pin in pins else ()):
                pins[pin] = self.cells[name]["connections"]["Q"]
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


def _set(cell: Cell, parameters: Mapping[str, str]) -> None:
    """Sets parameters of a cell."""
    cell["parameters"].update(parameters)


def _connect(cell: Cell, pins: Mapping[str, Bit]) -> None:
    """Connects inputs of a cell."""
    for pin, bit in pins.items():
        cell["connections"][pin], cell["port_directions"][pin] = [bit], "input"
