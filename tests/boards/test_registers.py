"""Registers moved into multipliers: the same outputs in every cycle, by a model of both cells."""

import json
import random
from collections import Counter
from copy import deepcopy

import pytest
from amaranth import Module, Mux, Signal, signed
from amaranth.back import rtlil
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.flows.registers import move_registers
from vdla.boards.flows.script import yosys_script
from vdla.hw.verilog import NAME, run_yosys

BITS = {"a": 10, "b": 12, "reset": 1, "enable": 1}  # inputs of the design
CYCLES = 60


class Product(Component):
    """``p``: a product of two registers, in a register; ``more`` is what others see of them.

    ``kind``: what is unusual about the registers.
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
        product = a * (self.b if kind == "an input without" else b)
        if kind == "an enable":
            with m.If(self.enable):
                m.d.sync += a.eq(self.a)
        elif kind == "a reset":
            m.d.sync += a.eq(Mux(self.reset, 0, self.a))
        else:
            m.d.sync += a.eq(self.a)
        m.d.sync += [
            b.eq(self.b),
            p.eq(Mux(self.reset, 0, product) if kind == "an output's reset" else product),
        ]
        m.d.comb += self.p.eq(p)
        if kind == "a reader of a factor":
            m.d.comb += self.more.eq(a)
        if kind == "a reader of the product":
            m.d.comb += self.more.eq(product)
        if kind == "two registers behind":
            again = Signal.like(p, reset_less=True)
            with m.If(self.enable):
                m.d.sync += again.eq(product)
            m.d.comb += self.more.eq(again)
        return m


CASES = {  # and the ports of the multiplier that are registered
    "nothing": "ABP",
    "a reset": "ABP",
    "a reader of a factor": "ABP",
    "an enable": "P",
    "an input without": "P",
    "an output's reset": "AB",
    "a reader of the product": "AB",
    "two registers behind": "AB",
}


@pytest.mark.parametrize("kind", CASES)
def test_moved_registers(tmp_path, kind):
    modules = mapped(Product(kind), tmp_path)
    before = Netlist(deepcopy(modules[NAME]))
    gone = move_registers(modules)
    after = Netlist(modules[NAME])
    assert registered(after) == set(CASES[kind])
    moved = {"A": 10, "B": 12, "P": 22}
    stays = 10 if kind == "a reader of a factor" else 0
    assert gone == sum(moved[port] for port in CASES[kind]) - stays
    assert after.kinds == before.kinds - Counter(TRELLIS_FF=gone)
    rng = random.Random(kind)
    inputs = [{n: rng.getrandbits(bits) for n, bits in BITS.items()} for _ in range(CYCLES)]
    assert after.run(inputs) == before.run(inputs)


class Stored(Component):
    """``out``: what a memory has at an address, in a register; with ``seen``, before it, too."""

    at: In(11)
    word: In(64)
    out: Out(64)
    now: Out(64)

    def __init__(self, width, depth, *, seen=False, enable=False):
        self.width, self.depth, self.seen, self.enable = width, depth, seen, enable
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.width, depth=self.depth, init=[])
        write, read = memory.write_port(), memory.read_port()
        kept = Signal(self.width, reset_less=True)
        m.d.comb += [write.addr.eq(self.at), write.data.eq(self.word), write.en.eq(self.word[0])]
        m.d.comb += [read.addr.eq(self.at), self.out.eq(kept)]
        with m.If(self.at[0] if self.enable else 1):
            m.d.sync += kept.eq(read.data)
        if self.seen:
            m.d.comb += self.now.eq(read.data)
        return m


@pytest.mark.parametrize(("width", "depth", "options", "moves"), [
    (64, 512, {}, True), (18, 1024, {}, True), (64, 512, {"seen": True}, False),
    (36, 512, {"enable": True}, False),
])  # fmt: skip
def test_registers_behind_a_block_ram(tmp_path, width, depth, options, moves):
    modules = mapped(Stored(width, depth, **options), tmp_path)
    kinds = Counter(cell["type"] for cell in modules[NAME]["cells"].values())
    assert kinds["DP16KD"] == -(-width // 36)
    assert move_registers(modules) == (width if moves else 0)
    for cell in modules[NAME]["cells"].values():
        if cell["type"] == "DP16KD":
            ports = [port for port in "AB" if cell["parameters"][f"REGMODE_{port}"] == "OUTREG"]
            assert bool(ports) == moves
            assert all(cell["connections"][f"OCE{port}"] == ["1"] for port in ports)
    outputs = modules[NAME]["ports"]["out"]["bits"][:width]
    pins = [bits for c in modules[NAME]["cells"].values() if c["type"] == "DP16KD"
            for pin, (bits,) in c["connections"].items() if pin.startswith("DO")]  # fmt: skip
    assert set(outputs) <= set(pins) if moves else not set(outputs) & set(pins)


def mapped(unit, folder):
    """Modules of the netlist that yosys makes of a unit."""
    (folder / f"{NAME}.il").write_text(rtlil.convert(unit, name=NAME, emit_src=False))
    (folder / f"{NAME}.ys").write_text(yosys_script("synth_ecp5"))
    run_yosys(["-q", f"{NAME}.ys"], folder)
    return json.loads((folder / f"{NAME}.json").read_text())["modules"]


def test_a_module_without_multipliers_stays():
    modules = {NAME: {"cells": {}, "ports": {}}}
    assert move_registers(modules) == 0
    assert modules == {NAME: {"cells": {}, "ports": {}}}


def registered(netlist):
    """Ports of the multiplier that are registered."""
    (cell,) = (c for c in netlist.cells.values() if c["type"] == "MULT18X18D")
    names = {"A": "REG_INPUTA_CLK", "B": "REG_INPUTB_CLK", "P": "REG_OUTPUT_CLK"}
    found = {port for port, name in names.items() if name in cell["parameters"]}
    if found:
        assert cell["connections"]["CLK0"] == netlist.ports["clk"]["bits"]
        assert cell["connections"]["CE0"] == ["1"]
    return found


class Netlist:
    """Registers and multipliers of an ECP5, cycle by cycle (TN1267 and yosys's cells_sim.v)."""

    def __init__(self, module):
        self.cells, self.ports = module["cells"], module["ports"]
        self.kinds = Counter(cell["type"] for cell in self.cells.values())
        assert set(self.kinds) <= {"TRELLIS_FF", "MULT18X18D"}

    def run(self, inputs):
        """Outputs in each cycle, registers being zero at first."""
        state = {name: Counter() for name in self.cells}
        return [self.cycle(state, values) for values in inputs]

    def cycle(self, state, values):
        """Outputs in a cycle; ``state`` goes on to the next one."""
        nets = {"0": 0, "1": 1, "x": 0}
        for name, value in values.items():
            nets |= {bit: value >> i & 1 for i, bit in enumerate(self.ports[name]["bits"])}
        nets[self.ports["clk"]["bits"][0]] = nets[self.ports["rst"]["bits"][0]] = 0
        for name, cell in self.cells.items():
            if cell["type"] == "TRELLIS_FF":
                nets[cell["connections"]["Q"][0]] = state[name]["Q"]
            elif "REG_OUTPUT_CLK" in cell["parameters"]:
                self.drive(cell, state[name]["P"], nets)
        for name, cell in self.cells.items():
            if cell["type"] == "MULT18X18D" and "REG_OUTPUT_CLK" not in cell["parameters"]:
                self.drive(cell, self.product(cell, state[name], nets), nets)
        for name, cell in self.cells.items():
            self.step(cell, state[name], nets)
        outputs = (self.ports[name]["bits"] for name in ("p", "more"))
        return [[nets[bit] for bit in bits] for bits in outputs]

    def step(self, cell, state, nets):
        """A cell's registers at the end of a cycle."""
        pins, kind = cell["connections"], cell["parameters"]
        if cell["type"] == "TRELLIS_FF":
            if kind["CEMUX"].strip() == "1" or nets[pins["CE"][0]] == (kind["CEMUX"] == "CE"):
                state["Q"] = nets[pins["DI"][0]]
            if nets[pins["LSR"][0]]:
                assert kind["SRMODE"] == "LSR_OVER_CE"
                state["Q"] = int(kind["REGSET"] == "SET")
            return
        product = self.product(cell, state, nets)
        for port in "AB":
            reset = kind.get(f"REG_INPUT{port}_RST")
            value = self.pins(cell, port, nets)
            state[port] = 0 if reset and nets[pins[reset][0]] else value
        state["P"] = product

    def product(self, cell, state, nets):
        """The product of what is in the input registers, or at the pins."""
        factors = (
            state[port] if f"REG_INPUT{port}_CLK" in cell["parameters"]
            else self.pins(cell, port, nets)
            for port in "AB"
        )  # fmt: skip
        a, b = (f - (f >> 17 << 18) for f in factors)
        assert cell["connections"]["SIGNEDA"] == cell["connections"]["SIGNEDB"] == ["1"]
        return a * b % (1 << 36)

    def pins(self, cell, port, nets):
        """The number at the pins of an input."""
        return sum(nets[cell["connections"][f"{port}{n}"][0]] << n for n in range(18))

    def drive(self, cell, product, nets):
        """Sets the nets at the pins of the output."""
        for n in range(36):
            nets[cell["connections"][f"P{n}"][0]] = product >> n & 1
