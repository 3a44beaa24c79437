"""Slots of a Gowin: the same outputs in every cycle, by a model of its cells."""

import json
import random
from collections import Counter
from copy import deepcopy

import pytest
from amaranth import Module, Mux, Signal, signed
from amaranth.back import rtlil
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.flows import gowin
from vdla.boards.flows.slots import fill_slots
from vdla.hw.verilog import NAME, run_yosys

BITS = {"a": 10, "b": 12, "reset": 1, "enable": 1}  # inputs of the design
CYCLES = 60
OF_LUT = ("LUT1", "LUT2", "LUT3", "LUT4")


class Product(Component):
    """``p``: a product of two registers, in a register; ``more`` is what others see of it.

    ``kind``: what is unusual about the register.
    """

    a: In(signed(10))
    b: In(signed(12))
    reset: In(1)
    enable: In(1)
    p: Out(signed(22))
    more: Out(signed(22))

    def __init__(self, kind):
        self.kind = kind
        super().__init__()

    def elaborate(self, platform):
        m, kind = Module(), self.kind
        a, b, p = (Signal.like(getattr(self, n), name=f"r_{n}", reset_less=True) for n in "abp")
        product = a * b
        m.d.sync += [a.eq(self.a), b.eq(self.b)]
        if kind == "an enable":
            with m.If(self.enable):
                m.d.sync += p.eq(product)
        else:
            m.d.sync += p.eq(Mux(self.reset, 0, product) if kind == "a reset" else product)
        m.d.comb += self.p.eq(p)
        if kind == "a reader":
            m.d.comb += self.more.eq(product)
        if kind == "two registers":
            again = Signal.like(p, reset_less=True)
            with m.If(self.enable):
                m.d.sync += again.eq(product)
            m.d.comb += self.more.eq(again)
        if kind == "a sum":
            total = Signal.like(p, reset_less=True)
            m.d.sync += total.eq(p ^ self.more)
            m.d.comb += self.more.eq(total)
        return m


CASES = {"nothing": True, "a sum": True, "a reset": False, "an enable": False, "a reader": False,
         "two registers": False}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_registers_behind_a_multiplier(tmp_path, kind):
    modules = mapped(Product(kind), tmp_path)
    before = Netlist(deepcopy(modules[NAME]))
    moved, alone = fill_slots(modules)
    after = Netlist(modules[NAME])
    assert moved == (22 if CASES[kind] else 0)
    luts = sum(before.kinds[kind] for kind in OF_LUT) + alone
    others = before.kinds - Counter(dict.fromkeys(OF_LUT, luts)) - Counter(DFF=moved)
    assert after.kinds == others + Counter(LUT4=luts)
    (multiplier,) = (c for c in after.cells.values() if c["type"] == "MULT18X18")
    pins = multiplier["connections"]
    if moved:
        assert (pins["CLK"], pins["CE"], pins["RESET"]) == (
            after.ports["clk"]["bits"],
            ["1"],
            ["0"],
        )
    rng = random.Random(kind)
    inputs = [{n: rng.getrandbits(bits) for n, bits in BITS.items()} for _ in range(CYCLES)]
    assert after.run(inputs) == before.run(inputs)


@pytest.mark.parametrize("kind", CASES)
def test_no_flip_flop_is_alone(tmp_path, kind):
    modules = mapped(Product(kind), tmp_path)
    fill_slots(modules)
    cells = modules[NAME]["cells"].values()
    driven = Counter(c["connections"]["F"][0] for c in cells if c["type"] in OF_LUT)
    driven += Counter(c["connections"]["SUM"][0] for c in cells if c["type"] == "ALU")
    inputs = Counter(c["connections"]["D"][0] for c in cells if c["type"].startswith("DFF"))
    assert driven
    assert inputs
    assert set(driven.values()) == set(inputs.values()) == {1}
    assert set(inputs) <= set(driven)


def test_a_module_without_cells_stays():
    modules = {NAME: {"cells": {}, "ports": {}, "netnames": {}}}
    assert fill_slots(modules) == (0, 0)
    assert modules == {NAME: {"cells": {}, "ports": {}, "netnames": {}}}


def mapped(unit, folder):
    """Modules of the netlist that yosys makes of a unit, without pads."""
    (folder / f"{NAME}.il").write_text(rtlil.convert(unit, name=NAME, emit_src=False))
    script = gowin.script().replace("synth_gowin", "synth_gowin -noiopads")
    (folder / f"{NAME}.ys").write_text(script)
    run_yosys(["-q", f"{NAME}.ys"], folder)
    return json.loads((folder / f"{NAME}.json").read_text())["modules"]


class Netlist:
    """Registers, LUTs and multipliers of a Gowin, cycle by cycle (UG287, UG288)."""

    def __init__(self, module):
        self.cells, self.ports = module["cells"], module["ports"]
        self.kinds = Counter(c["type"] for c in self.cells.values() if c["type"] != "$scopeinfo")
        assert set(self.kinds) <= {*OF_LUT, "DFF", "DFFE", "DFFR", "MULT18X18", "GND", "VCC"}

    def run(self, inputs):
        """Outputs in each cycle, registers being zero at first."""
        state = dict.fromkeys(self.cells, 0)
        return [self.cycle(state, values) for values in inputs]

    def cycle(self, state, values):
        """Outputs in a cycle; ``state`` goes on to the next one."""
        nets = {"0": 0, "1": 1, "x": 0, "z": 0}
        for name, value in values.items():
            nets |= {bit: value >> i & 1 for i, bit in enumerate(self.ports[name]["bits"])}
        nets[self.ports["clk"]["bits"][0]] = nets[self.ports["rst"]["bits"][0]] = 0
        for name, cell in self.cells.items():
            pins = cell["connections"]
            if cell["type"].startswith("DFF"):
                nets[pins["Q"][0]] = state[name]
            elif registered(cell):
                nets |= product_of(pins, state[name])
            elif cell["type"] in ("GND", "VCC"):
                nets[pins[cell["type"][0]][0]] = int(cell["type"] == "VCC")
        for _ in range(4):  # levels of what lies between
            for cell in self.cells.values():
                pins = cell["connections"]
                if cell["type"] in OF_LUT:
                    at = sum(nets.get(pins[f"I{n}"][0], 0) << n for n in range(len(pins) - 1))
                    nets[pins["F"][0]] = int(cell["parameters"]["INIT"], 2) >> at & 1
                elif cell["type"] == "MULT18X18" and not registered(cell):
                    nets |= product_of(pins, multiplied(pins, nets))
        for name, cell in self.cells.items():
            pins = cell["connections"]
            if registered(cell):
                state[name] = multiplied(pins, nets)
            elif cell["type"].startswith("DFF") and nets[pins.get("CE", "1")[0]]:
                state[name] = 0 if nets[pins.get("RESET", "0")[0]] else nets[pins["D"][0]]
        return [[nets[bit] for bit in self.ports[name]["bits"]] for name in ("p", "more")]


def registered(cell):
    """Whether a cell is a multiplier whose output is registered."""
    return cell["type"] == "MULT18X18" and cell["parameters"].get("OUT_REG") == "1"


def multiplied(pins, nets):
    """The product of what is at a multiplier's pins."""
    assert nets[pins["ASIGN"][0]] == nets[pins["BSIGN"][0]] == 1
    factors = (sum(nets.get(bit, 0) << n for n, bit in enumerate(pins[port])) for port in "AB")
    a, b = (f - (f >> 17 << 18) for f in factors)
    return a * b % (1 << 36)


def product_of(pins, product):
    """Values of the nets at a multiplier's output."""
    return {bit: product >> n & 1 for n, bit in enumerate(pins["DOUT"])}
