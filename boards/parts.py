"""Parts as their makers sell them: what they have, and where a processor's side lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vdla.boards.board import Board, BoardError


@dataclass(frozen=True)
class Part:
    """A device as its maker orders it, what it has, and which flows know it.

    ``family`` is what yosys calls its family, ``host`` what the compiler calls its processor:
    "native" is the machine that compiles.
    """

    device: str
    package: str
    speed: str
    family: str
    available: Mapping[str, int]
    toolchains: tuple[str, ...]
    host: str = "native"

    @property
    def name(self) -> str:
        """A 7-series' device and package stand together; Lattice's speed before the package, and
        Gowin's behind it."""
        if self.family == "ecp5":
            return f"{self.device}-{self.speed}{self.package}"
        if self.family == "gw2a":
            return f"{self.device}{self.package}{self.speed}"
        joint = "" if self.device.startswith("xc7") else "-"
        return f"{self.device}{joint}{self.package}-{self.speed}"


XC7Z020 = Part(
    "xc7z020",
    "clg400",
    "1",
    "xc7",
    available={"lut": 53_200, "ff": 106_400, "dsp": 220, "bram": 140},  # DS190, table 1
    toolchains=("vivado", "xray", "yosys"),
    host="cortex-a9",
)
XCZU3EG = Part(
    "xczu3eg",
    "sbva484",
    "1-i",
    "xcup",
    available={"lut": 70_560, "ff": 141_120, "dsp": 360, "bram": 216},  # DS891
    toolchains=("vivado", "yosys"),
    host="cortex-a53",
)
LFE5U_45F = Part(
    "LFE5U-45F",
    "BG381C",
    "6",
    "ecp5",
    available={"lut": 43_848, "ff": 43_848, "dsp": 72, "bram": 108},  # FPGA-DS-02012
    toolchains=("trellis",),
)
LFE5U_85F = Part(
    "LFE5U-85F",
    "BG381C",
    "6",
    "ecp5",
    available={"lut": 83_640, "ff": 83_640, "dsp": 156, "bram": 208},  # FPGA-DS-02012
    toolchains=("trellis",),
)
GW2AR_18 = Part(
    "GW2AR-LV18",
    "QN88",
    "C8/I7",
    "gw2a",
    available={"lut": 20_736, "ff": 15_552, "dsp": 48, "bram": 46},  # DS226
    toolchains=("gowin",),
)


@dataclass(frozen=True)
class Processor:
    """A processing system. ``widths``: bytes of the memory port, and what its register calls them.

    ``interrupt`` is the shared peripheral interrupt's number, ``clock`` the fabric clock's phandle,
    ``bootgen`` what bootgen calls it, ``cells`` how many words an address takes in a device tree.
    ``pll`` is the PLL behind the fabric's clock, in Vivado's words, at ``pll_hz`` where boards have
    been started as AMD's presets say.
    """

    primitive: str
    bootgen: str
    registers: int
    interrupt: int
    controller: str
    clock: str
    pll: str
    pll_hz: float
    cells: int
    memory_port: str
    burst_beats: int
    widths: Mapping[int, int] = field(default_factory=dict)


ZYNQ_7000 = Processor(
    primitive="PS7",
    bootgen="zynq",
    registers=0x4000_0000,  # M_AXI_GP0: UG585, table 4-1
    interrupt=29,  # 61 of the GIC: UG585, table 7-4
    controller="intc",
    clock="clkc 15",
    pll="IO PLL",
    pll_hz=1e9,
    cells=1,
    memory_port="S_AXI_HP0",
    burst_beats=16,  # AXI3
    widths={8: 0, 4: 1},  # 32BitEn: UG585, register AFI.AFI_RDCHAN_CTRL
)
ULTRASCALE = Processor(
    primitive="PS8",
    bootgen="zynqmp",
    registers=0xA000_0000,  # M_AXI_HPM0_FPD: UG1085, chapter 10
    interrupt=89,  # 121 of the GIC: UG1085, chapter 13
    controller="gic",
    clock="zynqmp_clk 71",
    pll="IOPLL",
    pll_hz=1.5e9,
    cells=2,
    memory_port="S_AXI_HP0_FPD",
    burst_beats=256,
    widths={16: 0, 8: 1, 4: 2},  # FABRIC_WIDTH: UG1087, register AFIFM.RDCTRL
)
SYSTEMS = {"xc7z": ZYNQ_7000, "xczu": ULTRASCALE}


def processor_of(board: Board) -> Processor:
    """A board's processor.

    Raises:
        BoardError: it has none of these.
    """
    result = SYSTEMS.get(board.device[:4].lower())
    if result is None:
        expected = ", ".join(SYSTEMS)
        raise BoardError(f"board {board.name}: expected one of {expected}, found {board.device}")
    return result
