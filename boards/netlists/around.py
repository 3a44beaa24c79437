"""Surroundings of a chip: the board's SDRAM at its pads, as the model that virtual boards have.

Here the model is behind the pads' registers themselves, which are in the netlist. It is made into
gates and becomes part of the circuit, so each copy has one, and none is slower than the others.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from amaranth import ClockDomain, Module, Mux, Signal
from amaranth.back import rtlil
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.flows.tools import call, find_yosys
from vdla.boards.models.sdram import Broken, Sdram
from vdla.boards.netlists import plain
from vdla.boards.netlists.cells import read_module
from vdla.boards.netlists.circuit import HIGH, LOW, Circuit, Gate, Net
from vdla.boards.netlists.reader import DRIVES
from vdla.boards.soc.sdram.chip import Chip, Command
from vdla.boards.virtual.chip import STORAGE
from vdla.boards.wiring import Clocks
from vdla.isa.config import Config

PADS = "sdram_0__{}__io"
LEVELS = {  # pads of a port, by the model's input; a board without one ties it to a level
    "enable": (("clk_en", HIGH),),
    "command": (("we", HIGH), ("cas", HIGH), ("ras", HIGH), ("cs", LOW)),
    "bank": (("ba", LOW),),
    "address": (("a", LOW),),
    "mask": (("dqm", LOW),),
    "word_in": (("dq", LOW),),
}


class Around(Component):
    """An SDRAM at a chip's pads. ``driven``: the pads of its data that the chip drives."""

    def __init__(self, chip: Chip, clocks: Clocks, words: int) -> None:
        self.sdram, self.late = Sdram(chip, clocks.sdram_hz, words, STORAGE), clocks.pads.late
        inner = self.sdram.signature.members
        super().__init__(
            {
                "clk": In(1),
                **{name: inner[name] for name in LEVELS},
                "driven": In(chip.word_bits),
                "word_out": Out(chip.word_bits),
                "broken": Out(range(max(Broken) + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The model, and the clocks that its words take to the chip."""
        m = Module()
        m.domains.sync = domain = ClockDomain("sync", reset_less=True)
        m.submodules.sdram = sdram = self.sdram
        word = sdram.word_out
        for number in range(self.late):
            later = Signal.like(word, name=f"late_{number}")
            m.d.sync += later.eq(word)
            word = later
        begun = Signal()  # before it the pads show what a device's registers have at power-up
        m.d.sync += begun.eq(1)
        m.d.comb += [
            domain.clk.eq(self.clk),
            *(getattr(sdram, name).eq(getattr(self, name)) for name in LEVELS if name != "command"),
            sdram.command.eq(Mux(begun, self.command, Command.NOTHING)),
            sdram.word_in.eq(self.word_in & self.driven),
            sdram.driven.eq(self.driven.any()),
            self.word_out.eq(word),
            self.broken.eq(sdram.broken),
        ]
        return m


def circuit_around(chip: Chip, clocks: Clocks, config: Config) -> Circuit:
    """The circuit of an SDRAM that a config's core is to have at its pads.

    Raises:
        BoardError: yosys is missing or fails.
    """
    top = Around(chip, clocks, 8 * config.port_bytes // chip.word_bits)
    with tempfile.TemporaryDirectory(prefix="vdla-") as work:
        folder = Path(work)
        (folder / "around.il").write_text(rtlil.convert(top, name="around"))
        (folder / "around.ys").write_text(plain.SCRIPT)
        call([find_yosys(), "-q", "around.ys"], folder, "yosys.log")
        return plain.read(read_module(folder / "around.json"))


def joined(chip: Circuit, around: Circuit) -> Circuit:
    """One circuit of both, whose outputs are all of the chip's and ``broken[i]``."""
    nets = {LOW: LOW, HIGH: HIGH, **_levels(chip, around)}
    for net in range(around.nets):
        nets.setdefault(net, chip.net())

    def moved(some: tuple[Net, ...]) -> tuple[Net, ...]:
        return tuple(nets[net] for net in some)

    chip.gates += [Gate(nets[g.output], moved(g.inputs), g.table) for g in around.gates]
    chip.registers += [
        r._replace(output=nets[r.output], data=nets[r.data]) for r in around.registers
    ]
    for ram in around.rams:
        ports = tuple(
            port._replace(
                address=moved(port.address),
                writes=moved(port.writes),
                data=moved(port.data),
                outputs=moved(port.outputs),
            )
            for port in ram.ports
        )
        chip.rams.append(ram._replace(ports=ports))
    for name, net in around.outputs.items():
        port, _, number = name.partition("[")
        if port == "word_out":
            pad = PADS.format("dq") + f"[{number}"
            chip.gate(0b10, nets[net], output=chip.inputs.pop(pad))
        else:
            chip.outputs[name] = nets[net]
    return chip


def _levels(chip: Circuit, around: Circuit) -> dict[Net, Net]:
    """Nets of the chip at the inputs of what is around it."""
    result = {}
    for name, pads in LEVELS.items():
        bits = [bit for pad, tied in pads for bit in _bits(chip, PADS.format(pad), tied)]
        for number, bit in enumerate(bits):
            result[around.inputs.get(f"{name}[{number}]", -1)] = bit
    for number, bit in enumerate(_bits(chip, PADS.format("dq"), LOW, DRIVES)):
        result[around.inputs.get(f"driven[{number}]", -1)] = bit
    result.pop(-1, None)
    return result


def _bits(chip: Circuit, pad: str, tied: Net, suffix: str = "") -> list[Net]:
    """The nets of a pad's bits; a board without the pad ties it to a level."""
    if f"{pad}{suffix}" in chip.outputs:
        return [chip.outputs[f"{pad}{suffix}"]]
    count = sum(f"{pad}[{n}]{suffix}" in chip.outputs for n in range(64))
    return [chip.outputs[f"{pad}[{n}]{suffix}"] for n in range(count)] or [tied]
