"""Cells of an ECP5 as a circuit: those of yosys's netlists and those of nextpnr's.

Sources: yosys's simulation models (``+/ecp5/cells_sim.v``) for LUT4, CCU2C, PFUMX, L6MUX21,
TRELLIS_FF, TRELLIS_DPR16X4, TRELLIS_COMB and TRELLIS_IO, but for the carry out of a TRELLIS_COMB,
which that model leaves open. For the others, which yosys has no models of: Lattice TN1264 (DP16KD;
``+/lattice/brams_map_16kd.v`` says which of its pins are which bits of 36), TN1267 (MULT18X18D),
TN1265 (ODDRX1F, and registers at pads) and TN1263 (EHXPLLL, DCCA).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from vdla.boards.board import BoardError
from vdla.boards.netlists.cells import Cell
from vdla.boards.netlists.circuit import (
    CORE,
    FACTOR_BITS,
    FAST,
    HIGH,
    LOW,
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

RAM_BITS, PART = 18, 9  # of a port of a block RAM; bits that one write enable is for
ADDRESS_BITS = 14
LOW_BITS = {9: 3, 18: 4, 36: 5}  # of a block RAM's address, by its width: no part of a word's
MODES = {
    "NORMAL": Mode.KEEP,
    "WRITETHROUGH": Mode.THROUGH,
    "READBEFOREWRITE": Mode.BEFORE,
}
INITIAL_WORDS, INITIAL_STEP = 16, 20  # of an INITVAL: words of 18 bits, each in 20
CLOCKS_OF_PLL = {"CLKOP": CORE, "CLKOS": LATE, "CLKOS2": FAST}  # as the boards' designs use them
OSCILLATOR = Fraction(25)  # MHz, of every board with an ECP5


def lut4(reader: Reader, cell: Cell) -> None:
    """LUT4."""
    reader.gate(cell, cell.number("INIT"), ("A", "B", "C", "D"), "Z")


def mux(one: str, zero: str, select: str) -> Callable[[Reader, Cell], None]:
    """PFUMX and L6MUX21: pin ``one`` where ``select`` is high."""

    def add(reader: Reader, cell: Cell) -> None:
        reader.gate(cell, 0b11001010, (zero, one, select), "Z")

    return add


def ccu2c(reader: Reader, cell: Cell) -> None:
    """CCU2C: two bits of an adder, whose operands are tables of four inputs."""
    carry = reader.pin(cell, "CIN")
    for n in range(2):
        onward = reader.output(cell, "COUT") if n else reader.circuit.net()
        inputs = tuple(reader.pin(cell, f"{pin}{n}", HIGH) for pin in "ABCD")
        total = reader.output(cell, f"S{n}")
        _carry(reader, cell.number(f"INIT{n}"), inputs, cell.text(f"INJECT1_{n}", "YES"),
               carry, total, onward)  # fmt: skip
        carry = onward


def _carry(
    reader: Reader,
    table: int,
    inputs: tuple[Net, ...],
    inject: str,
    carry: Net,
    total: Net,
    onward: Net,
) -> None:
    """Adds a bit of an adder; ``inject`` YES leaves the carry out of its sum."""
    circuit = reader.circuit
    operand = circuit.gate(table, *inputs)
    injected = inject == "YES"
    generate = LOW if injected else circuit.gate(table & 15, *inputs[:2])
    circuit.gate(0b0110, operand, LOW if injected else carry, output=total)
    circuit.chosen(operand, generate, carry, output=onward)


def comb(reader: Reader, cell: Cell) -> None:
    """TRELLIS_COMB: nextpnr's half of a slice, as a table, a bit of an adder, or of a small RAM."""
    mode, table = cell.text("MODE", "LOGIC"), cell.number("INITVAL")
    if mode == "RAMW_BLOCK":
        return  # its place is taken by a TRELLIS_RAMW
    inputs = tuple(reader.pin(cell, pin, HIGH) for pin in "ABCD")
    out = reader.output(cell, "F")
    if mode == "LOGIC":
        reader.circuit.gate(table, *inputs, output=out)
    elif mode == "CCU2":
        _carry(reader, table, inputs, cell.text("CCU2_INJECT1", "NO"), reader.pin(cell, "FCI"),
               out, reader.output(cell, "FCO"))  # fmt: skip
    elif mode == "DPRAM":
        a, b, c, d = inputs
        write = reader.pins(cell, "WAD", 4)
        where = (reader.clock(cell, "WCK"), (d, b, c, a), write, _muxed(reader, cell, "WRE"))
        reader.small_ram_bit(where, out, reader.pin(cell, "WD"), table)
    else:
        raise BoardError(f"cell {cell.name}: expected a TRELLIS_COMB of LOGIC, CCU2 or DPRAM, "
                         f"found {mode}")  # fmt: skip
    if cell.pins.get("OFX"):
        low, high = (
            (reader.pin(cell, "FXA"), reader.pin(cell, "FXB"))
            if cell.pins.get("FXA") or cell.pins.get("FXB")
            else (out, reader.pin(cell, "F1"))
        )
        reader.circuit.chosen(reader.pin(cell, "M"), low, high, reader.output(cell, "OFX"))


def flip_flop(reader: Reader, cell: Cell) -> None:
    """TRELLIS_FF. A reset that needs no clock takes one here, too (``Reader.asynchronous``)."""
    enable = _muxed(reader, cell, "CE", "1")
    reset = _muxed(reader, cell, "LSR", open_level=LOW)
    if cell.text("SRMODE") == "ASYNC":
        reader.asynchronous(cell, reset)
    level = cell.text("REGSET", "RESET") == "SET"
    data = "M" if cell.text("SD", "1") == "0" else "DI"
    reader.circuit.registers.append(
        Register(reader.clock(cell, "CLK", cell.text("CLKMUX", "CLK") == "INV"),
                 reader.output(cell, "Q"), reader.pin(cell, data), enable, reset, level, level)
    )  # fmt: skip


def _muxed(reader: Reader, cell: Cell, pin: str, default: str = "", open_level: Net = HIGH) -> Net:
    """The net at a pin behind its multiplexer: a constant, the pin, or its complement. A pin
    without a net is high, as the fabric's are, or as ``open_level`` says."""
    choice = cell.text(f"{pin}MUX", default)
    if choice in ("0", "1"):
        return int(choice)
    net = reader.pin(cell, pin, open_level)
    return reader.circuit.inverted(net) if choice == "INV" else net


def _all_muxed(reader: Reader, cell: Cell, name: str, count: int) -> tuple[Net, ...]:
    """The nets at numbered pins behind their multiplexers."""
    return tuple(_muxed(reader, cell, f"{name}{n}") for n in range(count))


def small_ram_write(reader: Reader, cell: Cell) -> None:
    """TRELLIS_RAMW: the nets of a small RAM's write port on their way to its four bits."""
    ways = {"D0": "WADO0", "B0": "WADO1", "C0": "WADO2", "A0": "WADO3",
            "C1": "WDO0", "A1": "WDO1", "D1": "WDO2", "B1": "WDO3"}  # fmt: skip
    for source, target in ways.items():
        reader.alias(cell, source, target)


def small_ram(reader: Reader, cell: Cell) -> None:
    """TRELLIS_DPR16X4."""
    words = cell.number("INITVAL")
    reader.circuit.small_rams.append(
        SmallRam(
            reader.clock(cell, "WCK", cell.text("WCKMUX", "WCK") == "INV"),
            reader.outputs(cell, "DO", 4),
            reader.bus(cell, "RAD"),
            reader.bus(cell, "WAD"),
            reader.bus(cell, "DI"),
            _muxed(reader, cell, "WRE"),
            tuple(words >> 4 * row & 15 for row in range(16)),
        )
    )


def block_ram(reader: Reader, cell: Cell) -> None:
    """DP16KD, of words of 9, 18 or 36 bits, the same at both ports."""
    widths = {cell.number(f"DATA_WIDTH_{port}", RAM_BITS) for port in "AB"}
    width = widths.pop()
    if widths or width not in LOW_BITS:
        raise BoardError(
            f"cell {cell.name}: expected a block RAM whose ports have the same 9, 18 or 36 bits, "
            f"found {cell.text('DATA_WIDTH_A')} and {cell.text('DATA_WIDTH_B')}"
        )
    whole = width == 2 * RAM_BITS
    ports = tuple(_port(reader, cell, port, width, whole) for port in "AB")
    reader.circuit.rams.append(Ram(width, ports, _initial(cell, width)))


def _port(reader: Reader, cell: Cell, port: str, width: int, whole: bool) -> Port:
    """A port; of a RAM of 36 bits A writes and B reads, with the data pins of both."""
    circuit, clock = reader.circuit, reader.clock(cell, f"CLK{port}", _inverted(cell, port))
    address = _all_muxed(reader, cell, f"AD{port}", ADDRESS_BITS)
    select = _all_muxed(reader, cell, f"CS{port}", 3)
    wanted = cell.text(f"CSDECODE_{port}", "0b000")[2:]
    selected = [net if bit == "1" else circuit.inverted(net)
                for net, bit in zip(select, reversed(wanted), strict=True)]  # fmt: skip
    enable = circuit.both(_muxed(reader, cell, f"CE{port}"), *selected)
    write = _muxed(reader, cell, f"WE{port}")
    parts = width // PART
    writes = (
        (write,) if parts == 1 else tuple(circuit.both(write, each) for each in address[:parts])
    )
    data = "AB" if whole else port
    if whole and port == "B" and reader.constant(write) != LOW:
        raise BoardError(
            f"cell {cell.name}: expected a port of 36 bits that reads, found one that writes"
        )
    reads = not whole or port == "B"
    writing = not whole or port == "A"
    return Port(
        clock,
        address[LOW_BITS[width] :],
        enable,
        writes if writing else (),
        tuple(
            net
            for each in data
            for net in _all_muxed(reader, cell, f"DI{each}", min(width, RAM_BITS))
        )
        if writing
        else (),
        _read(reader, cell, port, data, width, clock) if reads else (),
        MODES[cell.text(f"WRITEMODE_{port}", "NORMAL")],
    )


def _read(
    reader: Reader, cell: Cell, port: str, data: str, width: int, clock: str
) -> tuple[Net, ...]:
    """The nets that a port reads into, with the register behind them where there is one."""
    if reader.constant(_muxed(reader, cell, f"RST{port}")) != LOW:
        raise BoardError(f"cell {cell.name}: expected a block RAM without resets, found one")
    outputs = tuple(
        net for each in data for net in reader.outputs(cell, f"DO{each}", min(width, RAM_BITS))
    )
    if cell.text(f"REGMODE_{port}", "NOREG") == "NOREG":
        return outputs
    enable = _muxed(reader, cell, f"OCE{port}")
    return reader.circuit.registers_before(clock, outputs, enable=enable)


def _inverted(cell: Cell, port: str) -> bool:
    return cell.text(f"CLK{port}MUX", f"CLK{port}") == "INV"


def _initial(cell: Cell, width: int) -> dict[int, int]:
    """Words that aren't 0 at power-up."""
    halves: dict[int, int] = {}
    for name, value in cell.parameters.items():
        if name.startswith("INITVAL_") and "1" in value:
            first = INITIAL_WORDS * int(name[-2:], 16)
            bits = number_of(value.strip())
            for n in range(INITIAL_WORDS):
                if word := bits >> INITIAL_STEP * n & (1 << RAM_BITS) - 1:
                    halves[first + n] = word
    words: dict[int, int] = {}
    for at, half in halves.items():
        if width < RAM_BITS:
            words |= {2 * at: half & (1 << PART) - 1, 2 * at + 1: half >> PART}
        else:
            row, place = divmod(at, width // RAM_BITS)
            words[row] = words.get(row, 0) | half << RAM_BITS * place
    return {row: word for row, word in words.items() if word}


def multiplier(reader: Reader, cell: Cell) -> None:
    """MULT18X18D, with the registers of its inputs and of its product."""
    a, b = (_factor(reader, cell, port) for port in "AB")
    product = reader.outputs(cell, "P", 2 * FACTOR_BITS)
    for name in ("REG_PIPELINE_CLK", "REG_INPUTC_CLK"):
        if cell.text(name, "NONE") != "NONE":
            raise BoardError(f"cell {cell.name}: expected {name} NONE, found {cell.text(name)}")
    for pin in ("SOURCEA", "SOURCEB"):
        if reader.constant(reader.pin(cell, pin)) != LOW:
            raise BoardError(f"cell {cell.name}: expected {pin} low, found a net")
    if (clock := cell.text("REG_OUTPUT_CLK", "NONE")) != "NONE":
        enable = reader.pin(cell, cell.text("REG_OUTPUT_CE", "CE0"))
        reset = reader.pin(cell, cell.text("REG_OUTPUT_RST", "RST0"))
        product = reader.circuit.registers_before(
            reader.clock(cell, clock), product, enable=enable, reset=reset
        )
    signs = (reader.pin(cell, "SIGNEDA"), reader.pin(cell, "SIGNEDB"))
    reader.circuit.multipliers.append(Multiplier(a, b, signs, product))


def _has_input(cell: Cell, port: str) -> bool:
    return cell.text(f"REG_INPUT{port}_CLK", "NONE") != "NONE"


def _factor(reader: Reader, cell: Cell, port: str) -> tuple[Net, ...]:
    """A factor's nets, behind their registers where there are some."""
    nets = tuple(_muxed(reader, cell, f"{port}{n}", open_level=LOW) for n in range(FACTOR_BITS))
    if not _has_input(cell, port):
        return nets
    names = {name: cell.text(f"REG_INPUT{port}_{name}") for name in ("CLK", "CE", "RST")}
    enable, reset = reader.pin(cell, names["CE"]), reader.pin(cell, names["RST"])
    clock = reader.clock(cell, names["CLK"])
    return tuple(reader.circuit.registered(clock, net, enable=enable, reset=reset) for net in nets)


def pad(reader: Reader, cell: Cell) -> None:
    """TRELLIS_IO: its pad's levels become inputs and outputs of the circuit."""
    direction = cell.text("DIR", "INPUT")
    registered = "IOLDO" in (cell.text("DATAMUX_OREG"), cell.text("DATAMUX_ODDR"))
    level = reader.pin(cell, "IOLDO" if registered else "I")
    open_pad = reader.pin(cell, "IOLTO" if cell.text("TRIMUX_TSREG") == "IOLTO" else "T")
    name = reader.pad_name(cell, "B")
    if direction != "OUTPUT":
        reader.circuit.inputs[name] = reader.output(cell, "O")
    if direction != "INPUT":
        reader.circuit.outputs[name] = level
        reader.circuit.outputs[f"{name}{DRIVES}"] = reader.circuit.inverted(open_pad)


def pad_registers(reader: Reader, cell: Cell) -> None:
    """IOLOGIC and SIOLOGIC: the registers of a pad's level, of its direction, and of what comes in;
    or its clock."""
    clock, enable = reader.clock(cell, "CLK"), _muxed(reader, cell, "CE")
    reset = reader.constant(_muxed(reader, cell, "LSR", open_level=LOW))
    if reset != LOW:
        raise BoardError(f"cell {cell.name}: expected registers of a pad without a reset, "
                         f"found one on net {reset}")  # fmt: skip
    stages = [("TSDATA0", "IOLTO", "TSREG.OUTREGMODE"), ("TXDATA0", "IOLDO", "OUTREG.OUTREGMODE"),
              ("PADDI", "INFF", "FF.INREGMODE")]  # fmt: skip
    if cell.text("MODE") == "IDDRX1_ODDRX1":
        double_rate(reader, cell, ("TXDATA0", "TXDATA1", "CLK", "IOLDO"))
        del stages[1]
    elif cell.text("MODE") != "IREG_OREG":
        raise BoardError(f"cell {cell.name}: expected IREG_OREG or IDDRX1_ODDRX1, "
                         f"found {cell.text('MODE')}")  # fmt: skip
    for data, output, mode in stages:
        if cell.pins.get(output):
            net, out = reader.pin(cell, data), reader.output(cell, output)
            if cell.text(mode) == "FF":
                reader.circuit.registered(clock, net, enable=enable, output=out)
            else:
                reader.circuit.gate(0b10, net, output=out)


def double_rate(
    reader: Reader, cell: Cell, pins: tuple[str, str, str, str] = ("D0", "D1", "SCLK", "Q")
) -> None:
    """ODDRX1F: a clock itself at a pin, high in its first half, is all that is known here."""
    first, second, clock, output = pins
    reader.clock_out(cell, (first, second), clock, output)


def pll(reader: Reader, cell: Cell) -> None:
    """EHXPLLL: its outputs are inputs of the circuit; their times are checked."""
    vco = (
        OSCILLATOR * cell.number("CLKFB_DIV", 1) * cell.number("CLKOS3_DIV", 8)
        / cell.number("CLKI_DIV", 1)
    )  # fmt: skip
    for output, clock in CLOCKS_OF_PLL.items():
        if not cell.pins.get(output):
            continue
        divider = cell.number(f"{output}_DIV", 8)
        whole = cell.number(f"{output}_CPHASE") - (divider - 1)
        late = whole + Fraction(cell.number(f"{output}_FPHASE"), 8)
        reader.pll_output(cell, output, clock, vco / divider, late / vco)
    if cell.text("FEEDBK_PATH") != "INT_OS3":
        raise BoardError(f"cell {cell.name}: expected feedback by INT_OS3, "
                         f"found {cell.text('FEEDBK_PATH')}")  # fmt: skip
    reader.lock(cell, "LOCK", "CLKI")


def buffer(reader: Reader, cell: Cell) -> None:
    """DCCA: a clock on its way."""
    reader.alias(cell, "CLKI", "CLKO")


KINDS: Mapping[str, Callable[[Reader, Cell], None]] = {  # in the order in which they are read
    "DCCA": buffer,
    "TRELLIS_RAMW": small_ram_write,
    "EHXPLLL": pll,
    "LUT4": lut4,
    "PFUMX": mux("ALUT", "BLUT", "C0"),
    "L6MUX21": mux("D1", "D0", "SD"),
    "CCU2C": ccu2c,
    "TRELLIS_COMB": comb,
    "TRELLIS_FF": flip_flop,
    "TRELLIS_DPR16X4": small_ram,
    "DP16KD": block_ram,
    "MULT18X18D": multiplier,
    "IOLOGIC": pad_registers,
    "SIOLOGIC": pad_registers,
    "ODDRX1F": double_rate,
    "TRELLIS_IO": pad,
}
