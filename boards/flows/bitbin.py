"""A bitstream as Linux's FPGA manager takes it: no header, and each word's bytes turned round.

A ``.bit`` begins with a field of 9 bytes, then the fields a to e: a letter, a length (of 2 bytes,
of 4 for e), and so many bytes. What e holds are words with the highest byte first, which the
processor's port wants the other way, as bootgen's ``-process_bitstream bin`` leaves them.
"""

from __future__ import annotations

import array
import sys
from pathlib import Path

from vdla.boards.board import BoardError

SYNC = bytes.fromhex("aa995566")


def bit_bin(path: Path) -> bytes:
    """The bytes for ``/lib/firmware`` of a ``.bit`` file.

    Raises:
        BoardError: it isn't one.
    """
    words = _words(path.read_bytes(), path)
    if SYNC not in words[:4096] or len(words) % 4:
        raise BoardError(f"{path}: expected whole words with a sync word, found none")
    turned = array.array("I", words)
    turned.byteswap()
    return turned.tobytes()


def _words(content: bytes, path: Path) -> bytes:
    at = 2 + int.from_bytes(content[:2], "big") + 2
    while at < len(content):
        letter, at = content[at : at + 1], at + 1
        size = 4 if letter == b"e" else 2
        length, at = int.from_bytes(content[at : at + size], "big"), at + size
        if letter == b"e" and at + length <= len(content):
            return content[at : at + length]
        at += length
    raise BoardError(f"{path}: expected a bitstream with a field e, found none")


assert array.array("I").itemsize == 4, sys.platform
