"""The register map as CMSIS-SVD, for debuggers and for tools that generate drivers from it."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from vdla.isa.config import Config
from vdla.isa.registers import SPACE_BYTES, VERSION, Register, registers, reset_value

ACCESS = {"ro": "read-only", "rw": "read-write", "wo": "write-only", "w1c": "read-write"}
NAMESPACE = "http://www.w3.org/2001/XMLSchema-instance"


def svd(config: Config, base: int = 0) -> str:
    """The accelerator as a device with one peripheral at ``base``, in CMSIS-SVD 1.3."""
    device = Element("device", {"schemaVersion": "1.3", "xmlns:xs": NAMESPACE})
    device.set("xs:noNamespaceSchemaLocation", "CMSIS-SVD.xsd")
    _texts(
        device,
        name="VDLA",
        version=f"{VERSION >> 16}.{VERSION & 0xFFFF}",
        description=f"VDLA, config {config.name} ({config.hash})",
        addressUnitBits="8",
        width="32",
        size="32",
    )
    peripheral = SubElement(SubElement(device, "peripherals"), "peripheral")
    _texts(peripheral, name="VDLA", description="control and status", baseAddress=f"{base:#010x}")
    _texts(
        SubElement(peripheral, "addressBlock"),
        offset="0x0",
        size=f"{SPACE_BYTES:#x}",
        usage="registers",
    )
    listed = SubElement(peripheral, "registers")
    for register in registers(config):
        _register(SubElement(listed, "register"), register, config)
    return as_text(device)


def as_text(root: Element) -> str:
    """An XML file, indented."""
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _register(element: Element, register: Register, config: Config) -> None:
    _texts(
        element,
        name=register.name,
        description=register.doc,
        addressOffset=f"{register.offset:#x}",
        size="32",
        access=ACCESS[register.access],
        resetValue=f"{reset_value(register, config):#010x}",
    )
    fields = SubElement(element, "fields")
    for bits in register.fields:
        field = SubElement(fields, "field")
        _texts(
            field,
            name=bits.name,
            description=bits.doc,
            bitOffset=str(bits.low),
            bitWidth=str(bits.width),
            access=ACCESS[register.access],
        )
        if register.access == "w1c":
            _texts(field, modifiedWriteValues="oneToClear")


def _texts(parent: Element, **texts: str) -> None:
    for name, text in texts.items():
        SubElement(parent, name).text = text
