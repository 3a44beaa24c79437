"""The RTL of a whole board as a library: the board's design, its pads and its SDRAM's model.

What runs on it is what runs on the board, in the same cycles, but for the serial link: the host
writes the core's registers and the SDRAM's words itself. ``BoardBench`` is a ``Bench``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
from amaranth import Module
from amaranth.hdl import ClockDomain
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.models.sdram import Broken
from vdla.boards.soc.sdram import FAST, ONE_CLOCK, Chip, Pads
from vdla.boards.soc.soc import Soc
from vdla.boards.virtual.chip import STORAGE, add_model, fast_clock, model_of
from vdla.boards.virtual.serial import HERE
from vdla.hw.csr import ADDRESS_BITS
from vdla.hw.interfaces import axi_lite
from vdla.hw.verilog import convert
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.identity import Identity
from vdla.isa.memory import Memory
from vdla.runtime.errors import DeviceError
from vdla.runtime.rtl.bench import HANDLE, INT, POINTER_U64, Bench, Bytes, Functions, Stopped
from vdla.runtime.rtl.build import ROOMS, Design, build_bench, sources_key
from vdla.runtime.rtl.verilate import cached, need_tools

DESIGN = Design(
    top="board",
    core="board.soc.core",
    sources=("board.v", "storage.v"),
    memory=HERE / "sdram.h",
    words=(STORAGE, "words.words"),
)
REGISTERS = "s_axi_"  # the prefix of the registers' port, as the core's Verilog has it
NO_ERRORS = (0, 0)


class Top(Component):
    """The whole board; ``broken`` is the SDRAM's first broken rule. ``fast`` is the SDRAM's clock,
    where that isn't the core's."""

    def __init__(
        self, config: Config, chip: Chip, clock_hz: float, requests: int, pads: Pads
    ) -> None:
        self.soc = Soc(config, chip, clock_hz, direct=True, requests=requests, pads=pads)
        self.sdram = model_of(self.soc)
        self.shown = ("irq", "ready", "trace_running", "trace_start", "trace_finish")
        self.registers = {
            REGISTERS + name: (name, member.flow, member.shape)
            for name, member in axi_lite(ADDRESS_BITS).members.items()
        }
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                **fast_clock(pads),
                "broken": Out(range(max(Broken) + 1)),
                **{name: Out(len(getattr(self.soc, name))) for name in self.shown},
                **{
                    name: (In if flow == Out else Out)(shape)
                    for name, (_, flow, shape) in self.registers.items()
                },
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The SoC and a model of its SDRAM, in the clock of a simulator."""
        m = Module()
        m.domains.sync = domain = ClockDomain("sync")
        m.submodules.soc = soc = self.soc
        add_model(m, self, soc, self.sdram)
        m.d.comb += [
            domain.clk.eq(self.aclk),
            domain.rst.eq(~self.aresetn),
            self.broken.eq(self.sdram.broken),
            *(getattr(self, name).eq(getattr(soc, name)) for name in self.shown),
        ]
        for outer, (inner, flow, _) in self.registers.items():
            ours, its = getattr(self, outer), getattr(soc.registers, inner)
            m.d.comb += its.eq(ours) if flow == Out else ours.eq(its)
        return m


class BoardBench(Bench):
    """A whole board, Verilated, with the interface of the core's bench. Not for several threads.

    A program's DRAM lies at address 0 of the SDRAM. It is copied there before the program, and back
    after it.
    """

    dram_base = 0
    rest_cycles = 128  # before and after a program: refreshes take place, and words arrive
    memory_functions: ClassVar[Functions] = {
        "vdla_words": (HANDLE, [HANDLE, POINTER_U64]),
        "vdla_broken": (INT, [HANDLE]),
    }

    def attach(
        self, dram: Bytes, *, memory: Memory | None = None, errors: tuple[int, int] = NO_ERRORS
    ) -> None:
        """Puts ``dram``, whole pages, into the SDRAM; ``memory`` is the board's, whatever is asked.

        Raises:
            DeviceError: the SDRAM is smaller, or bus errors are asked for.
        """
        if dram.size % PAGE_BYTES or not dram.flags.c_contiguous:
            raise ValueError(f"expected DRAM of whole pages, found {dram.size} bytes")
        if errors[0] < errors[1]:
            raise DeviceError("virtual board: expected no bus errors: its SDRAM has none")
        self._dram = dram
        self._words(dram.size)[:] = dram

    def run(
        self,
        base: int,
        counts: Sequence[int],
        *,
        identity: Identity | None = None,
        length: int | None = None,
        limit: int | None = None,
    ) -> Stopped:
        """Runs the stream that lies at ``base`` of the attached DRAM to its end; as ``Bench.run``.

        Raises:
            DeviceError: a rule of the SDRAM's datasheet was broken.
        """
        stopped = super().run(base, counts, identity=identity, length=length, limit=limit)
        self.rest()  # an answer comes before the last words
        self._dram[:] = self._words(self._dram.size)
        broken = Broken(self._lib.vdla_broken(self._memory))
        if broken != Broken.NONE:
            raise DeviceError(
                f"virtual board: expected every rule of the SDRAM to be kept, found {broken.name}"
            )
        return stopped

    def _words(self, size: int) -> Bytes:
        """The SDRAM's first bytes."""
        held = ctypes.c_uint64()
        at = self._lib.vdla_words(self._memory, ctypes.byref(held))
        if size > held.value:
            raise DeviceError(
                f"virtual board: expected at most {held.value:,} bytes of DRAM, found {size:,}"
            )
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), (size,))


def build_library(
    config: Config,
    chip: Chip,
    clock_hz: float,
    multiplier_bits: int,
    requests: int = 2,
    pads: Pads = ONE_CLOCK,
) -> Path:
    """The library of a config on a board with such a chip behind such pads; built once, then
    cached.

    Raises:
        DeviceError: a tool is missing (names the command that installs it) or fails.
    """
    need_tools()
    platform = SimpleNamespace(multiplier_bits=multiplier_bits)  # what GEMM asks of it

    def make(work: Path) -> None:
        top = Top(config, chip, clock_hz, requests, pads)
        (work / "board.v").write_text(convert(top, DESIGN.top, platform))
        (work / "storage.v").write_text((HERE / "storage.v").read_text())
        design = replace(DESIGN, fast=FAST if pads.ratio > 1 else None)
        build_bench(work, design, config, "libboard.so")

    rooms = [ROOMS / name for name in ("hw", "isa", "boards", "runtime/rtl")]
    kind = f"{chip.name}-{clock_hz:.0f}-{multiplier_bits}-{requests}-{pads.ratio}-{pads.late}"
    key = f"{config.hash}-{kind}-{sources_key(rooms)}-library"
    return cached(key, "libboard.so", "whole board", f"config {config.name}", make)
