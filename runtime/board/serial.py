"""A board behind a serial line: ``runtime/board/link.py`` has the frames.

A request without a sound answer is sent again, as often as RETRIES; the board does a write once.
"""

from __future__ import annotations

import os
import random
import time
from typing import Any, Protocol

import numpy as np

from vdla.runtime.board import link
from vdla.runtime.board.link import FrameError, Op, Status
from vdla.runtime.board.transport import LinkError, image_bytes
from vdla.runtime.dram import Dram, aligned_bytes
from vdla.runtime.errors import DeviceError
from vdla.support.install import pip_install
from vdla.support.numbers import ceil_div

RETRIES = 6
TAGS = 256  # a request's tag is one byte
ANSWER = 0.5  # seconds until an answer is given up; USB adapters hold bytes back for 16 ms
FRAME_BYTES = link.MOST_WORDS * link.WORD
GRANULE = 64  # bytes: tensors begin at multiples of it, and every port width divides it


class Line(Protocol):
    """Part of ``serial.Serial`` that is needed. ``timeout`` is in seconds."""

    timeout: float | None

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes: what has come when the timeout is over."""
        ...

    def write(self, data: bytes) -> Any:
        """Sends all bytes."""
        ...

    def reset_input_buffer(self) -> None:
        """Throws away what has come and wasn't read."""
        ...

    def close(self) -> None:
        """Lets the port go."""
        ...


class Owner(Protocol):
    """Owner of a line's other end, which lives as long as the line: a virtual board."""

    def close(self) -> object:
        """Ends it."""
        ...


def open_line(port: str, baud: int = link.BAUD) -> Line:
    """Opens a serial port.

    Raises:
        DeviceError: pyserial is missing, or the port is, or it can't be opened.
    """
    try:
        import serial
    except ImportError:
        raise DeviceError(
            "device board: expected the package pyserial, found none; "
            f"install with: {pip_install('boards')}"
        ) from None
    try:
        line: Line = serial.Serial(port, baud, timeout=ANSWER, exclusive=True)
        return line
    except (OSError, ValueError) as error:  # SerialException is an OSError
        number = error.errno if isinstance(error, OSError) else None
        result = os.strerror(number) if number else str(error)
        raise DeviceError(f"port {port}: expected a serial port, found: {result}") from None


def ports() -> dict[str, str]:
    """The serial ports of this machine, and what they say they are."""
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        return {}
    return {port.device: f"{port.manufacturer or ''} {port.product or ''}" for port in comports()}


class SerialTransport:
    """A board's registers and its memory of ``memory_bytes``, over a line.

    ``answer``: seconds to wait for a reply; ``owner``: what has to live as long as the line.
    """

    def __init__(
        self,
        line: Line,
        name: str,
        memory_bytes: int,
        *,
        answer: float = ANSWER,
        owner: Owner | None = None,
    ) -> None:
        self.line, self.name, self.memory_bytes, self.answer = line, name, memory_bytes, answer
        self.owner = owner
        self.tag = random.randrange(TAGS)
        self.sent_again = 0
        line.reset_input_buffer()

    # Registers ---------------------------------------------------------------------------------

    def read(self, offset: int, count: int = 1) -> list[int]:
        """Registers one behind the other."""
        words = self._ask(Op.READ_REGISTERS, offset, count)
        values: list[int] = np.frombuffer(words, "<u4").tolist()
        return values

    def write(self, offset: int, value: int) -> None:
        """Writes a register, once, however often the request had to be sent."""
        self._ask(Op.WRITE_REGISTERS, offset, 1, value.to_bytes(link.WORD, "little"))

    # Memory ------------------------------------------------------------------------------------

    def allocate(self, size: int) -> tuple[Dram, int]:
        """An image on the host; the board's begins at its memory's first byte."""
        return aligned_bytes(image_bytes(self.name, size, self.memory_bytes)), 0

    def upload(self, image: Dram, start: int, stop: int) -> None:
        """Sends these bytes, and what shares a granule with them."""
        for at, end in _frames(start, stop, image.size):
            words = image[at:end].tobytes()
            self._ask(Op.WRITE_MEMORY, at, len(words) // link.WORD, words)

    def release(self, image: Dram, start: int, stop: int) -> None:
        """Does nothing: the image here and the board's memory are two."""

    def download(self, image: Dram, start: int, stop: int) -> None:
        """Fetches these bytes, and what shares a granule with them."""
        for at, end in _frames(start, stop, image.size):
            words = self._ask(Op.READ_MEMORY, at, (end - at) // link.WORD)
            image[at:end] = np.frombuffer(words, np.uint8)

    def close(self) -> None:
        """Lets the port go, and ends what has lived as long as the line."""
        self.line.close()
        if self.owner is not None:
            self.owner.close()

    # Frames ------------------------------------------------------------------------------------

    def _ask(self, op: Op, address: int, count: int, words: bytes = b"") -> bytes:
        """Sends a request until it is answered; the words of the reply."""
        self.tag = (self.tag + 1) % TAGS
        frame = link.request(self.tag, op, address, count, words)
        carries = 0 if words else count
        trouble = "nothing"
        for attempt in range(RETRIES):
            if attempt:
                self.sent_again += 1
                time.sleep(1.5 * link.QUIET)  # by then the board has forgotten half a frame
                self.line.reset_input_buffer()
            try:
                self.line.write(frame)
                status, result = self._answer(count, carries)
            except FrameError as error:
                trouble = str(error)
                continue
            except OSError as error:
                raise LinkError(f"{self.name}: expected an answer, found {error}") from None
            if status == Status.OK:
                return result
            if status != Status.BAD_CHECKSUM:
                what = f"{op.name} of {count} words at {address:#x}"
                raise LinkError(f"{self.name}: expected to do {what}, found {status.name}")
            trouble = "that requests arrive damaged"
        raise LinkError(
            f"{self.name}: expected an answer within {self.answer:g} s, tried {RETRIES} times, "
            f"found {trouble}"
        )

    def _answer(self, count: int, carries: int) -> tuple[Status, bytes]:
        """The reply to the latest request; others are passed over."""
        while True:
            head = self._header()
            tag, status, last = head[1:]
            size = carries * link.WORD if status == Status.OK else 0
            body = link.check(head + self._take(size + link.CHECKSUM))
            if tag == self.tag and status == Status.BAD_CHECKSUM:
                return Status.BAD_CHECKSUM, b""
            if tag == self.tag and last == count - 1 and status in set(Status):
                return Status(status), body[link.REPLY_HEADER :]

    def _header(self) -> bytes:
        """The next four bytes that begin as a reply does."""
        skipped = 0
        while (byte := self._take(1))[0] != link.REPLY_SYNC:
            skipped += 1
            if skipped > 2 * FRAME_BYTES:
                raise FrameError("bytes that are no reply: is it another device, or baud rate?")
        return byte + self._take(link.REPLY_HEADER - 1)

    def _take(self, size: int) -> bytes:
        self.line.timeout = self.answer
        result = self.line.read(size)
        if len(result) < size:
            raise FrameError("nothing" if not result else f"{len(result)} bytes of {size}")
        return result


def _frames(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """The byte ranges of the frames that cover some bytes."""
    start, stop = start // GRANULE * GRANULE, min(ceil_div(stop, GRANULE) * GRANULE, size)
    return [(at, min(at + FRAME_BYTES, stop)) for at in range(start, stop, FRAME_BYTES)]
