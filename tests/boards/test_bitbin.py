"""``.bit`` to ``.bit.bin``: the FPGA manager's form."""

import pytest

from vdla.boards.board import BoardError
from vdla.boards.flows.bitbin import bit_bin

SYNC = bytes.fromhex("aa995566")


def bit(words, fields=((b"a", b"vdla;UserID=0\0"), (b"b", b"7z020\0"), (b"d", b"12:00:00\0"))):
    """A ``.bit`` file's bytes."""
    head = (9).to_bytes(2, "big") + b"\x0f\xf0" * 4 + b"\0" + (1).to_bytes(2, "big")
    for letter, content in fields:
        head += letter + len(content).to_bytes(2, "big") + content
    return head + b"e" + len(words).to_bytes(4, "big") + words


def test_the_header_goes_and_words_turn_round(tmp_path):
    path = tmp_path / "vdla.bit"
    path.write_bytes(bit(b"\xff" * 8 + SYNC + b"\x20\x00\x00\x01"))
    assert bit_bin(path) == b"\xff" * 8 + bytes.fromhex("665599aa") + b"\x01\x00\x00\x20"


def test_the_hour_it_was_made_doesnt_show(tmp_path):
    made = []
    for hour in (b"12:00:00\0", b"13:30:00\0"):
        path = tmp_path / "vdla.bit"
        path.write_bytes(bit(SYNC * 3, ((b"d", hour),)))
        made.append(bit_bin(path))
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a bitstream with a field e, found none"),
        (b"\0" * 40, "expected a bitstream with a field e, found none"),
        (bit(SYNC * 9)[:-4], "expected a bitstream with a field e, found none"),
        (bit(b"\0" * 64), "expected whole words with a sync word, found none"),
        (bit(SYNC + b"\0"), "expected whole words with a sync word, found none"),
    ],
)
def test_what_isnt_a_bitstream_is_said_to_be_none(tmp_path, content, message):
    path = tmp_path / "vdla.bit"
    path.write_bytes(content)
    with pytest.raises(BoardError, match=f"^{path}: {message}$"):
        bit_bin(path)
