"""Cells of a GW2A as a circuit: those of yosys's netlists and those of nextpnr's.

Sources: yosys's simulation models (``+/gowin/cells_sim.v``) for LUT1 to LUT4, MUX2_LUT5 to 8, DFF…,
ALU and RAM16SDP4. For the others, which yosys has no models of: Gowin UG285 (block RAM), UG287
(MULT18X18), UG289 (pads, ODDR) and UG286 (rPLL). For nextpnr's ALU, whose table it may write out
itself: apycula's ``chipdb.py``, by which gowin_pack makes tables of the modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from vdla.boards.board import BoardError
from vdla.boards.netlists.cells import Cell
from vdla.boards.netlists.circuit import (
    CORE,
    FACTOR_BITS,
    HIGH,
    LOW,
    SMALL_WORDS,
    Mode,
    Multiplier,
    Net,
    Port,
    Ram,
    Register,
    SmallRam,
    number_of,
)
from vdla.boards.netlists.reader import DRIVES, LATE, Reader

ADDRESS_BITS = 14
LOW_BITS = {8: 3, 9: 3, 16: 4, 18: 4, 32: 5, 36: 5}  # of an address, by the width of a word
MODES = {0: Mode.KEEP, 1: Mode.THROUGH, 2: Mode.BEFORE}
ROW_BITS = {8: 256, 9: 288}  # of an INIT_RAM, by the bits of a byte
PHASES = 16  # of a PLL's second output
ALU_TABLES = {  # by mode: bits of 4 inputs, of which the lowest four say what is carried on
    0: "0110000001101010",
    1: "1001000010011010",
    2: "0110000010011010",
    3: "1001000010011111",
    4: "1001000010011010",
    5: "1001000010011100",
    6: "1010000010100000",
    7: "0101000001011111",
    8: "1010111101011010",
    9: "0111100010001000",
}
CARRY_TABLES = {"C2L": 0, "ONE2C": 0b1111}  # nextpnr's ends of a chain: carry a 0 on, or a 1
SETS = {"R": ("RESET", False), "S": ("SET", True), "C": ("CLEAR", False), "P": ("PRESET", True)}


def lut(inputs: int) -> Callable[[Reader, Cell], None]:
    """LUT1 to LUT4; an input without a net is high."""

    def add(reader: Reader, cell: Cell) -> None:
        if not cell.pins.get("F"):
            return  # a place that a RAM16SDP4 takes
        nets = (reader.pin(cell, f"I{n}", HIGH) for n in range(inputs))
        reader.circuit.gate(cell.number("INIT"), *nets, output=reader.output(cell, "F"))

    return add


def mux(reader: Reader, cell: Cell) -> None:
    """MUX2_LUT5 to MUX2_LUT8."""
    reader.gate(cell, 0b11001010, ("I0", "I1", "S0"), "O")


def alu(reader: Reader, cell: Cell) -> None:
    """ALU: SUM = operand ⊕ CIN, COUT = CIN where operand, else what its table's lowest bits say."""
    circuit = reader.circuit
    mode = cell.text("ALU_MODE", "0")
    if "RAW_ALU_LUT" in cell.parameters:
        bits = cell.text("RAW_ALU_LUT")
        table = number_of((bits * (16 // len(bits)))[-16:] if len(bits) < 16 else bits[-16:])
    elif mode in CARRY_TABLES:
        table = CARRY_TABLES[mode]
    else:
        table = number_of(ALU_TABLES[number_of(mode)])
    inputs = [reader.pin(cell, f"I{n}", HIGH) for n in (0, 1)]
    operand = circuit.gate(table, *inputs, HIGH, reader.pin(cell, "I3", HIGH))
    generate = circuit.gate(table & 15, *inputs)
    total, onward = reader.output(cell, "SUM"), reader.output(cell, "COUT")
    circuit.carry(operand, generate, reader.pin(cell, "CIN"), total, onward)


def flip_flop(kind: str) -> Callable[[Reader, Cell], None]:
    """DFF, with enable (E), reset or set (R, S), or clear or preset (C, P), which need no clock."""
    pin, level = next((SETS[letter] for letter in kind if letter in SETS), ("", False))

    def add(reader: Reader, cell: Cell) -> None:
        reset = reader.pin(cell, pin) if pin else LOW
        if pin in ("CLEAR", "PRESET"):
            reader.asynchronous(cell, reset)
        enable = reader.pin(cell, "CE") if kind.endswith("E") else HIGH
        reader.circuit.registers.append(
            Register(reader.clock(cell, "CLK"), reader.output(cell, "Q"), reader.pin(cell, "D"),
                     enable, reset, level, level)
        )  # fmt: skip

    return add


def small_ram(reader: Reader, cell: Cell) -> None:
    """RAM16SDP4."""
    bits = [cell.number(f"INIT_{n}") for n in range(4)]
    words = tuple(sum((bits[n] >> row & 1) << n for n in range(4)) for row in range(SMALL_WORDS))
    enable = reader.circuit.both(reader.pin(cell, "WRE"), reader.pin(cell, "CE", HIGH))
    outputs, read, write, data = (reader.buses(cell, pin, 4) for pin in ("DO", "RAD", "WAD", "DI"))
    clock = reader.clock(cell, "CLK")
    reader.circuit.small_rams.append(SmallRam(clock, outputs, read, write, data, enable, words))


def block_ram(reader: Reader, cell: Cell) -> None:
    """DPB, DPX9B, SDPB and SDPX9B, which nextpnr calls DP and SDP: a port writes and both read, or
    one writes and the other reads."""
    widths = {cell.number(f"BIT_WIDTH_{n}") for n in (0, 1)}
    width = widths.pop()
    if widths or width not in LOW_BITS:
        raise BoardError(
            f"cell {cell.name}: expected a block RAM whose ports have the same width, of 8 bits or "
            f"more, found {cell.number('BIT_WIDTH_0')} and {cell.number('BIT_WIDTH_1')}"
        )
    double = "DIA" in cell.pins or "DIA0" in cell.pins
    ports = tuple(_port(reader, cell, port, width, double) for port in "AB")
    reader.circuit.rams.append(Ram(width, ports, _initial(cell, width)))


def _port(reader: Reader, cell: Cell, port: str, width: int, double: bool) -> Port:
    """A port; of one that only writes or reads the data have no letter."""
    circuit, letter = reader.circuit, port if double else ""
    address = reader.buses(cell, f"AD{port}", ADDRESS_BITS)
    select = reader.buses(cell, f"BLKSEL{port}", 3)
    wanted = cell.number(f"BLK_SEL_{'AB'.index(port)}")
    selected = [net if wanted >> n & 1 else circuit.inverted(net) for n, net in enumerate(select)]
    enable = circuit.both(reader.pin(cell, f"CE{port}"), *selected)
    if reader.constant(reader.pin(cell, f"RESET{port}")) != LOW:
        raise BoardError(f"cell {cell.name}: expected a block RAM without resets, found one")
    parts = width // (9 if width % 9 == 0 else 8)
    write = reader.pin(cell, f"WRE{port}") if double else (HIGH if port == "A" else LOW)
    writes: tuple[Net, ...] = (write,)
    if parts > 1:
        writes = tuple(circuit.both(write, net) for net in address[:parts])
    writing = write != LOW
    reading = double or port == "B"
    mode = cell.number(f"WRITE_MODE{'AB'.index(port)}") if double else 2
    clock = reader.clock(cell, f"CLK{port}")
    outputs = reader.buses(cell, f"DO{letter}", width)[:width] if reading else ()
    return Port(
        clock,
        address[LOW_BITS[width] :],
        enable,
        writes if writing else (),
        reader.buses(cell, f"DI{letter}", width)[:width] if writing else (),
        _registered(reader, cell, port, double, clock, outputs),
        MODES[mode],
    )


def _registered(
    reader: Reader, cell: Cell, port: str, double: bool, clock: str, outputs: tuple[Net, ...]
) -> tuple[Net, ...]:
    """The nets that a port reads into, with the register behind them where there is one."""
    mode = cell.number(f"READ_MODE{'AB'.index(port)}" if double else "READ_MODE")
    if not outputs or mode == 0:
        return outputs
    enable = reader.pin(cell, f"OCE{port}" if double else "OCE")
    return reader.circuit.registers_before(clock, outputs, enable=enable)


def _initial(cell: Cell, width: int) -> dict[int, int]:
    """Words that aren't 0 at power-up: rows of INIT_RAM, one behind the other."""
    row_bits = ROW_BITS[9 if width % 9 == 0 else 8]
    whole = 0
    for name, value in cell.parameters.items():
        if name.startswith("INIT_RAM_") and "1" in value:
            whole |= number_of(value.strip()) << row_bits * int(name[-2:], 16)
    rows = range((row_bits << 6) // width if whole else 0)
    words = {row: whole >> width * row & (1 << width) - 1 for row in rows}
    return {row: word for row, word in words.items() if word}


def multiplier(reader: Reader, cell: Cell) -> None:
    """MULT18X18, with the registers of its factors and of its product."""
    for pin in ("ASEL", "BSEL"):
        if reader.constant(reader.pin(cell, pin)) != LOW:
            raise BoardError(f"cell {cell.name}: expected {pin} low, found a net")
    for name in ("PIPE_REG", "ASIGN_REG", "BSIGN_REG", "SOA_REG"):
        if cell.number(name):
            raise BoardError(f"cell {cell.name}: expected {name} 0, found 1")
    a, b = (_factor(reader, cell, port) for port in "AB")
    product = reader.buses(cell, "DOUT", 2 * FACTOR_BITS)
    enable, reset = reader.pin(cell, "CE"), reader.pin(cell, "RESET")
    if cell.number("OUT_REG"):
        product = reader.circuit.registers_before(
            reader.clock(cell, "CLK"), product, enable=enable, reset=reset
        )
    signs = (reader.pin(cell, "ASIGN"), reader.pin(cell, "BSIGN"))
    reader.circuit.multipliers.append(Multiplier(a, b, signs, product))


def _factor(reader: Reader, cell: Cell, port: str) -> tuple[Net, ...]:
    nets = reader.buses(cell, port, FACTOR_BITS)
    if not cell.number(f"{port}REG"):
        return nets
    clock, enable = reader.clock(cell, "CLK"), reader.pin(cell, "CE")
    reset = reader.pin(cell, "RESET")
    return tuple(reader.circuit.registered(clock, net, enable=enable, reset=reset) for net in nets)


def pad(reader: Reader, cell: Cell) -> None:
    """IBUF, OBUF, TBUF and IOBUF: a pad's levels become inputs and outputs of the circuit. nextpnr
    may write a constant as a parameter, and leads the levels of an ODDR's pad past its pins."""
    name = reader.pad_name(cell, {"IBUF": "I", "IOBUF": "IO"}.get(cell.kind, "O"))
    if cell.kind in ("IBUF", "IOBUF"):
        reader.circuit.inputs[name] = reader.output(cell, "O")
    if cell.kind != "IBUF":
        level = (
            reader.circuit.inputs[LATE] if cell.number("IOLOGIC_IOB") else _level(reader, cell, "I")
        )
        open_pad = LOW if cell.number("IOLOGIC_IOB") else _level(reader, cell, "OEN")
        reader.circuit.outputs[name] = level
        reader.circuit.outputs[f"{name}{DRIVES}"] = reader.circuit.inverted(open_pad)


def _level(reader: Reader, cell: Cell, pin: str) -> Net:
    constant = cell.text(f"NET_{pin}", "NET")
    return {"GND": LOW, "VCC": HIGH}.get(constant, reader.pin(cell, pin))


def double_rate(reader: Reader, cell: Cell) -> None:
    """ODDR: a clock itself at a pin, high in its first half, is all that is known here."""
    if reader.constant(reader.pin(cell, "TX")) != LOW:
        raise BoardError(f"cell {cell.name}: expected TX low, found a net")
    reader.clock_out(cell, ("D0", "D1"), "CLK", "Q0")


def pll(reader: Reader, cell: Cell) -> None:
    """rPLL: its outputs are inputs of the circuit; their times are checked."""
    made = Fraction(cell.text("FCLKIN")) * (cell.number("FBDIV_SEL") + 1)
    made /= cell.number("IDIV_SEL") + 1
    reader.pll_output(cell, "CLKOUT", CORE, made, Fraction(0))
    late = Fraction(cell.number("PSDA_SEL"), PHASES) / made
    reader.pll_output(cell, "CLKOUTP", LATE, made, late)
    reader.lock(cell, "LOCK", "CLKIN")


def buffer(reader: Reader, cell: Cell) -> None:
    """BUFG: a net on its way."""
    reader.alias(cell, "I", "O")


def constant(pin: str, level: Net) -> Callable[[Reader, Cell], None]:
    """VCC and GND."""

    def add(reader: Reader, cell: Cell) -> None:
        if cell.pins.get(pin):
            reader.circuit.gate(level, output=reader.output(cell, pin))

    return add


def nothing(reader: Reader, cell: Cell) -> None:
    """Reads a place that is taken, or a net that resets at power-up: nothing that runs."""


FLIP_FLOPS = ("", "E", "R", "RE", "S", "SE", "C", "CE", "P", "PE")
RAMS = ("DPB", "DPX9B", "SDPB", "SDPX9B", "DP", "SDP")
KINDS: Mapping[str, Callable[[Reader, Cell], None]] = {  # in the order in which they are read
    "BUFG": buffer,
    "rPLL": pll,
    "VCC": constant("V", HIGH),
    "GND": constant("G", LOW),
    "GOWIN_VCC": constant("V", HIGH),
    "GOWIN_GND": constant("G", LOW),
    **{f"LUT{n}": lut(n) for n in range(1, 5)},
    **{f"MUX2_LUT{n}": mux for n in range(5, 9)},
    "ALU": alu,
    **{f"DFF{kind}": flip_flop(kind) for kind in FLIP_FLOPS},
    "RAM16SDP4": small_ram,
    **dict.fromkeys(RAMS, block_ram),
    "MULT18X18": multiplier,
    "ODDR": double_rate,
    **dict.fromkeys(("IBUF", "OBUF", "TBUF", "IOBUF"), pad),
    **dict.fromkeys(("BLOCKER_LUT", "BLOCKER_FF", "DUMMY_CELL", "GSR"), nothing),
}
