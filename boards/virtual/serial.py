"""A board with a serial link, without the board: its RTL, its SDRAM's model, a pseudo-terminal.

All of ``Soc`` is there, with the registers at the pads, and bits on the line; the PLL and the pads
themselves are not. The host opens ``port`` as it would a real one.
"""

from __future__ import annotations

import os
import pty
import subprocess
import tty
from pathlib import Path
from types import SimpleNamespace

from amaranth import Module
from amaranth.hdl import ClockDomain
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.models.sdram import Broken
from vdla.boards.soc.sdram import FAST, ONE_CLOCK, Chip, Pads
from vdla.boards.soc.soc import LEDS, Soc
from vdla.boards.soc.uart import divisor_of
from vdla.boards.virtual.chip import add_model, fast_clock, model_of
from vdla.hw.verilog import convert
from vdla.isa.config import Config
from vdla.isa.registers import register
from vdla.runtime.rtl.build import ROOMS, sources_key
from vdla.runtime.rtl.verilate import cached, compile_model, need_tools, verilate

HERE = Path(__file__).parent


class Top(Component):
    """The whole board. ``broken`` is the SDRAM's first broken rule, ``running`` the core's LED,
    ``fast`` the SDRAM's clock, where that isn't ``clk``."""

    def __init__(self, config: Config, chip: Chip, clock_hz: float, pads: Pads) -> None:
        self.soc = Soc(config, chip, clock_hz, pads=pads)
        self.sdram = model_of(self.soc)
        super().__init__(
            {
                "clk": In(1),
                "rst": In(1),
                **fast_clock(pads),
                "rx": In(1, init=1),
                "tx": Out(1),
                "leds": Out(LEDS),
                "running": Out(1),
                "broken": Out(range(max(Broken) + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The SoC and a model of its SDRAM, in the clock of a simulator."""
        m = Module()
        m.domains.sync = domain = ClockDomain("sync")
        m.submodules.soc = soc = self.soc
        add_model(m, self, soc, self.sdram)
        running = register("STATUS").field("RUNNING").low
        m.d.comb += [
            domain.clk.eq(self.clk),
            domain.rst.eq(self.rst),
            soc.rx.eq(self.rx),
            self.tx.eq(soc.tx),
            self.leds.eq(soc.leds),
            self.running.eq(soc.status[running]),
            self.broken.eq(self.sdram.broken),
        ]
        return m


class VirtualSerialBoard:
    """A running virtual board; a context manager. ``port`` is what the host opens.

    Raises:
        DeviceError: a tool to build it with is missing, or fails.
    """

    def __init__(
        self,
        config: Config,
        chip: Chip,
        clock_hz: float,
        multiplier_bits: int,
        pads: Pads = ONE_CLOCK,
    ) -> None:
        program = build(config, chip, clock_hz, multiplier_bits, pads)
        controlling, self._held = pty.openpty()
        tty.setraw(self._held)  # bytes as they are, also before the host sets the port up
        self.port = os.ttyname(self._held)
        self._process = subprocess.Popen(
            [str(program), str(controlling), str(divisor_of(clock_hz))], pass_fds=(controlling,)
        )
        os.close(controlling)

    def close(self) -> int | None:
        """Ends the board; its exit code if it had ended by itself: 3 is a broken SDRAM rule."""
        result = self._process.poll()
        self._process.kill()
        self._process.wait()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
        return result

    def __enter__(self) -> VirtualSerialBoard:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def build(
    config: Config, chip: Chip, clock_hz: float, multiplier_bits: int, pads: Pads = ONE_CLOCK
) -> Path:
    """The program that is the virtual board; built once, then cached."""
    need_tools()
    platform = SimpleNamespace(multiplier_bits=multiplier_bits)  # what GEMM asks of it

    def make(work: Path) -> None:
        top = Top(config, chip, clock_hz, pads)
        (work / "board.v").write_text(convert(top, "board", platform))
        clock = f"#define VDLA_FAST {FAST}" if pads.ratio > 1 else "// one clock"
        (work / "names.h").write_text(f"{clock}\n")
        (work / "storage.v").write_text((HERE / "storage.v").read_text())
        verilate(work, "board", ("board.v", "storage.v"))
        compile_model(work, HERE / "bench.cpp", "board", shared=False)

    rooms = [ROOMS / name for name in ("hw", "isa", "boards", "runtime/rtl")]
    kind = f"{chip.name}-{clock_hz:.0f}-{multiplier_bits}-{pads.ratio}-{pads.late}"
    key = f"{config.hash}-{kind}-{sources_key(rooms)}"
    return cached(key, "board", "virtual board", f"config {config.name}", make)
