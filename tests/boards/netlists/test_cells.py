"""Cells as circuits, against yosys's simulation models of them, bit by bit under random inputs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.netlists import family_circuit, first_difference, reference
from vdla.boards.flows.tools import call, find_yosys
from vdla.boards.netlists import ecp5, gowin

ECP5_PINS = {  # inputs and outputs of a cell, each of one bit but for those that say how many
    "LUT4": (["A", "B", "C", "D"], ["Z"]),
    "PFUMX": (["ALUT", "BLUT", "C0"], ["Z"]),
    "L6MUX21": (["D0", "D1", "SD"], ["Z"]),
    "CCU2C": (["CIN", *(f"{p}{n}" for n in (0, 1) for p in "ABCD")], ["S0", "S1", "COUT"]),
    "TRELLIS_FF": (["LSR", "CE", "DI"], ["Q"]),
    "TRELLIS_DPR16X4": (["DI:4", "WAD:4", "WRE", "RAD:4"], ["DO:4"]),
}
GOWIN_PINS = {
    **{f"LUT{n}": ([f"I{i}" for i in range(n)], ["F"]) for n in range(1, 5)},
    **{f"MUX2_LUT{n}": (["I0", "I1", "S0"], ["O"]) for n in range(5, 9)},
    "ALU": (["I0", "I1", "I3", "CIN"], ["SUM", "COUT"]),
    "DFF": (["D"], ["Q"]),
    "DFFE": (["D", "CE"], ["Q"]),
    "DFFR": (["D", "RESET"], ["Q"]),
    "DFFRE": (["D", "CE", "RESET"], ["Q"]),
    "DFFS": (["D", "SET"], ["Q"]),
    "DFFSE": (["D", "CE", "SET"], ["Q"]),
    "RAM16SDP4": (["DI:4", "WAD:4", "WRE", "RAD:4"], ["DO:4"]),
}
CLOCK_PINS = {"TRELLIS_FF": "CLK", "TRELLIS_DPR16X4": "WCK", "RAM16SDP4": "CLK"}
LIBRARIES = {  # yosys's models: as cells, and as what they are made of
    "ecp5": "read_verilog {} -DNO_INCLUDES +/ecp5/cells_sim.v\n",
    "gowin": "read_verilog {} +/gowin/cells_sim.v\n",
}


def parameters(kind: str, rng: random.Random) -> str:
    """Random parameters of a cell."""
    bits = {"LUT4": 16, "LUT3": 8, "LUT2": 4, "LUT1": 2}
    if kind in bits:
        return f".INIT({bits[kind]}'d{rng.getrandbits(bits[kind])})"
    if kind == "CCU2C":
        inject = [rng.choice(("YES", "NO")) for _ in range(2)]
        inits = [rng.getrandbits(16) for _ in range(2)]
        return ", ".join(
            f'.INIT{n}(16\'d{inits[n]}), .INJECT1_{n}("{inject[n]}")' for n in range(2)
        )
    if kind == "TRELLIS_FF":
        enable, reset = rng.choice(("CE", "INV", "1")), rng.choice(("SET", "RESET"))
        inverted = rng.choice(("LSR", "INV"))
        return (f'.CEMUX("{enable}"), .REGSET("{reset}"), .LSRMUX("{inverted}"), '
                '.SRMODE("LSR_OVER_CE")')  # fmt: skip
    if kind == "TRELLIS_DPR16X4":
        return f'.INITVAL(64\'d{rng.getrandbits(64)}), .WREMUX("{rng.choice(("WRE", "INV"))}")'
    if kind == "ALU":
        return f".ALU_MODE({rng.randrange(10)})"
    if kind == "RAM16SDP4":
        return ", ".join(f".INIT_{n}(16'd{rng.getrandbits(16)})" for n in range(4))
    return ""


def design(pins: dict[str, tuple[list[str], list[str]]], copies: int, seed: int) -> str:
    """A module with some cells of each kind, every pin at a port."""
    rng = random.Random(seed)
    ports, cells = ["input clk"], []
    for kind, (inputs, outputs) in pins.items():
        for copy in range(copies):
            connections = []
            for way, names in (("input", inputs), ("output", outputs)):
                for name in names:
                    pin, _, width = name.partition(":")
                    port = f"{kind}_{copy}_{pin}"
                    ports.append(f"{way} [{int(width or 1) - 1}:0] {port}")
                    connections.append(f".{pin}({port})")
            clock = CLOCK_PINS.get(kind, "CLK" if kind.startswith("DFF") else "")
            if clock:
                connections.append(f".{clock}(clk)")
            cells.append(f"{kind} #({parameters(kind, rng)}) c_{kind}_{copy} "
                         f"({', '.join(connections)});")  # fmt: skip
    return f"module top({', '.join(ports)});\n" + "\n".join(cells) + "\nendmodule\n"


@pytest.mark.parametrize(
    ("name", "family", "pins"), [("ecp5", ecp5, ECP5_PINS), ("gowin", gowin, GOWIN_PINS)]
)
def test_cells_are_those_of_yosys(name: str, family: object, pins: dict, tmp_path: Path) -> None:
    text = design(pins, copies=6, seed=1)
    theirs = reference(tmp_path, {"top.v": text}, LIBRARIES[name].format(""))
    script = f"{LIBRARIES[name].format('-lib')}read_verilog top.v\nhierarchy -top top\nselect top\n"
    (tmp_path / "cells.ys").write_text(f"{script}write_json -selected cells.json\n")
    call([find_yosys(), "-q", "cells.ys"], tmp_path, "cells.log")
    ours = family_circuit(family, tmp_path / "cells.json")
    assert first_difference(ours, theirs, clocks=300) == ""


MEMORY = """\
module memory_{width}(input clk, input we, input [{at}:0] a, b, input [{top}:0] d,
                      output reg [{top}:0] q);
    (* ram_style = "block" *) reg [{top}:0] mem [0:{last}];
    always @(posedge clk) begin
        if (we) mem[a] <= d;
        if (!we || a != b) q <= mem[b];  // a word that is written in this clock isn't read
    end
endmodule
"""
PRODUCT = """\
module product_{wa}_{wb}(input clk, input r, input {sign} [{wa}:0] a, input {sign} [{wb}:0] b,
                         output reg {sign} [{wp}:0] p);
    reg {sign} [{wa}:0] x; reg {sign} [{wb}:0] y;
    always @(posedge clk) begin x <= r ? 0 : a; y <= b; p <= x * y; end
endmodule
"""
MEMORIES = ((9, 5), (18, 4), (36, 4), (8, 5), (27, 4))  # bits of a word, and of an address
PRODUCTS = ((18, 18, "signed"), (18, 9, ""), (12, 17, "signed"))  # bits of each factor
SYNTHESES = {
    "ecp5": (ecp5, "synth_ecp5 -top top"),
    "gowin": (gowin, "synth_gowin -family gw2a -noiopads -top top"),
}


def storage_and_products() -> str:
    """A module with memories and products, every pin of theirs at a port."""
    modules, ports, parts = [], ["input clk"], []
    for width, at in MEMORIES:
        modules.append(MEMORY.format(width=width, at=at - 1, top=width - 1, last=(1 << at) - 1))
        name, sizes = f"memory_{width}", {"we": 1, "a": at, "b": at, "d": width, "q": width}
        parts.append((name, sizes, "q"))
    for a, b, sign in PRODUCTS:
        modules.append(PRODUCT.format(sign=sign, wa=a - 1, wb=b - 1, wp=a + b - 1))
        parts.append((f"product_{a - 1}_{b - 1}", {"r": 1, "a": a, "b": b, "p": a + b}, "p"))
    cells = []
    for name, sizes, output in parts:
        pins = [f".{pin}({name}_{pin})" for pin in sizes]
        cells.append(f"{name} i_{name}(.clk(clk), {', '.join(pins)});")
        for pin, size in sizes.items():
            way = "output" if pin == output else "input"
            ports.append(f"{way} [{size - 1}:0] {name}_{pin}")
    top = f"module top({', '.join(ports)});\n" + "\n".join(cells) + "\nendmodule\n"
    return "".join(modules) + top


@pytest.mark.long
@pytest.mark.parametrize("name", SYNTHESES)
def test_block_rams_are_memories_and_multipliers_products(name: str, tmp_path: Path) -> None:
    family, synthesis = SYNTHESES[name]
    text = storage_and_products()
    theirs = reference(tmp_path, {"top.v": text})
    script = f"read_verilog top.v\n{synthesis}\nwrite_json synth.json\n"
    (tmp_path / "synth.ys").write_text(script)
    call([find_yosys(), "-q", "synth.ys"], tmp_path, "synth.log")
    ours = family_circuit(family, tmp_path / "synth.json")
    assert len(ours.rams) >= len(MEMORIES)
    assert len(ours.multipliers) == len(PRODUCTS)
    assert first_difference(ours, theirs, clocks=300) == ""
