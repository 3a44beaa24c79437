"""Yosys's own gates as a circuit: what stands around a chip, made from Amaranth.

``$lut`` and ``$_DFF_P_`` are all that there is, with the words of an SDRAM (``STORAGE``).
"""

from __future__ import annotations

from fractions import Fraction

from vdla.boards.netlists.cells import Cell, Module
from vdla.boards.netlists.circuit import FAST, HIGH, LOW, Circuit, Port, Ram
from vdla.boards.netlists.reader import Reader, Times
from vdla.boards.virtual.chip import STORAGE

NO_TIMES = Times({}, Fraction(0))
SCRIPT = """\
read_rtlil around.il
hierarchy -top around
proc
flatten
opt
wreduce
alumacc
opt
techmap
opt
dfflegalize -cell $_DFF_P_ 0
abc -lut 4
opt_clean
write_json around.json
"""


def read(module: Module) -> Circuit:
    """The circuit of a module; its ports' bits are inputs and outputs by ``NAME[i]``, all with
    numbers. Its one clock is FAST.

    Raises:
        BoardError: there are other cells.
    """
    reader = Reader(module, NO_TIMES)
    circuit = reader.read({"$lut": _lut, "$_DFF_P_": _flip_flop, STORAGE: _words})
    driven = {LOW, HIGH} | {gate.output for gate in circuit.gates}
    driven |= {register.output for register in circuit.registers}
    driven |= {net for ram in circuit.rams for port in ram.ports for net in port.outputs}
    for name, bits in module.ports.items():
        for number, bit in enumerate(bits):
            net = reader.of(bit)
            nets = circuit.outputs if net in driven else circuit.inputs
            nets[f"{name}[{number}]"] = net
    return circuit


def _lut(reader: Reader, cell: Cell) -> None:
    reader.circuit.gate(cell.number("LUT"), *reader.bus(cell, "A"), output=reader.pin(cell, "Y"))


def _flip_flop(reader: Reader, cell: Cell) -> None:
    reader.circuit.registered(FAST, reader.pin(cell, "D"), output=reader.pin(cell, "Q"))


def _words(reader: Reader, cell: Cell) -> None:
    data, outputs = reader.bus(cell, "in"), reader.bus(cell, "out")
    port = Port(FAST, reader.bus(cell, "at"), HIGH, reader.bus(cell, "enable"), data, outputs)
    reader.circuit.rams.append(Ram(len(data), (port,), outside=True))
