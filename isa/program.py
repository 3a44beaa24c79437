"""The program container: an instruction stream with the data it needs, for one config.

    offset  size  what
    0       8     magic "VDLAPROG"
    8       2     format version
    10      2     bytes per instruction
    12      4     ISA hash
    16      4     config hash
    20      4     byte address of the stream in DRAM
    24      4     instructions
    28      4     data segments
    32      …     instructions, then per segment: address (4), length (4), bytes
    end-4   4     CRC-32 of everything before

Integers are little-endian, hashes are the bytes that their hex digits say. A device refuses a
program whose hashes are not its own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vdla.isa.config import Config
from vdla.isa.encoding import decode
from vdla.isa.fields import EncodingError
from vdla.isa.identity import isa_hash, other_isa
from vdla.isa.instructions import Instruction, instruction_bytes
from vdla.support.errors import UserError

MAGIC = b"VDLAPROG"
VERSION = 2
_HEADER = struct.Struct("<8sHH4s4sIII")
HEADER_BYTES = _HEADER.size
_SEGMENT = struct.Struct("<II")
_CRC = struct.Struct("<I")


class ProgramError(UserError):
    """A program container that is damaged, foreign, or for another instruction set or config."""


@dataclass
class Program:
    """Decoded instructions, the DRAM address they run from, and DRAM data they rely on."""

    config: Config
    instructions: Sequence[Instruction]
    base: int = 0
    data: Mapping[int, bytes] = field(default_factory=dict)

    def stream(self) -> bytes:
        """The instruction stream as it lies in DRAM."""
        return b"".join(i.encode(self.config) for i in self.instructions)

    def to_bytes(self) -> bytes:
        """The container."""
        size = instruction_bytes(self.config)
        header = _HEADER.pack(
            MAGIC,
            VERSION,
            size,
            bytes.fromhex(isa_hash(self.config)),
            bytes.fromhex(self.config.hash),
            self.base,
            len(self.instructions),
            len(self.data),
        )
        segments = (_SEGMENT.pack(at, len(raw)) + raw for at, raw in sorted(self.data.items()))
        body = header + self.stream() + b"".join(segments)
        return body + _CRC.pack(zlib.crc32(body))

    @classmethod
    def from_bytes(cls, raw: bytes, config: Config, where: str = "program") -> Program:
        """Reads a container for ``config``.

        Raises:
            ProgramError: not a program, another version, truncated, damaged, another config.
        """
        _check_envelope(raw, config, where)
        *_, size, _, _, base, n, segments = _HEADER.unpack_from(raw)
        at, end = _HEADER.size, len(raw) - _CRC.size
        if at + n * size > end:
            raise ProgramError(f"{where}: expected {n} instructions, found a shorter file")
        instructions = []
        for i in range(n):
            try:
                instructions.append(decode(raw[at : at + size], config, f"instruction {i}: "))
            except EncodingError as error:
                raise ProgramError(f"{where}: {error}") from None
            at += size
        data = {}
        for _ in range(segments):
            if at + _SEGMENT.size > end:
                raise ProgramError(f"{where}: expected {segments} segments, found a shorter file")
            address, length = _SEGMENT.unpack_from(raw, at)
            at += _SEGMENT.size
            data[address] = raw[at : at + length]
            at += length
        if at != end:
            raise ProgramError(f"{where}: expected {at + _CRC.size} bytes, found {len(raw)}")
        return cls(config, instructions, base, data)


def _check_envelope(raw: bytes, config: Config, where: str) -> None:
    if raw[: len(MAGIC)] != MAGIC:
        raise ProgramError(f"{where}: expected a VDLA program, found other content")
    if len(raw) < _HEADER.size + _CRC.size:
        raise ProgramError(
            f"{where}: expected at least {_HEADER.size + _CRC.size} bytes, found {len(raw)}"
        )
    _, version, size, isa, config_hash, *_ = _HEADER.unpack_from(raw)
    if version != VERSION:
        raise ProgramError(f"{where}: expected format version {VERSION}, found {version}")
    (crc,) = _CRC.unpack_from(raw, len(raw) - _CRC.size)
    if crc != zlib.crc32(raw[: -_CRC.size]):
        raise ProgramError(f"{where}: expected checksum {crc:08x}, found a damaged file")
    if isa.hex() != isa_hash(config):
        raise ProgramError(f"{where}: {other_isa(isa_hash(config), isa.hex())}")
    if config_hash.hex() != config.hash:
        raise ProgramError(
            f"{where}: expected a program for config {config.name} ({config.hash}), "
            f"found one for {config_hash.hex()}"
        )
    if size != instruction_bytes(config):
        raise ProgramError(
            f"{where}: expected {instruction_bytes(config)}-byte instructions, found {size}"
        )
