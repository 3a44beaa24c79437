"""The serial link between a host and a board: frames of bytes, checked, each acted upon once.

Request::

    sync 0x56 | tag | op | count - 1 | address, 4 bytes | words, for a write | CRC-32, 4 bytes

Reply::

    sync 0x76 | tag | status | count - 1 | words, for a read that went well | CRC-32, 4 bytes

Numbers are little-endian. ``count`` is the words of 4 bytes to read or to write, 1 to 256. The CRC
(ISO-HDLC, as zlib's and Ethernet's) covers a frame's bytes from its sync on.

1. The host sends one request and waits for the reply with its tag; without one it sends the same
   bytes again. A write that comes with the tag of the request before it has been done already: it
   is answered as that one was, and does nothing. So a lost reply never makes START act twice.
2. The board acts on a request once its CRC holds; otherwise it answers BAD_CHECKSUM, and the host
   sends it again. Bytes before a sync are passed over.
3. A board that has waited QUIET seconds for the rest of a frame forgets it and waits for a sync.
4. Addresses of registers and memory are multiples of 4, of memory multiples of ``port_bytes``; a
   memory access is whole beats. Anything else, or a place that isn't there, is BAD_ADDRESS.
"""

from __future__ import annotations

import zlib
from enum import IntEnum

REQUEST_SYNC = 0x56
REPLY_SYNC = 0x76
REQUEST_HEADER = 8  # bytes
REPLY_HEADER = 4
CHECKSUM = 4
WORD = 4
MOST_WORDS = 256
QUIET = 0.02  # seconds; USB adapters leave gaps of some milliseconds
BAUD = 3_000_000


class Op(IntEnum):
    """Operation that a request asks for."""

    READ_REGISTERS = 0
    WRITE_REGISTERS = 1
    READ_MEMORY = 2
    WRITE_MEMORY = 3


class Status(IntEnum):
    """Status of an answer."""

    OK = 0
    BAD_CHECKSUM = 1
    BAD_OP = 2
    BAD_ADDRESS = 3


class FrameError(ValueError):
    """Bytes that are no whole, sound reply."""


def request(tag: int, op: Op, address: int, count: int, words: bytes = b"") -> bytes:
    """A request's bytes; ``words`` for a write only."""
    head = bytes([REQUEST_SYNC, tag, op, count - 1]) + address.to_bytes(4, "little")
    return sealed(head + words)


def reply(tag: int, status: int, count: int, words: bytes = b"") -> bytes:
    """A reply's bytes."""
    return sealed(bytes([REPLY_SYNC, tag, status, count - 1]) + words)


def sealed(frame: bytes) -> bytes:
    """A frame with its checksum."""
    return frame + zlib.crc32(frame).to_bytes(CHECKSUM, "little")


def check(frame: bytes) -> bytes:
    """A frame without its checksum.

    Raises:
        FrameError: they don't go together.
    """
    body, result = frame[:-CHECKSUM], int.from_bytes(frame[-CHECKSUM:], "little")
    if zlib.crc32(body) != result:
        raise FrameError(f"expected checksum {zlib.crc32(body):08x}, found {result:08x}")
    return body
