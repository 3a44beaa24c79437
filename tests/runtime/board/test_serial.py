"""The serial transport against a board in Python, over lines that lose and damage bytes."""

import os
import sys

import numpy as np
import pytest
from fake_board import FakeLine, Trouble

from vdla.isa.registers import register
from vdla.runtime.board import link, serial
from vdla.runtime.board.link import Status
from vdla.runtime.board.serial import SerialTransport, open_line
from vdla.runtime.board.transport import LinkError
from vdla.runtime.errors import DeviceError
from vdla.support.install import pip_install

SIZE = 1 << 20
BASE = register("PROGRAM_BASE").offset


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(serial.time, "sleep", lambda seconds: None)


def transport(line):
    return SerialTransport(line, "board fake", SIZE)


def exchange(line):
    """Moves an image there, damages it here, and fetches it back."""
    link_ = transport(line)
    image, address = link_.allocate(10_000)
    assert address == 0
    content = np.random.default_rng(1).integers(0, 256, image.size, np.uint8)
    image[:] = content
    link_.upload(image, 100, 9000)
    image[:] = 0
    link_.download(image, 100, 9000)
    assert np.array_equal(image[64:9024], content[64:9024])
    assert not image[:64].any()
    assert not image[9024:].any()
    for value in (3, 2**32 - 1):
        link_.write(BASE, value)
        assert link_.read(BASE) == [value]
    return link_


def test_a_line_without_trouble():
    line = FakeLine()
    assert exchange(line).sent_again == 0
    assert [value for _, value in line.done] == [3, 2**32 - 1]


@pytest.mark.parametrize(("noise", "sent_again"), [(0, 0), (1, 1)])
def test_so_much_noise_is_passed_over(noise, sent_again):
    """Two frames' worth of bytes that are no reply, and not one more, before the reply."""
    line = FakeLine()
    link_ = transport(line)
    line.replies.extend(bytes(2 * serial.FRAME_BYTES + noise))
    assert link_.read(BASE) == [0]
    assert link_.sent_again == sent_again


@pytest.mark.parametrize("kind", ["lose", "flip", "double"])
@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_are_lost_flipped_or_doubled(kind, seed):
    """Whatever happens on the line, nothing wrong is read, and each write is done once."""
    line = FakeLine(spoil=Trouble(0.0003, seed, (kind,)))
    link_ = exchange(line)
    assert link_.sent_again > 0
    assert [value for _, value in line.done] == [3, 2**32 - 1]


def test_a_reply_that_is_lost_does_not_repeat_the_write():
    line, replies = FakeLine(), []

    def lose_first(data):
        if data[0] != link.REPLY_SYNC:
            return data
        replies.append(data)
        return b"" if len(replies) in (2, 3) else data

    link_ = transport(line)
    link_.read(BASE)
    line.spoil = lose_first
    replies.append(b"")
    link_.write(BASE, 77)
    assert link_.sent_again == 2
    assert [value for _, value in line.done] == [77]


@pytest.mark.parametrize(("status", "words"), [
    (Status.OK, bytes(4)), (Status.BAD_CHECKSUM, b""), (Status.BAD_ADDRESS, b""),
])  # fmt: skip
def test_an_answer_to_another_request_is_passed_over(status, words):
    line = FakeLine()
    link_ = transport(line)
    line.set("PROGRAM_BASE", 5)
    late = link.reply((link_.tag + 3) % 256, status, 1, words)
    line.spoil = lambda data: late + data if data[0] == link.REPLY_SYNC else data
    assert link_.read(BASE) == [5]
    assert link_.sent_again == 0


def test_a_request_whose_count_is_damaged_is_known_as_damaged():
    """The board answers with the count that it has understood."""
    line = FakeLine(spoil=lambda data: data[:3] + b"\x02" + data[4:] + bytes(9)
                    if data[0] == link.REQUEST_SYNC else data)  # fmt: skip
    with pytest.raises(LinkError, match="found that requests arrive damaged"):
        transport(line).write(BASE, 3)


def test_tags_count_up_and_begin_anew_after_a_byte_is_full():
    line, tags = FakeLine(), []
    link_ = transport(line)
    line.spoil = lambda data: tags.append(data[1]) or data
    for _ in range(300):
        link_.read(BASE)
    requests, replies = tags[::2], tags[1::2]
    assert requests == replies
    assert requests == [(requests[0] + i) % 256 for i in range(300)]


def test_a_request_sent_again_has_its_tag_and_a_board_that_forgot_the_first(monkeypatch):
    """A pause longer than the board's QUIET, and not much longer; then what came late is old."""
    line, sent, pauses = FakeLine(), [], []
    link_ = transport(line)
    line.spoil = lambda data: sent.append(data) or b""
    monkeypatch.setattr(serial.time, "sleep", pauses.append)
    with pytest.raises(LinkError):
        link_.read(BASE)
    assert len(sent) == serial.RETRIES
    assert len(set(sent)) == 1
    assert len(pauses) == serial.RETRIES - 1
    assert all(link.QUIET < pause <= 2 * link.QUIET for pause in pauses)


@pytest.mark.parametrize(("spoil", "found"), [
    (lambda data: b"", "found nothing"),
    (lambda data: data[:3] if data[0] == link.REPLY_SYNC else data, "found 2 bytes of 3"),
    (lambda data: b"\x00" * 9000 if data[0] == link.REPLY_SYNC else data,
     "found bytes that are no reply: is it another device, or baud rate?"),
    (lambda data: data[:-1] + bytes([data[-1] ^ 1]) if data[0] == link.REQUEST_SYNC else data,
     "found that requests arrive damaged"),
])  # fmt: skip
def test_a_board_that_never_answers_well(spoil, found):
    line = FakeLine(spoil=spoil)
    with pytest.raises(LinkError) as caught:
        transport(line).read(BASE)
    expected = "board fake: expected an answer within 0.5 s, tried 6 times, "
    assert str(caught.value) == expected + found


def test_a_place_that_is_not_there():
    link_ = transport(FakeLine(memory=4096))
    image, _ = link_.allocate(8192)
    with pytest.raises(LinkError) as caught:
        link_.upload(image, 0, 8192)
    message = "board fake: expected to do WRITE_MEMORY of 256 words at 0x1000, found BAD_ADDRESS"
    assert str(caught.value) == message


def test_a_module_may_take_all_of_the_memory():
    image, _ = transport(FakeLine()).allocate(SIZE)
    assert image.size == SIZE


def test_a_module_that_is_too_large():
    with pytest.raises(DeviceError) as caught:
        transport(FakeLine()).allocate(SIZE + 1)
    assert str(caught.value) == (
        "board fake: expected a module of at most 1,048,576 bytes of DRAM, found one of 1,052,672"
    )


def test_a_port_that_is_not_there_or_no_port(tmp_path):
    with pytest.raises(DeviceError) as caught:
        open_line("/dev/no-such-port")
    message = "port /dev/no-such-port: expected a serial port, found: No such file or directory"
    assert str(caught.value) == message
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match="expected a serial port, found"):
        open_line(os.fspath(tmp_path / "file"))


def test_a_port_is_opened_for_one_alone():
    """A pseudo-terminal, in the place of an adapter."""
    ours, theirs = os.openpty()
    try:
        port = os.ttyname(theirs)
        line = open_line(port)
        assert (line.baudrate, line.timeout) == (link.BAUD, serial.ANSWER)
        with pytest.raises(DeviceError, match=f"^port {port}: expected a serial port, found: "):
            open_line(port)
        line.close()
        open_line(port, 115200).close()
    finally:
        os.close(ours)
        os.close(theirs)


def test_without_pyserial(monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(DeviceError) as caught:
        open_line("/dev/ttyUSB0")
    assert str(caught.value) == (
        "device board: expected the package pyserial, found none; "
        f"install with: {pip_install('boards')}"
    )


def test_a_closed_transport_lets_its_port_go():
    """It ends what lives as long as the line, too: a virtual board."""

    class Owner:
        ended = False

        def close(self):
            self.ended = True

    ours, theirs = os.openpty()
    try:
        port, owner = os.ttyname(theirs), Owner()
        transport = SerialTransport(open_line(port), "board fake", SIZE, owner=owner)
        transport.close()
        assert owner.ended
        open_line(port).close()
    finally:
        os.close(ours)
        os.close(theirs)
