"""Slots of a Gowin in a netlist of yosys: fewer are taken, and nextpnr is told which ones.

A slot is a LUT and the flip-flop behind it. nextpnr-himbaechel gives a flip-flop no input but its
own slot's LUT, or ALU: one that anything else drives takes a slot, with a LUT that passes it on.

1. Registers behind a MULT18X18 move into it (Gowin UG287, OUT_REG) if all its outputs that are used
   are registered, and none goes anywhere else: yosys leaves its registers unused. They have one
   clock, no enable and no reset.
2. A flip-flop that would be alone in its slot gets the LUT that nextpnr puts before it when all is
   placed. So nextpnr keeps both together, and sees that the slot is taken: else it places LUTs and
   flip-flops each as if the others weren't there, and finds no place for the last of them.
3. A LUT of fewer inputs becomes a LUT4 with the others low. nextpnr 0.11.1 has the times of a LUT4
   alone: a path with a LUT1, LUT2 or LUT3 in it isn't in the clock that it reports, nor in what it
   places and routes for. Twenty LUT3 in a row give 3,759 MHz, and 73 as LUT4.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from vdla.boards.flows.yosys import Netlist

Bit = int | str  # of a net, or a constant
Cell = dict[str, Any]

MULTIPLIER, PRODUCT, PLAIN = "MULT18X18", "DOUT", "DFF"
ALONE = "alone"  # after the name of a flip-flop: the LUT that passes its input on
IN_SLOT = {"LUT1": "F", "LUT2": "F", "LUT3": "F", "LUT4": "F", "ALU": "SUM"}  # output to its own FF
CONSTANT = ("GND", "VCC")
MOST_INPUTS = 4  # of a LUT


def fill_slots(modules: Netlist) -> tuple[int, int]:
    """Moves registers, and puts LUTs before flip-flops; gives the number of each."""
    moved = alone = 0
    for module in modules.values():
        filler = _Filler(module)
        moved += sum(filler.move(cell) for cell in filler.of_kind(MULTIPLIER))
        alone += filler.pass_on()
        for inputs in range(1, MOST_INPUTS):
            for cell in filler.of_kind(f"LUT{inputs}"):
                _widen(cell, inputs)
    return moved, alone


class _Filler:
    """The cells of a module, the output that drives each net, and the inputs that read it."""

    def __init__(self, module: Cell) -> None:
        self.cells: dict[str, Cell] = module["cells"]
        self.drivers: dict[Bit, tuple[str, str]] = {}  # cell and pin
        self.readers: dict[Bit, list[tuple[str, str]]] = defaultdict(list)
        for name, cell in self.cells.items():
            for pin, bits in cell["connections"].items():
                for bit in bits:
                    if cell["port_directions"][pin] == "output":
                        self.drivers[bit] = name, pin
                    else:
                        self.readers[bit].append((name, pin))
        for port in module["ports"].values():
            for bit in port["bits"]:
                self.readers[bit].append(("", ""))
        named = [bit for net in module["netnames"].values() for bit in net["bits"]]
        nets = [*self.readers, *self.drivers, *named]
        self.nets = max((bit for bit in nets if isinstance(bit, int)), default=0)

    def of_kind(self, kind: str) -> list[Cell]:
        """The cells of a kind."""
        return [cell for cell in self.cells.values() if cell["type"] == kind]

    def move(self, multiplier: Cell) -> int:
        """Moves the registers behind a multiplier into it; gives their number."""
        pins = multiplier["connections"]
        product: list[Bit] = pins[PRODUCT]
        used = {bit: self.readers[bit] for bit in product if self.readers[bit]}
        if not used or any(len(readers) != 1 for readers in used.values()):
            return 0
        registers = {bit: name for bit, ((name, pin),) in used.items() if pin == "D"}
        if len(registers) != len(used):
            return 0
        behind = [self.cells[name] for name in registers.values()]
        clocks = {cell["connections"]["CLK"][0] for cell in behind}
        if len(clocks) != 1 or any(cell["type"] != PLAIN for cell in behind):
            return 0
        outputs = {bit: self.cells[name]["connections"]["Q"][0] for bit, name in registers.items()}
        pins[PRODUCT] = [outputs.get(bit, bit) for bit in product]
        pins.update(CLK=[clocks.pop()], CE=["1"], RESET=["0"])
        multiplier["parameters"]["OUT_REG"] = "1"
        for bit, name in registers.items():
            del self.cells[name]
            self.drivers[outputs[bit]] = self.drivers.pop(bit)
        return len(registers)

    def pass_on(self) -> int:
        """Puts a LUT before each flip-flop that would be alone in its slot; gives their number."""
        taken = set()
        before = len(self.cells)
        for name, cell in list(self.cells.items()):
            if not cell["type"].startswith(PLAIN):
                continue
            bit = cell["connections"]["D"][0]
            driver, pin = self.drivers.get(bit, ("", ""))
            kind = self.cells[driver]["type"] if driver else ""
            if isinstance(bit, str) or kind in CONSTANT:
                continue  # nextpnr makes it of a LUT without an input
            if IN_SLOT.get(kind) == pin and driver not in taken:
                taken.add(driver)
                continue
            self.nets += 1
            self.cells[f"{name}_{ALONE}"] = _same(bit, self.nets)
            cell["connections"]["D"] = [self.nets]
        return len(self.cells) - before


def _same(bit: Bit, net: int) -> Cell:
    """A LUT whose output is its input."""
    return {
        "hide_name": 0,
        "type": "LUT1",
        "parameters": {"INIT": "10"},
        "attributes": {},
        "port_directions": {"I0": "input", "F": "output"},
        "connections": {"I0": [bit], "F": [net]},
    }


def _widen(lut: Cell, inputs: int) -> None:
    """Makes a LUT of so many inputs one of four, of which the others are low."""
    bits = 1 << inputs
    init = lut["parameters"]["INIT"].zfill(bits)[-bits:]
    lut["type"] = f"LUT{MOST_INPUTS}"
    lut["parameters"]["INIT"] = init * (1 << (MOST_INPUTS - inputs))
    for n in range(inputs, MOST_INPUTS):
        lut["connections"][f"I{n}"], lut["port_directions"][f"I{n}"] = ["0"], "input"
