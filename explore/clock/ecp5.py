"""Delays of ECP5 cells at speed grade 6, in ns, as nextpnr-ecp5 0.11.1 reports them.

Wires have the shape that decisions 19 and 54 found in routed designs: a level of logic takes 1.2 ns
with the wire before it, a signal of 300 sinks 2.5 ns more, and a path from a block RAM to a
multiplier is longer. ``tools/clock_fit.py`` scales all of them so that whole designs have the
clocks at which nextpnr routed them.
"""

from __future__ import annotations

from vdla.explore.clock.cells import BLOCK, FLIP_FLOP, LOGIC, Cells, Kind, Parameters, Wires

LUT, SELECT, BESIDE = 0.24, 0.26, 0.18  # BESIDE: through a multiplexer behind its LUT
OPERANDS = ("A", "B", "C", "D")
WIRES = Wires(first=0.6, doubling=0.3, block=1.0)
# A multiplier's, by Project Trellis's classes of registers (MULT18X18D:REGS=NONE, INPUT, OUTPUT,
# ALL): from A and B to P, to the clock, and from the clock to P.
THROUGH = {"A": 3.93, "B": 3.93}
AT_INPUT, BEFORE_OUTPUT = 0.084, 3.486  # setup, with registers at the inputs and without
AT_OUTPUT, BEHIND_INPUT = 0.735, 3.864  # launch, with registers at the output and without
CONTROL = {"CE": 0.252, "RST": 0.095}  # setup


def _carry() -> Kind:
    """A CCU2C: two bits of a chain; the second one follows both bits' operands."""
    first = {f"{pin}0": 0.45 for pin in OPERANDS}
    both = first | {f"{pin}1": 0.45 for pin in OPERANDS}
    return Kind(
        LOGIC,
        arcs={
            "S0": {**first, "CIN": 0.40},
            "S1": {**both, "CIN": 0.40},
            "COUT": {**both, "CIN": 0.07},
        },
        chain=("CIN", "COUT"),
    )


def _multiplier(parameters: Parameters) -> Kind:
    """A MULT18X18D with the registers that its parameters say: at both inputs or at none."""
    names = ("REG_INPUTA_CLK", "REG_OUTPUT_CLK")
    inputs, output = (parameters.get(name, "NONE") != "NONE" for name in names)
    if not inputs and not output:
        return Kind(BLOCK, arcs={"P": THROUGH})
    before = AT_INPUT if inputs else BEFORE_OUTPUT
    return Kind(
        BLOCK,
        launch={"P": AT_OUTPUT if output else BEHIND_INPUT},
        setup={**dict.fromkeys(THROUGH, before), **CONTROL},
        clocks=("CLK0",),
    )


ECP5 = Cells(
    kinds={
        "TRELLIS_FF": Kind(
            FLIP_FLOP,
            launch={"Q": 0.52},
            setup={"DI": 0.0, "M": 0.0, "CE": 0.0, "LSR": 0.0},
            clocks=("CLK",),
            packed=("DI",),
        ),
        "LUT": Kind(LOGIC, arcs={"Z": dict.fromkeys(OPERANDS, LUT)}),
        "PFUMX": Kind(
            LOGIC,
            arcs={"Z": {"ALUT": BESIDE, "BLUT": BESIDE, "C0": SELECT}},
            packed=("ALUT", "BLUT"),
        ),
        "L6MUX": Kind(LOGIC, arcs={"Z": {"D": LUT, "SD": SELECT}}, packed=("D",)),
        "CCU2C": _carry(),
        "TRELLIS_DPR16X4": Kind(
            LOGIC,
            arcs={"DO": {"RAD": LUT}},
            launch={"DO": 1.2},
            setup={"DI": 0.0, "WAD": 0.0, "WRE": 0.0},
            clocks=("WCK",),
        ),
        "MULT18X18D": Kind(BLOCK, clocks=("CLK0",), variant=_multiplier),
        "DP16KD": Kind(
            BLOCK,
            launch={"DOA": 5.83, "DOB": 5.83},
            setup=dict.fromkeys(("ADA", "ADB", "DIA", "DIB", "WEA", "WEB", "CEA", "CEB"), 0.0),
            clocks=("CLKA", "CLKB"),
        ),
    },
    wires=WIRES,
    port_ns=0.52,
)
