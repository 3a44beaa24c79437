"""The overlay by which Linux on a Zynq learns of the accelerator.

The registers are at ``Processor.registers``, the interrupt goes to the GIC, and programs lie in the
processor's own DRAM. The overlay names the bitstream, asks for the clock, sets the memory port to
the config's width, and gives the registers to UIO.
"""

from __future__ import annotations

from vdla.boards.board import Board
from vdla.boards.parts import ULTRASCALE, ZYNQ_7000, Processor, processor_of
from vdla.isa.config import Config
from vdla.isa.registers import SPACE_BYTES

BIT_BIN = "vdla.bit.bin"  # what the overlay has the kernel look for


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
