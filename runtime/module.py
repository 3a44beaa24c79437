"""The ``.vdla`` file: everything a device and its host need to run one network.

Layout, little-endian, without gaps, so that every byte is covered by a check::

    magic     8 bytes   b"VDLAMOD\\n"
    version   u32       FORMAT_VERSION
    length    u32       bytes of the header
    crc       u32       CRC-32 of the header
    header    JSON      see Module.header; blanks behind it align what follows
    sections            one behind another: the table, constants, host code, the text of its
                        functions, source of kernels, one per accelerator program, one per ONNX
                        model, one per code for another package's target

The header lists each section's name, size and CRC-32 in file order. The table says in numbers what
``runtime/c`` needs of the header (``table.py``).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vdla.isa.identity import Identity
from vdla.runtime import kernels, plan, values
from vdla.runtime.contents import NOBODY, Contents, HostCode, TensorInfo
from vdla.runtime.errors import ModuleError
from vdla.runtime.header import check_header
from vdla.runtime.table import ALIGN, CONSTANTS, HOST_CODE, PROGRAM, table_of
from vdla.support.files import write_bytes
from vdla.support.json_text import read_json
from vdla.support.tables import html_table

__all__ = ["NOBODY", "HostCode", "Module", "TensorInfo"]

MAGIC = b"VDLAMOD\n"
FORMAT_VERSION = 8
PREFIX = struct.Struct("<8sIII")
TABLE, SOURCE, KERNELS = "table", "functions", "kernels"
EXTERNAL, OUTSIDE = "onnx:", "outside:"  # what names of others begin with, beside PROGRAM


@dataclass(repr=False)
class Module(Contents):
    """A compiled network, which is read from a file and written to one."""

    def __repr__(self) -> str:
        inputs, outputs = (
            ", ".join(f"{name}: {self.tensors[name]}" for name in names)
            for names in (self.inputs, self.outputs)
        )
        where = f" for {self.config['name']}" if self.accelerated else ""
        sizes = f"{len(self.steps)} steps, {self.dram_bytes:,} bytes of memory"
        return f"Module({inputs} -> {outputs}{where}; {sizes})"

    def _repr_html_(self) -> str:
        """Table of where each operator runs, as a notebook shows it."""
        placement = self.metadata.get("placement", [])
        columns = ("operator", "kind", "device", "reason")
        rows = [[row["name"], row["op"], row["device"], row["reason"]] for row in placement]
        return html_table(repr(self), columns, rows)

    def header(self) -> dict[str, Any]:
        """JSON header of the file, sections left out."""
        host = self.host
        return {
            "config": self.config,
            "isa_hash": self.identity.isa,
            "config_hash": self.identity.config,
            "tensors": {
                name: {"shape": list(t.shape), "dtype": t.dtype, "offset": t.offset}
                for name, t in self.tensors.items()
            },
            "inputs": self.inputs,
            "outputs": self.outputs,
            "dram_bytes": self.dram_bytes,
            "steps": [plan.to_json(step) for step in self.steps],
            "host": host
            and {
                "triple": host.triple,
                "cpu": host.cpu,
                "features": host.features,
                "functions": {name: list(sizes) for name, sizes in host.functions.items()},
            },
            "kernels": self.kernels and kernels.to_json(self.kernels),
            "metadata": self.metadata,
            "arguments": {name: values.to_json(v) for name, v in self.arguments.items()},
            "values": [[name, values.to_json(v)] for name, v in self.values.items()],
        }

    def to_bytes(self) -> bytes:
        """The file's contents."""
        sections = self._sections()
        sections = {TABLE: table_of(self, [*sections.items()]), **sections}
        table = [
            {"name": name, "size": len(data), "crc32": zlib.crc32(data)}
            for name, data in sections.items()
        ]
        header = json.dumps({**self.header(), "sections": table}, sort_keys=True)
        return _file(header, sections.values())

    def packed(self) -> bytes:
        """The file's contents for ``runtime/c`` alone: without header and host code, which is
        linked beside it."""
        sections = {
            name: data
            for name, data in self._sections().items()
            if name == CONSTANTS or name.startswith(PROGRAM)
        }
        return _file("{}", (table_of(self, [*sections.items()]), *sections.values()))

    def _sections(self) -> dict[str, bytes]:
        """The sections behind the table."""
        sections = {CONSTANTS: self.constants}
        if self.host:
            sections[HOST_CODE] = self.host.code
            if self.host.source:
                sections[SOURCE] = self.host.source
        if self.kernels:
            sections[KERNELS] = self.kernels.source.encode()
        sections.update({PROGRAM + name: code for name, code in self.programs.items()})
        sections.update({EXTERNAL + name: model for name, model in self.external.items()})
        sections.update({OUTSIDE + name: code for name, code in self.outside.items()})
        return sections

    def save(self, path: str | Path) -> None:
        """Writes the file, whole or not at all."""
        path = Path(path)
        try:
            write_bytes(path, self.to_bytes())
        except OSError as error:
            raise ModuleError(
                f"{path}: expected a place to write, found {error.strerror}"
            ) from None

    @staticmethod
    def load(path: str | Path, *, sealed: bool = False) -> Module:
        """Reads a file. One that is ``sealed`` is known to be as ``save`` wrote it: no validator
        of its header is made, which takes a tenth of a second.

        Raises:
            ModuleError: there is none, or it is no module, of another version, cut or damaged.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ModuleError(f"{path}: expected a vdla module, found {error.strerror}") from None
        return Module.from_bytes(data, str(path), sealed=sealed)

    @staticmethod
    def from_bytes(data: bytes, where: str = "module", *, sealed: bool = False) -> Module:
        """Reads a module from a file's contents; ``where`` opens the messages of errors."""
        header, start = _read_header(data, where)
        if not sealed:
            check_header(header, where)
        try:
            sections = _read_sections(data, start, header["sections"], where)
            return _module(header, sections)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, ModuleError):
                raise
            what = f"{type(error).__name__} {error}"
            raise ModuleError(f"{where}: expected a complete header, found {what}") from None


def _file(header: str, sections: Iterable[bytes]) -> bytes:
    """A file of a header and sections, the first of which is aligned."""
    text = header.encode()
    text += b" " * (-(PREFIX.size + len(text)) % ALIGN)
    prefix = PREFIX.pack(MAGIC, FORMAT_VERSION, len(text), zlib.crc32(text))
    return b"".join((prefix, text, *sections))


def _read_header(data: bytes, where: str) -> tuple[dict[str, Any], int]:
    if data[: len(MAGIC)] != MAGIC:
        result = repr(data[: len(MAGIC)]) if data else "an empty file"
        raise ModuleError(f"{where}: expected a vdla module ({MAGIC!r}), found {result}")
    if len(data) < PREFIX.size:
        raise _truncated(where, PREFIX.size, len(data))
    _, version, length, crc = PREFIX.unpack_from(data)
    if version != FORMAT_VERSION:
        raise ModuleError(
            f"{where}: expected module format {FORMAT_VERSION}, found format {version}"
        )
    end = PREFIX.size + length
    if len(data) < end:
        raise _truncated(where, end, len(data))
    header = data[PREFIX.size : end]
    _check_crc(where, "header", crc, header)
    try:
        value = read_json(header)
    except ValueError as error:
        raise ModuleError(f"{where}: expected a JSON header, found {error}") from None
    if not isinstance(value, dict):
        raise ModuleError(f"{where}: header: expected a JSON object, found {type(value).__name__}")
    return value, end


def _read_sections(
    data: bytes, start: int, table: list[dict[str, Any]], where: str
) -> dict[str, bytes]:
    total = start + sum(entry["size"] for entry in table)
    if len(data) < total:
        raise _truncated(where, total, len(data))
    if len(data) > total:
        raise ModuleError(f"{where}: expected {total} bytes, found {len(data)}")
    sections: dict[str, bytes] = {}
    for entry in table:
        end = start + entry["size"]
        sections[entry["name"]] = data[start:end]
        _check_crc(where, f"section {entry['name']}", entry["crc32"], data[start:end])
        start = end
    return sections


def _truncated(where: str, expected: int, actual: int) -> ModuleError:
    return ModuleError(f"{where}: expected at least {expected} bytes, found {actual}: truncated")


def _check_crc(where: str, what: str, expected: int, data: bytes) -> None:
    result = zlib.crc32(data)
    if result != expected:
        raise ModuleError(f"{where}: {what}: expected checksum {expected:08x}, found {result:08x}")


def _named(sections: dict[str, bytes], prefix: str) -> dict[str, bytes]:
    return {n.removeprefix(prefix): data for n, data in sections.items() if n.startswith(prefix)}


def _host_code(sections: dict[str, bytes], header: dict[str, Any]) -> HostCode:
    functions = {name: tuple(map(int, sizes)) for name, sizes in header["functions"].items()}
    machine = header["triple"], header["cpu"], header["features"]
    return HostCode(sections[HOST_CODE], *machine, functions, sections.get(SOURCE, b""))


def _module(header: dict[str, Any], sections: dict[str, bytes]) -> Module:
    host, launched = header["host"], header["kernels"]
    return Module(
        tensors={
            name: TensorInfo(tuple(map(int, t["shape"])), t["dtype"], int(t["offset"]))
            for name, t in header["tensors"].items()
        },
        inputs=header["inputs"],
        outputs=header["outputs"],
        dram_bytes=int(header["dram_bytes"]),
        steps=tuple(map(plan.from_json, header["steps"])),
        constants=sections[CONSTANTS],
        host=host and _host_code(sections, host),
        kernels=launched and kernels.from_json(launched, sections[KERNELS].decode()),
        programs=_named(sections, PROGRAM),
        external=_named(sections, EXTERNAL),
        outside=_named(sections, OUTSIDE),
        config=header["config"],
        identity=Identity(header["isa_hash"], header["config_hash"]),
        metadata=header["metadata"],
        arguments={n: values.from_json(v) for n, v in header["arguments"].items()},
        values={n: values.from_json(v) for n, v in header["values"]},
    )
