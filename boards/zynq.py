"""What boards with a Zynq share: their figures, and the processor's side as its host sees it.

The registers are at ``Processor.registers``, the interrupt goes to the GIC, and programs lie in the
processor's own DRAM. The overlay tells Linux so: it names the bitstream, asks for the clock, sets
the memory port to the config's width, and gives the registers to UIO. Amaranth is needed only when
a design is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vdla.boards.board import Board, BoardError
from vdla.isa.config import Config
from vdla.isa.registers import SPACE_BYTES

if TYPE_CHECKING:
    from amaranth.vendor import XilinxPlatform

    from vdla.boards.soc.zynq import Top

BIT_BIN = "vdla.bit.bin"  # what the overlay has the kernel look for


@dataclass(frozen=True)
class Part:
    """A device as AMD's tools order it, what it has, and which flows know it.

    ``host`` is what the compiler calls its processor.
    """

    device: str
    package: str
    speed: str
    available: Mapping[str, int]
    toolchains: tuple[str, ...]
    host: str

    @property
    def name(self) -> str:
        """A 7-series' device and package stand together."""
        joint = "" if self.device.startswith("xc7") else "-"
        return f"{self.device}{joint}{self.package}-{self.speed}"


XC7Z020 = Part(
    "xc7z020",
    "clg400",
    "1",
    available={"lut": 53_200, "ff": 106_400, "dsp": 220, "bram": 140},  # DS190, table 1
    toolchains=("vivado", "xray", "yosys"),
    host="cortex-a9",
)
XCZU3EG = Part(
    "xczu3eg",
    "sbva484",
    "1-i",
    available={"lut": 70_560, "ff": 141_120, "dsp": 360, "bram": 216},  # DS891
    toolchains=("vivado", "yosys"),
    host="cortex-a53",
)


@dataclass(frozen=True)
class Processor:
    """A processing system. ``widths``: bytes of the memory port, and what its register calls them.

    ``interrupt`` is the shared peripheral interrupt's number, ``clock`` the fabric clock's phandle,
    ``bootgen`` what bootgen calls it, ``cells`` how many words an address takes in a device tree.
    """

    primitive: str
    bootgen: str
    registers: int
    interrupt: int
    controller: str
    clock: str
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
    cells=2,
    memory_port="S_AXI_HP0_FPD",
    burst_beats=256,
    widths={16: 0, 8: 1, 4: 2},  # FABRIC_WIDTH: UG1087, register AFIFM.RDCTRL
)
SYSTEMS = {"xc7z": ZYNQ_7000, "xczu": ULTRASCALE}


def make_board(name: str, title: str, part: Part) -> Board:
    """A board under PYNQ's Linux, whose image keeps 128 MiB to be allocated in one piece."""
    return Board(
        name=name,
        title=title,
        device=part.name,
        config="paper",
        clock_hz=100e6,
        memory_bytes=128 << 20,
        reach="axi",
        toolchains=part.toolchains,
        available=part.available,
        host=part.host,
    )


def make_top(board: Board, config: Config) -> Top:
    """The board's design."""
    from vdla.boards.soc.zynq import Top

    return Top(config, processor_of(board), board.clock_hz)


def make_platform(part: Part, leds: str, toolchain: str = "Vivado") -> XilinxPlatform:
    """Amaranth's platform of a board that uses nothing but LEDs, at these pins."""
    from vdla.boards.soc.zynq import platform

    return platform(part, leds, toolchain)


def processor_of(board: Board) -> Processor:
    """A board's processor.

    Raises:
        BoardError: it has none of these.
    """
    found = SYSTEMS.get(board.device[:4].lower())
    if found is None:
        expected = ", ".join(SYSTEMS)
        raise BoardError(f"board {board.name}: expected one of {expected}, found {board.device}")
    return found


def check(board: Board, config: Config) -> None:
    """Whether the memory port can carry what the config's core sends.

    Raises:
        BoardError: it can't.
    """
    processor = processor_of(board)
    where = f"config {config.name} on {board.name} ({processor.memory_port})"
    if config.port_bytes not in processor.widths:
        expected = " or ".join(str(n) for n in sorted(processor.widths))
        raise BoardError(f"{where}: expected port_bytes {expected}, found {config.port_bytes}")
    if config.burst_beats > processor.burst_beats:
        raise BoardError(
            f"{where}: expected burst_beats ≤ {processor.burst_beats}, found {config.burst_beats}"
        )


def overlay(board: Board, config: Config) -> str:
    """The device tree overlay, as source."""
    processor = processor_of(board)
    high = "0x0 " if processor.cells == 2 else ""
    lines = [
        f"/* VDLA, config {config.name} ({config.hash}), on {board.title}.",
        "   dtc -@ -I dts -O dtb -o vdla.dtbo vdla.dtso */",
        "/dts-v1/;",
        "/plugin/;",
        "",
        "&fpga_full {",
        f"\t#address-cells = <{processor.cells}>;",
        f"\t#size-cells = <{processor.cells}>;",
        f'\tfirmware-name = "{BIT_BIN}";',
        "};",
        "",
        "&amba {",
        f"\t#address-cells = <{processor.cells}>;",
        f"\t#size-cells = <{processor.cells}>;",
        "\tvdla_clock: clocking0 {",
        '\t\tcompatible = "xlnx,fclk";',
        f"\t\tclocks = <&{processor.clock}>;",
        f"\t\tassigned-clocks = <&{processor.clock}>;",
        f"\t\tassigned-clock-rates = <{board.clock_hz:.0f}>;",
        '\t\tclock-output-names = "fabric_clk";',
        "\t\t#clock-cells = <0>;",
        "\t};",
        *_memory_port(processor, config),
        f"\tvdla: vdla@{processor.registers:x} {{",
        '\t\tcompatible = "generic-uio";',
        f"\t\treg = <{high}{processor.registers:#x} {high}{SPACE_BYTES:#x}>;",
        f"\t\tinterrupt-parent = <&{processor.controller}>;",
        f"\t\tinterrupts = <0 {processor.interrupt} 4>;",
        f"\t\tclocks = <&{processor.clock}>;",
        "\t};",
        "};",
    ]
    return "\n".join(lines) + "\n"


def _memory_port(processor: Processor, config: Config) -> list[str]:
    width = processor.widths[config.port_bytes]
    if processor is ZYNQ_7000:
        return [
            "\tvdla_port: afi0@f8008000 {",
            '\t\tcompatible = "xlnx,afi-fpga";',
            "\t\treg = <0xf8008000 0x1000>;",
            "\t\t#address-cells = <1>;",
            "\t\t#size-cells = <0>;",
            f"\t\txlnx,afi-width = <{width}>;",
            "\t};",
        ]
    return [  # registers 4 and 5: HP0's read and write side; 14: both HPM ports at 128 bits
        "\tvdla_port: afi0 {",
        '\t\tcompatible = "xlnx,afi-fpga";',
        f"\t\tconfig-afi = <4 {width}>, <5 {width}>, <14 0xa00>;",
        "\t\tresets = <&zynqmp_reset 116>;",
        "\t};",
    ]


def bif(board: Board) -> str:
    """bootgen's input, for those who would rather have it make the ``.bit.bin``."""
    owner = "[destination_device = pl] " if processor_of(board) is ULTRASCALE else ""
    return f"all:\n{{\n    {owner}vdla.bit\n}}\n"


def bootgen(board: Board) -> str:
    """The command that takes it."""
    return f"bootgen -image vdla.bif -arch {processor_of(board).bootgen} -process_bitstream bin -w"
