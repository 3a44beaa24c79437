"""The RTL of a whole board as a library: the board's design, its pads and its SDRAM's model.

What runs on it is what runs on the board, in the same cycles, but for the serial link: the host
writes the core's registers and the SDRAM's words itself. ``BoardBench`` is a ``Bench``.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from amaranth import Module
from amaranth.hdl import ClockDomain
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.models.sdram import Broken, Sdram
from vdla.boards.soc.sdram import Chip
from vdla.boards.soc.soc import Soc
from vdla.boards.virtual.serial import HERE, STORAGE
from vdla.hw.csr import ADDRESS_BITS
from vdla.hw.interfaces import axi_lite
from vdla.hw.verilog import convert
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.identity import Identity
from vdla.isa.memory import Memory
from vdla.isa.ring import engines
from vdla.runtime.errors import DeviceError
from vdla.runtime.rtl.bench import Bench, Bytes, Stopped
from vdla.runtime.rtl.build import ROOMS, scratchpads, sources_key
from vdla.runtime.rtl.verilate import cached, compile_model, need_tools, verilate

NAME = "board"
REGISTERS = "s_axi_"  # the prefix of the registers' port, as the core's Verilog has it
REST = 128  # cycles before and after a program, in which refreshes take place and words arrive
NO_ERRORS = (0, 0)


class Top(Component):
    """The whole board; ``broken`` is the SDRAM's first broken rule."""

    def __init__(self, config: Config, chip: Chip, clock_hz: float, requests: int) -> None:
        self.soc = Soc(config, chip, clock_hz, direct=True, requests=requests)
        words = 8 * config.port_bytes // chip.word_bits
        self.sdram = Sdram(chip, clock_hz, words, STORAGE)
        self.shown = ("irq", "ready", "trace_running", "trace_start", "trace_finish")
        self.registers = {
            REGISTERS + name: (name, member.flow, member.shape)
            for name, member in axi_lite(ADDRESS_BITS).members.items()
        }
        super().__init__(
            {
                "clk": In(1),
                "rst": In(1),
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
        m.submodules.soc, m.submodules.sdram = soc, sdram = self.soc, self.sdram
        m.d.comb += [
            domain.clk.eq(self.clk),
            domain.rst.eq(self.rst),
            self.broken.eq(sdram.broken),
            *(getattr(self, name).eq(getattr(soc, name)) for name in self.shown),
        ]
        for outer, (inner, flow, _) in self.registers.items():
            ours, its = getattr(self, outer), getattr(soc.registers, inner)
            m.d.comb += its.eq(ours) if flow == Out else ours.eq(its)
        sdram.join(m, soc.sdram)
        return m


class BoardBench(Bench):
    """A whole board, Verilated, with the interface of the core's bench. Not for several threads.

    A program's DRAM lies at address 0 of the SDRAM. It is copied there before the program, and back
    after it.
    """

    dram_base = 0

    def __init__(self, config: Config, library: Path) -> None:
        self.config = config
        self._lib = _load(library)
        self._handle = self._lib.vdla_new()

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
        self._rest()  # an answer comes before the last words
        self._dram[:] = self._words(self._dram.size)
        broken = Broken(self._lib.vdla_broken(self._handle))
        if broken != Broken.NONE:
            raise DeviceError(
                f"virtual board: expected every rule of the SDRAM to be kept, found {broken.name}"
            )
        return stopped

    def _words(self, size: int) -> Bytes:
        """The SDRAM's first bytes."""
        held = ctypes.c_uint64()
        at = self._lib.vdla_words(self._handle, ctypes.byref(held))
        if size > held.value:
            raise DeviceError(
                f"virtual board: expected at most {held.value:,} bytes of DRAM, found {size:,}"
            )
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), (size,))

    def _rest(self) -> None:
        self._lib.vdla_rest(self._handle, REST)


def _load(library: Path) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(library))
    handle, u64, i64, u32 = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint32
    pointer_u64 = ctypes.POINTER(u64)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "vdla_new": (handle, []),
        "vdla_free": (None, [handle]),
        "vdla_events": (None, [handle, ctypes.c_int, handle, handle, i64]),
        "vdla_rewind": (None, [handle]),
        "vdla_rest": (None, [handle, i64]),
        "vdla_write": (None, [handle, u32, u32]),
        "vdla_read": (u32, [handle, u32]),
        "vdla_run": (ctypes.c_int, [handle, i64]),
        "vdla_broken": (ctypes.c_int, [handle]),
        "vdla_words": (handle, [handle, pointer_u64]),
        "vdla_scratchpad": (handle, [handle, ctypes.c_int, pointer_u64, pointer_u64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def build_library(
    config: Config,
    chip: Chip,
    clock_hz: float,
    multiplier_bits: int,
    requests: int = 2,
) -> Path:
    """The library of a config on a board with such a chip; built once, then cached.

    Raises:
        DeviceError: a tool is missing (names the command that installs it) or fails.
    """
    need_tools()
    platform = SimpleNamespace(multiplier_bits=multiplier_bits)  # what GEMM asks of it

    def make(work: Path) -> None:
        top = Top(config, chip, clock_hz, requests)
        (work / "board.v").write_text(convert(top, NAME, platform))
        (work / "storage.v").write_text((HERE / "storage.v").read_text())
        (work / "public.vlt").write_text(_public(config))
        verilate(work, NAME, ("public.vlt", "board.v", "storage.v"))
        (work / "names.h").write_text(_names(work, config))
        compile_model(work, HERE / "core.cpp", "libboard.so")

    rooms = [ROOMS / name for name in ("hw", "isa", "boards", "runtime/rtl")]
    kind = f"{chip.name}-{clock_hz:.0f}-{multiplier_bits}-{requests}"
    key = f"{config.hash}-{kind}-{sources_key(rooms)}-library"
    return cached(key, "libboard.so", "whole board", f"config {config.name}", make)


def _public(config: Config) -> str:
    """Memories that Verilator keeps reachable: the scratchpads, and the SDRAM's words."""
    modules = [(f"{NAME}.soc.core.{name}", "mem") for name in scratchpads(config)]
    modules += [(STORAGE, "words")]
    lines = (f'public_flat_rw -module "{name}" -var "{variable}"\n' for name, variable in modules)
    return "`verilator_config\n" + "".join(lines)


def _names(work: Path, config: Config) -> str:
    """The library's header: how the model calls the memories."""
    text = (work / "model" / f"V{NAME}___024root.h").read_text()

    def name_of(path: str) -> str:
        result = re.findall(rf"VlUnpacked<[^;]*?(\w+__DOT__{path});", text)
        if len(result) != 1:
            raise DeviceError(f"virtual board: expected one memory {path}, found {result}")
        return str(result[0])

    inner = [name.replace(".", "__DOT__") for name in scratchpads(config)]
    lines = [
        f"#define VDLA_ENGINES {len(engines(config))}",
        f"#define VDLA_WORDS {name_of('words__DOT__words')}",
        "#define VDLA_SCRATCHPADS \\",
        *(
            f"    VDLA_SCRATCHPAD({index}, {name_of(f'{name}__DOT__mem')}) \\"
            for index, name in enumerate(inner)
        ),
    ]
    return "\n".join([*lines, "", ""])
