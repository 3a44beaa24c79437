"""Small designs for tests of netlists: as a family's cells, and as yosys's own gates."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from types import ModuleType

from vdla.boards.flows.tools import call, find_yosys
from vdla.boards.netlists import plain
from vdla.boards.netlists.cells import Cell, read_module
from vdla.boards.netlists.circuit import CORE, Circuit, Net, simplified
from vdla.boards.netlists.copies import COPIES, Copies
from vdla.boards.netlists.reader import Reader, Times

CLOCK = "clk"  # the input that clocks registers
SOURCE = "CLOCK_SOURCE"  # a cell that stands for a PLL
TO_GATES = """\
proc
flatten
opt_clean
memory_map
opt
techmap
opt
dfflegalize -cell $_DFF_P_ 0
abc -lut 4
opt_clean
"""


def reference(folder: Path, sources: Mapping[str, str], libraries: str = "") -> Circuit:
    """The circuit of a design ``top`` as yosys's own gates; ``libraries`` are read before it."""
    (folder / "top.v").write_text(sources["top.v"])
    script = f"{libraries}read_verilog top.v\nhierarchy -top top\n{TO_GATES}write_json gates.json\n"
    (folder / "gates.ys").write_text(script)
    call([find_yosys(), "-q", "gates.ys"], folder, "gates.log")
    return plain.read(read_module(folder / "gates.json"))


def family_circuit(family: ModuleType, netlist: Path) -> Circuit:
    """The circuit of a netlist of a family's cells, whose only clock is its input CLOCK. Ports'
    bits are inputs and outputs by ``NAME[i]``."""
    module = read_module(netlist)
    reader = Reader(module, Times({CORE: Fraction(1)}, Fraction(0)))
    clock = reader.of(module.ports[CLOCK][0])
    source = Cell("clock", SOURCE, {}, {"C": module.ports[CLOCK]})
    module.cells["clock"] = source  # type: ignore[index]

    def make(reader: Reader, cell: Cell) -> None:
        reader.pll_output(cell, "C", CORE, Fraction(1), Fraction(0))

    kinds: dict[str, Callable[[Reader, Cell], None]] = {SOURCE: make, **family.KINDS}
    circuit = reader.read(kinds)
    circuit.inputs.pop(CORE)
    driven = _driven(circuit)
    for name, bits in module.ports.items():
        for number, bit in enumerate(bits):
            net = reader.of(bit)
            if net != clock:
                nets = circuit.outputs if net in driven or net < 2 else circuit.inputs
                nets[f"{name}[{number}]"] = net
    return circuit


def _driven(circuit: Circuit) -> set[Net]:
    nets = {gate.output for gate in circuit.gates} | {r.output for r in circuit.registers}
    nets |= {net for ram in circuit.small_rams for net in ram.outputs}
    nets |= {net for ram in circuit.rams for port in ram.ports for net in port.outputs}
    return nets | {net for m in circuit.multipliers for net in m.product}


def copies_of(circuit: Circuit) -> tuple[Circuit, Copies]:
    """Copies of a circuit that has no serial line."""
    circuit.inputs["unused"] = circuit.net()
    whole = simplified(circuit)
    return whole, Copies(whole, whole.inputs["unused"], 1, 4, 1)


def first_difference(ours: Circuit, theirs: Circuit, clocks: int, seed: int = 0) -> str:
    """The first output that differs under random inputs, and in which clock; nothing if none."""
    rng = random.Random(seed)
    (a, left), (b, right) = copies_of(ours), copies_of(theirs)
    names = [name for name in b.inputs if name != "unused" and not name.startswith(f"{CLOCK}[")]
    assert set(names) >= {n for n in a.inputs if n not in ("unused", f"{CLOCK}[0]")}
    for clock in range(clocks):
        for name in names:
            word = rng.getrandbits(COPIES)
            right.set(b.inputs[name], word)
            if name in a.inputs:
                left.set(a.inputs[name], word)
        for copies in (left, right):
            copies.evaluate()
        for name in b.outputs:
            if left.get(a.outputs[name]) != right.get(b.outputs[name]):
                return f"{name} in clock {clock}"
        for copies in (left, right):
            copies.run(1)
    return ""
