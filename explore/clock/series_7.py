"""Delays of 7-series cells at speed grade -1, in ns.

Flip-flops and LUTs are AMD's (DS187 and DS181: T_CKO 0.456, T_ILO 0.124 for -1). Carry chains, LUT
RAMs, block RAMs and DSPs are those of yosys's models (techlibs/xilinx/cells_sim.v), most of which
are Project X-Ray's. Wires are an estimate: no tool that is at hand routes this family.
"""

from __future__ import annotations

from collections.abc import Mapping

from vdla.explore.clock.cells import (
    BLOCK,
    FLIP_FLOP,
    LOGIC,
    Cells,
    Kind,
    Parameters,
    Wires,
)

CLOCK_TO_Q, LUT = 0.456, 0.124
# No routed design has confirmed these: a wire to one sink of 0.45 ns, a fourth of it for each
# doubling of sinks, half of it where a column of blocks has to be reached. With them wires are four
# fifths of the longest path of `paper`. A file data/routed-xc7.toml scales them.
WIRES = Wires(first=0.45, doubling=0.12, block=0.25)
CARRY: Mapping[str, Mapping[str, float]] = {  # worst of a slice's four bits
    "O": {"S": 0.582, "DI": 0.596, "CI": 0.334, "CYINIT": 0.642},
    "CO": {"S": 0.528, "DI": 0.526, "CI": 0.114, "CYINIT": 0.580},
}
REGISTER = Kind(
    FLIP_FLOP,
    launch={"Q": CLOCK_TO_Q},
    setup={"D": 0.046, "CE": 0.109, "R": 0.404, "S": 0.404},
    clocks=("C",),
    packed=("D",),
)
LUT_KIND = Kind(LOGIC, arcs={"O": {"I": LUT}})
WRITE = {"DI": 0.461, "D": 0.461, "WE": 0.654, "ADDRD": 0.245, "A": 0.245}
QUADRUPLE = Kind(  # RAM32M, RAM64M: a port of its own for each of four LUTs
    LOGIC,
    arcs={f"DO{port}": {f"ADDR{port}": LUT} for port in "ABCD"},
    launch={f"DO{port}": 1.153 for port in "ABCD"},
    setup={f"DI{port}": 0.461 for port in "ABCD"} | WRITE,
    clocks=("WCLK",),
)
DUAL = Kind(  # RAM64X1D and its like
    LOGIC,
    arcs={"DPO": {"DPRA": 2 * LUT}, "SPO": {"A": 2 * LUT}},
    launch={"DPO": 1.153, "SPO": 1.153},
    setup=WRITE,
    clocks=("WCLK",),
)
BLOCK_RAM = Kind(
    BLOCK,
    launch=dict.fromkeys(("DOADO", "DOBDO", "DOPADOP", "DOPBDOP"), 2.454),
    setup=dict.fromkeys(("ADDRARDADDR", "ADDRBWRADDR"), 0.566)
    | dict.fromkeys(("DIADI", "DIBDI", "DIPADIP", "DIPBDIP"), 0.737)
    | dict.fromkeys(("WEA", "WEBWE"), 0.532)
    | dict.fromkeys(("ENARDEN", "ENBWREN"), 0.443),
    clocks=("CLKARDCLK", "CLKBWRCLK"),
)
REGISTERED = 0.882  # from the clock to a block RAM's output behind its own register
AT_INPUT = {"A": 0.254, "B": 0.324, "C": 0.168, "D": 0.248}  # setup of a DSP's input registers
AT_PRODUCT = {"A": 1.416, "B": 1.285, "D": 2.310}  # without these, before the multiplier's
AT_SUM = {"A": 2.739, "B": 2.608, "C": 1.244, "D": 3.635, "PCIN": 1.025}  # before the sum's alone
LAUNCH = {"PREG": 0.329, "MREG": 1.671, "": 2.952}  # to P, by the last register that there is
INPUT_REGISTERS = {"A": ("AREG", "ADREG"), "B": ("BREG",), "C": ("CREG",), "D": ("DREG", "ADREG")}


def _has(parameters: Parameters, name: str) -> bool:
    """Whether a cell has a register; yosys writes a number as bits."""
    return str(parameters.get(name, "1")).strip("'\" ").endswith(("1", "2"))


def _block_ram(parameters: Parameters) -> Kind:
    """A block RAM, with its output registers where it has them."""
    registers = ("DOA_REG", "DOB_REG")
    if not any(name in parameters and _has(parameters, name) for name in registers):
        return BLOCK_RAM
    launch = dict.fromkeys(BLOCK_RAM.launch, REGISTERED)
    return Kind(BLOCK, launch=launch, setup=BLOCK_RAM.setup, clocks=BLOCK_RAM.clocks)


def _dsp(parameters: Parameters) -> Kind:
    """A DSP48E1 with the registers that its parameters say."""
    behind = AT_PRODUCT if _has(parameters, "MREG") else AT_SUM
    setup = {"PCIN": AT_SUM["PCIN"], "CARRYIN": AT_SUM["C"]}
    for pin, registers in INPUT_REGISTERS.items():
        inside = any(_has(parameters, name) for name in registers)
        setup[pin] = AT_INPUT[pin] if inside else behind.get(pin, AT_SUM[pin])
    last = next((name for name in LAUNCH if name and _has(parameters, name)), "")
    done = LAUNCH[last]
    return Kind(BLOCK, launch={"P": done, "PCOUT": done + 0.15}, setup=setup, clocks=("CLK",),
                chain=("PCIN", "PCOUT"))  # fmt: skip


SERIES_7 = Cells(
    kinds={
        **dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), REGISTER),
        "LUT": LUT_KIND,
        "INV": LUT_KIND,
        **dict.fromkeys(("RAM32M", "RAM64M"), QUADRUPLE),
        **dict.fromkeys(("RAM32X1D", "RAM64X1D", "RAM128X1D"), DUAL),
        "CARRY": Kind(LOGIC, arcs=CARRY, chain=("CO", "CI"), rising=True),
        **dict.fromkeys(
            ("RAMB18E1", "RAMB36E1"),
            Kind(BLOCK, clocks=BLOCK_RAM.clocks, variant=_block_ram),
        ),
        "DSP48E1": Kind(BLOCK, clocks=("CLK",), variant=_dsp),
    },
    wires=WIRES,
    port_ns=CLOCK_TO_Q,
)
