"""The core as a packaged IP: ``component.xml`` in IP-XACT, and FuseSoC's ``.core``.

IP-XACT of 2009 (IEEE 1685-2009, namespace ``spirit``): the version that Vivado reads. The order of
elements is the schema's. Bus interfaces are AMD's: aximm for both AXI ports, clock, reset and
interrupt of the ``signal`` library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement

from vdla.boards.board import Board
from vdla.hw.verilog import NAME
from vdla.isa.config import Config
from vdla.isa.registers import SPACE_BYTES, Register, registers, reset_value
from vdla.isa.svd import ACCESS, as_text

Ports = dict[str, tuple[str, int]]

VENDOR, LIBRARY, VERSION = "vdla", "ip", "1.0"
SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"
MASTER, SLAVE = "m_axi", "s_axi"
VERILOG = f"{NAME}.v"


def component(config: Config, verilog: str) -> str:
    """``component.xml`` for the core's Verilog, which lies beside it as ``vdla.v``."""
    root = Element("spirit:component", {"xmlns:spirit": SPIRIT})
    _texts(root, vendor=VENDOR, library=LIBRARY, name=NAME, version=VERSION)
    ports = _ports(verilog)
    buses = _sub(root, "busInterfaces")
    _axi(buses, MASTER, ports, "master")
    _axi(buses, SLAVE, ports, "slave")
    _signal(buses, "aclk", "clock", {"CLK": "aclk"}, "slave", {
        "ASSOCIATED_BUSIF": f"{MASTER}:{SLAVE}", "ASSOCIATED_RESET": "aresetn",
    })  # fmt: skip
    _signal(buses, "aresetn", "reset", {"RST": "aresetn"}, "slave", {"POLARITY": "ACTIVE_LOW"})
    _signal(
        buses, "irq", "interrupt", {"INTERRUPT": "irq"}, "master", {"SENSITIVITY": "LEVEL_HIGH"}
    )
    space = _sub(_sub(root, "addressSpaces"), "addressSpace")
    _texts(space, name=MASTER, range="4G", width=str(8 * config.port_bytes))
    _memory_map(_sub(_sub(root, "memoryMaps"), "memoryMap"), config)
    _model(_sub(root, "model"), ports)
    files = _sub(_sub(root, "fileSets"), "fileSet")
    _texts(files, name="verilog")
    _texts(_sub(files, "file"), name=VERILOG, fileType="verilogSource")
    _texts(root, description=f"VDLA, config {config.name} ({config.hash})")
    return as_text(root)


def fusesoc(board: Board) -> str:
    """``vdla.core``: the core by itself, and the board's design for Vivado."""
    return f"""CAPI=2:
name: {VENDOR}:{LIBRARY}:{NAME}:{VERSION}
description: VDLA, a deep-learning accelerator
filesets:
  core:
    files: [ip/{VERILOG}]
    file_type: verilogSource
  board:
    files:
      - {NAME}.v: {{file_type: verilogSource}}
      - {NAME}.xdc: {{file_type: xdc}}
targets:
  default:
    filesets: [core]
    toplevel: {NAME}
  lint:
    default_tool: verilator
    filesets: [core]
    toplevel: {NAME}
    tools:
      verilator:
        mode: lint-only
  {board.name}:
    default_tool: vivado
    filesets: [board]
    toplevel: {NAME}
    tools:
      vivado:
        part: {board.device}
"""


def _ports(verilog: str) -> Ports:
    """The ports of the Verilog's module ``vdla``: direction and width."""
    result = re.search(rf"^module {NAME}\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    assert result is not None
    return {
        name: (direction, int(high or 0) + 1)
        for direction, high, name in re.findall(
            r"^  (in|out)put (?:\[(\d+):0\] )?(\w+);", result[0], re.MULTILINE
        )
    }


def _axi(buses: Element, name: str, ports: Ports, mode: str) -> None:
    mapped = {
        port.removeprefix(f"{name}_").upper(): port for port in ports if port.startswith(f"{name}_")
    }
    lite = "AWLEN" not in mapped
    parameters = {
        "PROTOCOL": "AXI4LITE" if lite else "AXI4",
        "DATA_WIDTH": str(ports[mapped["WDATA"]][1]),
        "ADDR_WIDTH": str(ports[mapped["AWADDR"]][1]),
    }
    bus = _interface(buses, name, "interface", "aximm", mapped, mode, parameters)
    inner = bus.find(f"spirit:{mode}")
    assert inner is not None
    kind = "memoryMapRef" if mode == "slave" else "addressSpaceRef"
    _sub(inner, kind).set(f"spirit:{kind}", name)


def _signal(
    buses: Element,
    name: str,
    kind: str,
    mapped: Mapping[str, str],
    mode: str,
    parameters: Mapping[str, str],
) -> None:
    _interface(buses, name, "signal", kind, mapped, mode, parameters)


def _interface(
    buses: Element,
    name: str,
    library: str,
    kind: str,
    mapped: Mapping[str, str],
    mode: str,
    parameters: Mapping[str, str],
) -> Element:
    bus = _sub(buses, "busInterface")
    _texts(bus, name=name)
    for tag, suffix in (("busType", ""), ("abstractionType", "_rtl")):
        _identity(_sub(bus, tag), library, kind + suffix)
    _sub(bus, mode)
    maps = _sub(bus, "portMaps")
    for logical, physical in mapped.items():
        port = _sub(maps, "portMap")
        _texts(_sub(port, "logicalPort"), name=logical)
        _texts(_sub(port, "physicalPort"), name=physical)
    values = _sub(bus, "parameters")
    for key, value in parameters.items():
        parameter = _sub(values, "parameter")
        _texts(parameter, name=key, value=value)
    return bus


def _identity(element: Element, library: str, name: str) -> None:
    for key, value in (
        ("vendor", "xilinx.com"),
        ("library", library),
        ("name", name),
        ("version", "1.0"),
    ):
        element.set(f"spirit:{key}", value)


def _memory_map(memory_map: Element, config: Config) -> None:
    _texts(memory_map, name=SLAVE)
    block = _sub(memory_map, "addressBlock")
    _texts(
        block, name="registers", baseAddress="0", range=str(SPACE_BYTES), width="32",
        usage="register",
    )  # fmt: skip
    for register in registers(config):
        _register(_sub(block, "register"), register, config)


def _register(element: Element, register: Register, config: Config) -> None:
    access = ACCESS[register.access]
    _texts(
        element, name=register.name, description=register.doc,
        addressOffset=f"{register.offset:#x}", size="32", access=access,
    )  # fmt: skip
    _texts(_sub(element, "reset"), value=f"{reset_value(register, config):#x}")
    for bits in register.fields:
        field = _sub(element, "field")
        _texts(
            field, name=bits.name, description=bits.doc, bitOffset=str(bits.low),
            bitWidth=str(bits.width), access=access,
        )  # fmt: skip
        if register.access == "w1c":
            _texts(field, modifiedWriteValue="oneToClear")


def _model(model: Element, ports: Ports) -> None:
    views = _sub(model, "views")
    for name, purpose in (("synthesis", "synthesis"), ("simulation", "simulation")):
        view = _sub(views, "view")
        _texts(
            view, name=name, envIdentifier=f"verilogSource:vivado.xilinx.com:{purpose}",
            language="verilog", modelName=NAME,
        )  # fmt: skip
        _texts(_sub(view, "fileSetRef"), localName="verilog")
    listed = _sub(model, "ports")
    for name, (direction, width) in ports.items():
        port = _sub(listed, "port")
        _texts(port, name=name)
        wire = _sub(port, "wire")
        _texts(wire, direction=direction)
        if width > 1:
            _texts(_sub(wire, "vector"), left=str(width - 1), right="0")


def _sub(parent: Element, name: str) -> Element:
    return SubElement(parent, f"spirit:{name}")


def _texts(parent: Element, **texts: str) -> None:
    for name, text in texts.items():
        _sub(parent, name).text = text
