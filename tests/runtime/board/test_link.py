"""The serial link's frames."""

import zlib

import pytest

from vdla.runtime.board import link
from vdla.runtime.board.link import FrameError, Op, Status


def test_a_request_byte_by_byte():
    frame = link.request(7, Op.WRITE_MEMORY, 0x1234_5678, 2, b"abcdefgh")
    assert frame[:8] == bytes([0x56, 7, 3, 1, 0x78, 0x56, 0x34, 0x12])
    assert frame[8:16] == b"abcdefgh"
    assert frame[16:] == zlib.crc32(frame[:16]).to_bytes(4, "little")


def test_a_reply_byte_by_byte():
    frame = link.reply(9, Status.OK, 256, bytes(1024))
    assert frame[:4] == bytes([0x76, 9, 0, 255])
    assert link.check(frame) == frame[:-4]


@pytest.mark.parametrize("at", range(12))
def test_any_flipped_bit_is_found(at):
    frame = bytearray(link.request(1, Op.READ_REGISTERS, 0x50, 2))
    frame[at] ^= 0x10
    with pytest.raises(FrameError, match="expected checksum"):
        link.check(bytes(frame))
