"""The registers between a controller and a chip at twice its clock."""

import json

import pytest
from amaranth import ClockDomain, Module, Signal
from amaranth.back import rtlil
from amaranth.lib.wiring import Component, In, Out, connect, flipped
from amaranth.sim import Simulator

from tests.support.sdram import CYCLE, add_clocks
from vdla.boards.flows.script import yosys_script
from vdla.boards.soc.memory import port
from vdla.boards.soc.sdram import AS4C16M16SA, FAST, Controller, HalfRate, Pads, pins
from vdla.boards.soc.sdram.chip import Command
from vdla.hw.verilog import NAME, run_yosys

CHIP = AS4C16M16SA


@pytest.mark.parametrize("cas", [2, 3])
@pytest.mark.parametrize("late", [0, 1])
def test_a_cycle_becomes_two_clocks_and_two_clocks_a_cycle(cas, late):
    """A command goes with the first word and NOTHING with the second, two cycles after its own;
    words come two at a time, ``word_cycles`` after a READ."""
    pads = Pads(2, late)
    half_rate, seen, came, first = HalfRate(CHIP, cas, pads), [], [], 7

    async def show(ctx):
        for cycle in range(40):
            command = Command.WRITE if cycle % 3 == 0 else Command.NOTHING
            ctx.set(half_rate.inner.command, command)
            ctx.set(half_rate.inner.word_out, (2 * cycle + 1) << 16 | 2 * cycle)
            ctx.set(half_rate.inner.drive, cycle % 3 == 0)
            _, _, value = await ctx.tick().sample(half_rate.inner.word_in)
            came.append(value)

    async def pad(ctx):
        for clock in range(80):
            outer = half_rate.outer
            shown = [ctx.get(each) for each in (outer.command, outer.word_out, outer.drive)]
            ctx.set(outer.word_in, clock)  # in the pad's register from this clock on
            seen.append(shown)
            await ctx.tick(FAST)

    simulator = Simulator(half_rate)
    add_clocks(simulator, pads)
    simulator.add_testbench(show)
    simulator.add_testbench(pad)
    simulator.run_until(40 * CYCLE)
    # Clock 0 is the one that the first edge of both clocks ends, as it ends cycle 0.
    words = {word: clock for clock, (_, word, _) in enumerate(seen)}
    for cycle in range(first, 30):
        held = words[2 * cycle]
        assert held == 2 * cycle + 2  # so the pad has it two clocks after the cycle's end
        command = Command.WRITE if cycle % 3 == 0 else Command.NOTHING
        assert seen[held] == [command, 2 * cycle, cycle % 3 == 0]
        assert seen[held + 1] == [Command.NOTHING, 2 * cycle + 1, cycle % 3 == 0]
    # A READ that is shown in cycle t is followed by word_clock clocks from the one 2 t + 1 on, and
    # the pad's register has the number of its clock.
    for cycle in range(first, 30):
        word = 2 * cycle + 1 + pads.word_clock(cas)
        assert came[cycle + pads.word_cycles(cas)] == (word + 1) << 16 | word


class Crossing(Component):
    """A controller, the registers and those at the pads, as ECP5's primitives have them."""

    def __init__(self):
        self.controller = Controller(CHIP, 60e6, 4, 1, pads=Pads(2, 1))
        self.half_rate = HalfRate(CHIP, 3, Pads(2, 1))
        bits = self.controller.at_bits
        super().__init__({"clk": In(1), "fast": In(1), "pins": Out(pins(CHIP)),
                          "memory": In(port(bits, 32, 1))})  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain("sync", reset_less=True)
        m.domains.fast = fast = ClockDomain("fast", reset_less=True)
        m.d.comb += [sync.clk.eq(self.clk), fast.clk.eq(self.fast)]
        m.submodules.controller, m.submodules.half_rate = self.controller, self.half_rate
        connect(m, flipped(self.memory), self.controller.memory)
        connect(m, self.controller.pins, self.half_rate.inner)
        outer = self.half_rate.outer
        came = Signal.like(outer.word_in)
        m.d.fast += came.eq(self.pins.word_in)
        m.d.comb += outer.word_in.eq(came)
        for name in ("enable", "command", "bank", "address", "mask", "word_out", "drive"):
            m.d.fast += getattr(self.pins, name).eq(getattr(outer, name))
        return m


def test_nothing_lies_between_registers_of_the_two_clocks(tmp_path):
    """Nothing says whether a path between them is fast enough: nextpnr looks at one clock alone."""
    (tmp_path / f"{NAME}.il").write_text(rtlil.convert(Crossing(), name=NAME, emit_src=False))
    (tmp_path / f"{NAME}.ys").write_text(yosys_script("synth_ecp5"))
    run_yosys(["-q", f"{NAME}.ys"], tmp_path)
    module = json.loads((tmp_path / f"{NAME}.json").read_text())["modules"][NAME]
    cells = module["cells"].values()
    registers = [cell["connections"] for cell in cells if cell["type"] == "TRELLIS_FF"]
    clock = {bits["Q"][0]: bits["CLK"][0] for bits in registers}
    assert len(set(clock.values())) == 2
    sources = {out: bits(cell, "input") for cell in cells for out in bits(cell, "output")}
    crossings = 0
    for register in registers:
        own, made = register["CLK"][0], register["DI"][0]
        if made in clock:
            crossings += clock[made] != own
        else:
            assert clocks_behind(made, sources, clock) <= {own}
    assert crossings >= 2 * 2 * CHIP.word_bits  # two words each way, at least


def bits(cell, direction):
    """The signals at a cell's inputs, or at its outputs."""
    names = [name for name, each in cell["port_directions"].items() if each == direction]
    return [bit for name in names for bit in cell["connections"].get(name, ())]


def clocks_behind(bit, sources, clock):
    """The clocks of the registers that a signal depends on, whatever lies between."""
    waiting, known = [bit], set()
    while waiting:
        known.add(each := waiting.pop())
        if each in sources and each not in clock:
            waiting += [other for other in sources[each] if other not in known]
    return {clock[each] for each in known if each in clock}
