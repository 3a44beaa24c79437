"""``vdla.hwh``: a hand-off file, from which PYNQ's class ``Overlay`` learns what a bitstream holds.

Vivado writes such files for block designs; this one describes a board's design, which is none. It
has the processing system with the clock that the design takes, the core with its registers, and
what joins them: addresses, the memory's port and the interrupt. PYNQ reads it with ``pynqmetadata``
(``BitstreamHandler.get_parser`` in pynq/pl_server/embedded_device.py). By the processing system's
parameters it sets the clock, and on a Zynq UltraScale+ the widths of both ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement

from vdla.boards.board import Board, BoardError
from vdla.boards.flows import ipxact
from vdla.boards.parts import Processor, processor_of
from vdla.boards.soc import ps7, ps8
from vdla.boards.soc.primitive import Axi
from vdla.hw.verilog import NAME
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.registers import SPACE_BYTES, Register, registers, reset_value
from vdla.isa.svd import ACCESS, as_text

HWH = f"{NAME}.hwh"
CLOCKS = 4  # that a processing system has for the fabric; PYNQ asks for each
MOST_DIVISOR = 63  # of either divider: 6 bits, as pynq/ps.py has them
AXI = "xilinx.com:interface:aximm:1.0"
# The parameter by which pynqmetadata finds a clock's frequency, for a Zynq-7000, too.
FREQUENCY = "PSU__CRL_APB__PL{}_REF_CTRL__ACT_FREQMHZ"


@dataclass(frozen=True)
class System:
    """A processing system in Vivado's words: the IP, the pins that the design takes, parameters.

    ``port`` is the registers'. ``enabled``, ``source`` and ``divider`` are parameters of a clock by
    its number, ``widths`` those of the registers' port and of the memory's, where PYNQ reads any.
    """

    module: str
    version: str
    family: str
    registers: str
    port: Axi
    clock: str
    reset: str
    interrupt: str
    enabled: str
    source: str
    divider: str
    widths: tuple[str, str] | None = None

    @property
    def instance(self) -> str:
        """Name of the instance, as Vivado would give it."""
        return f"{self.module}_0"


SYSTEMS = {
    "PS7": System(
        "processing_system7", "5.5", "zynq", "M_AXI_GP0", ps7.GP0,
        clock="FCLK_CLK0", reset="FCLK_RESET0_N", interrupt="IRQ_F2P",
        enabled="PCW_FPGA_FCLK{}_ENABLE",
        source="PCW_FCLK{}_PERIPHERAL_CLKSRC",
        divider="PCW_FCLK{}_PERIPHERAL_DIVISOR{}",
    ),
    "PS8": System(
        "zynq_ultra_ps_e", "3.3", "zynquplus", "M_AXI_HPM0_FPD", ps8.HPM0,
        clock="pl_clk0", reset="pl_resetn0", interrupt="pl_ps_irq0",
        enabled="PSU__FPGA_PL{}_ENABLE",
        source="PSU__CRL_APB__PL{}_REF_CTRL__SRCSEL",
        divider="PSU__CRL_APB__PL{}_REF_CTRL__DIVISOR{}",
        widths=("C_MAXIGP0_DATA_WIDTH", "C_SAXIGP2_DATA_WIDTH"),
    ),
}  # fmt: skip


def handoff(board: Board, config: Config) -> str:
    """The text of ``vdla.hwh``.

    Raises:
        BoardError: the board has no such processor, or its PLL doesn't make the clock.
    """
    processor = processor_of(board)
    system = SYSTEMS[processor.primitive]
    root = Element("EDKSYSTEM", EDWVERSION="1.2")
    SubElement(root, "SYSTEMINFO", ARCH=system.family, DEVICE=board.device, NAME=NAME)
    for empty in ("EXTERNALPORTS", "EXTERNALINTERFACES"):
        SubElement(root, empty)
    modules = SubElement(root, "MODULES")
    _processor(modules, board, config, processor)
    _core(modules, config, processor)
    return as_text(root)


def identity_parameters(config: Config) -> dict[str, str]:
    """Parameters of the core: the config's name, and what ISA_HASH and CONFIG_HASH read."""
    isa, own = Identity.of(config).words
    return {"CONFIG": config.name, "ISA_HASH": f"{isa:#010x}", "CONFIG_HASH": f"{own:#010x}"}


def dividers(board: Board) -> tuple[int, int]:
    """Two dividers that make the board's clock of its processor's PLL, the greater one first.

    Raises:
        BoardError: none do.
    """
    processor = processor_of(board)
    ratio = processor.pll_hz / board.clock_hz
    for second in range(1, MOST_DIVISOR + 1):
        if ratio % second == 0 and second <= ratio / second <= MOST_DIVISOR:
            return int(ratio // second), second
    raise BoardError(
        f"board {board.name}: expected a clock that two dividers of at most {MOST_DIVISOR} make of "
        f"{processor.pll} at {processor.pll_hz / 1e6:g} MHz, found {board.clock_hz / 1e6:g} MHz"
    )


def _processor(modules: Element, board: Board, config: Config, processor: Processor) -> None:
    system = SYSTEMS[processor.primitive]
    values = _clock_parameters(board, processor)
    if system.widths:
        bits = (system.port.data, 8 * config.port_bytes)
        values |= {name: str(n) for name, n in zip(system.widths, bits, strict=True)}
    vlnv = f"xilinx.com:ip:{system.module}:{system.version}"
    module = _module(modules, system.instance, system.module, vlnv, values)
    module.set("IS_PL", "FALSE")
    ports = SubElement(module, "PORTS")
    _port(ports, system.clock, "O", "clk", NAME, "aclk")
    _port(ports, system.reset, "O", "rst", NAME, "aresetn")
    _port(ports, system.interrupt, "I", "INTERRUPT", NAME, "irq")
    buses = SubElement(module, "BUSINTERFACES")
    _bus(buses, system.registers, "MASTER", ipxact.SLAVE, system.port.data)
    _bus(buses, processor.memory_port, "SLAVE", ipxact.MASTER, 8 * config.port_bytes)
    SubElement(
        SubElement(module, "MEMORYMAP"), "MEMRANGE", ADDRESSBLOCK="registers", INSTANCE=NAME,
        BASEVALUE=f"{processor.registers:#010x}",
        HIGHVALUE=f"{processor.registers + SPACE_BYTES - 1:#010x}",
        MASTERBUSINTERFACE=system.registers, MEMTYPE="REGISTER", SLAVEBUSINTERFACE=ipxact.SLAVE,
    )  # fmt: skip


def _clock_parameters(board: Board, processor: Processor) -> dict[str, str]:
    """Parameters of the fabric's clocks, of which the design takes the first."""
    system, result = SYSTEMS[processor.primitive], dict[str, str]()
    for number in range(CLOCKS):
        result[system.enabled.format(number)] = str(int(number == 0))
        result[system.source.format(number)] = processor.pll
        for which, divider in enumerate(dividers(board)):
            result[system.divider.format(number, which)] = str(divider)
        result[FREQUENCY.format(number)] = f"{board.clock_hz / 1e6:g}"
    return result


def _core(modules: Element, config: Config, processor: Processor) -> None:
    system = SYSTEMS[processor.primitive]
    vlnv = f"{ipxact.VENDOR}:{ipxact.LIBRARY}:{NAME}:{ipxact.VERSION}"
    module = _module(modules, NAME, NAME, vlnv, identity_parameters(config))
    ports = SubElement(module, "PORTS")
    _port(ports, "aclk", "I", "clk", system.instance, system.clock)
    _port(ports, "aresetn", "I", "rst", system.instance, system.reset)
    irq = _port(ports, "irq", "O", "INTERRUPT", system.instance, system.interrupt)
    irq.set("SENSITIVITY", "LEVEL_HIGH")
    buses = SubElement(module, "BUSINTERFACES")
    _bus(buses, ipxact.SLAVE, "SLAVE", ipxact.SLAVE, 32)
    _bus(buses, ipxact.MASTER, "MASTER", ipxact.MASTER, 8 * config.port_bytes)
    block = SubElement(
        SubElement(module, "ADDRESSBLOCKS"), "ADDRESSBLOCK", INTERFACE=ipxact.SLAVE,
        NAME="registers", RANGE=str(SPACE_BYTES), USAGE="register", ACCESS="read-write",
    )  # fmt: skip
    listed = SubElement(block, "REGISTERS")
    for register in registers(config):
        _register(SubElement(listed, "REGISTER", NAME=register.name), register, config)


def _register(element: Element, register: Register, config: Config) -> None:
    access = ACCESS[register.access]
    _properties(
        element, DESCRIPTION=register.doc, ADDRESS_OFFSET=f"{register.offset:#x}", SIZE="32",
        ACCESS=access, IS_ENABLED="true", RESET_VALUE=f"{reset_value(register, config):#x}",
    )  # fmt: skip
    fields = SubElement(element, "FIELDS")
    for bits in register.fields:
        _properties(
            SubElement(fields, "FIELD", NAME=bits.name), DESCRIPTION=bits.doc, ACCESS=access,
            BIT_OFFSET=str(bits.low), BIT_WIDTH=str(bits.width),
        )  # fmt: skip


def _module(
    modules: Element, instance: str, kind: str, vlnv: str, values: dict[str, str]
) -> Element:
    module = SubElement(
        modules, "MODULE", FULLNAME=f"/{instance}", INSTANCE=instance, IPTYPE="PERIPHERAL",
        MODCLASS="PERIPHERAL", MODTYPE=kind, VLNV=vlnv, HWVERSION=vlnv.rpartition(":")[2],
    )  # fmt: skip
    parameters = SubElement(module, "PARAMETERS")
    for name, value in values.items():
        SubElement(parameters, "PARAMETER", NAME=name, VALUE=value)
    return module


def _port(
    ports: Element, name: str, direction: str, kind: str, other: str, other_port: str
) -> Element:
    """A pin that is joined to another module's; both bear the name of the core's."""
    net = name if other != NAME else other_port
    port = SubElement(ports, "PORT", DIR=direction, NAME=name, SIGIS=kind, SIGNAME=f"{NAME}_{net}")
    connections = SubElement(port, "CONNECTIONS")
    SubElement(connections, "CONNECTION", INSTANCE=other, PORT=other_port)
    return port


def _bus(buses: Element, name: str, kind: str, core_bus: str, bits: int) -> None:
    """A port of AXI; the two that are joined bear the name of the core's."""
    SubElement(
        buses, "BUSINTERFACE", BUSNAME=f"{NAME}_{core_bus}", DATAWIDTH=str(bits), NAME=name,
        TYPE=kind, VLNV=AXI,
    )  # fmt: skip


def _properties(element: Element, **values: str) -> None:
    for name, value in values.items():
        SubElement(element, "PROPERTY", NAME=name, VALUE=value)
