"""Patterns in a board's memory, written and read back by the host: data lines, then addresses.

Places of GRANULE bytes lie all over the memory, in pairs that differ in one bit of their address,
so each line of address and data is 0 and 1. Not all bytes are tested: a serial line takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vdla.analysis.first_check.session import Figures, Session, StepFailure
from vdla.analysis.first_check.suspects import (
    WORD_BITS,
    WrongWord,
    address_suspects,
    corner_places,
    data_suspects,
    set_bits,
)
from vdla.runtime.board.serial import GRANULE
from vdla.runtime.dram import Dram

Words = NDArray[np.uint32]
PLACES = 160  # of GRANULE bytes; six passes over them take seconds over a line
SHARED_BYTES = 16 << 20  # of the memory that a board's processor shares
SEED = 1  # of random places and words
WORD_BYTES = WORD_BITS // 8
WORDS = GRANULE // WORD_BYTES


def check_memory(session: Session) -> Figures:
    """The places that were tested, and how many bytes they are spread over.

    Raises:
        StepFailure: a word isn't what was written; names the first, the bits, and what these point
            at.
        DeviceError: the board has less memory, or doesn't answer.
    """
    return _MemoryTest(session).run()


def places_of(session: Session, size: int) -> list[int]:
    """Addresses of granules in ``size`` bytes: corners and random ones, ascending."""
    result = set(corner_places(session.config.memory, size, GRANULE))
    rng = np.random.default_rng(SEED)
    while len(result) < min(PLACES, size // GRANULE):
        result.add(int(rng.integers(size // GRANULE)) * GRANULE)
    return sorted(result)


def walking_ones(places: Sequence[int]) -> Iterator[Words]:
    """A one that walks through the bits of words, then a zero among ones: a granule's words."""
    for number in range(len(places)):
        bits = (np.arange(WORDS, dtype=np.uint32) + number * WORDS) % WORD_BITS
        ones = np.left_shift(np.uint32(1), bits)
        yield ones if number // (WORD_BITS // WORDS) % 2 == 0 else ~ones


def own_addresses(places: Sequence[int]) -> Iterator[Words]:
    """Words that hold their own byte address."""
    for at in places:
        yield np.arange(at, at + GRANULE, WORD_BYTES, dtype=np.uint32)


def random_words(places: Sequence[int]) -> Iterator[Words]:
    """Random words, the same for each test."""
    rng = np.random.default_rng(SEED)
    for _ in places:
        yield rng.integers(0, 1 << WORD_BITS, WORDS, np.uint32)


class _MemoryTest:
    """A test of a session's memory, with an image of it."""

    def __init__(self, session: Session) -> None:
        self.session, self.memory = session, session.config.memory
        self.size = session.board.memory_bytes
        if session.board.transport == "axi":
            self.size = min(self.size, SHARED_BYTES)
        self.places = places_of(session, self.size)
        self.figures: dict[str, object] = {
            "memory_bytes": self.size,
            "tested_bytes": len(self.places) * GRANULE,
            "seed": SEED,
        }
        self.image: Dram = session.transport.allocate(self.size)[0]

    def run(self) -> Figures:
        """Walking ones, each read at once, so that no address line matters; then the others, read
        when all places are written."""
        self._one_by_one("walking ones", walking_ones(self.places))
        tested = {at + i for at in self.places for i in range(0, GRANULE, WORD_BYTES)}

        def of_lines(wrong: Sequence[WrongWord]) -> list[str]:
            return address_suspects(self.memory, wrong, tested)

        self._all_at_once("address in word", own_addresses, of_lines)
        self._all_at_once("random words", random_words, self._of_data)
        return self.figures

    def _one_by_one(self, pattern: str, contents: Iterator[Words]) -> None:
        wrong: list[WrongWord] = []
        for number, (at, words) in enumerate(zip(self.places, contents, strict=True)):
            self.session.progress(pattern, number, len(self.places))
            self._write(at, words)
            wrong += self._wrong(at, words)
        self._judge(pattern, wrong, self._of_data)

    def _all_at_once(
        self,
        pattern: str,
        contents: Callable[[Sequence[int]], Iterator[Words]],
        suspects: Callable[[Sequence[WrongWord]], list[str]],
    ) -> None:
        wrong: list[WrongWord] = []
        steps = 2 * len(self.places)
        for number, (at, words) in enumerate(zip(self.places, contents(self.places), strict=True)):
            self.session.progress(pattern, number, steps)
            self._write(at, words)
        for number, (at, words) in enumerate(zip(self.places, contents(self.places), strict=True)):
            self.session.progress(pattern, len(self.places) + number, steps)
            wrong += self._wrong(at, words)
        self._judge(pattern, wrong, suspects)

    def _of_data(self, wrong: Sequence[WrongWord]) -> list[str]:
        return data_suspects(self.memory, wrong)

    def _write(self, at: int, words: Words) -> None:
        self.image[at : at + GRANULE] = words.view(np.uint8)
        self.session.transport.upload(self.image, at, at + GRANULE)

    def _wrong(self, at: int, words: Words) -> list[WrongWord]:
        """The words of a granule that aren't what was written."""
        self.session.transport.download(self.image, at, at + GRANULE)
        actual = self.image[at : at + GRANULE].view(np.uint32)
        return [
            WrongWord(at + WORD_BYTES * int(i), int(words[i]), int(actual[i]))
            for i in np.flatnonzero(actual != words)
        ]

    def _judge(
        self,
        pattern: str,
        wrong: Sequence[WrongWord],
        suspects: Callable[[Sequence[WrongWord]], list[str]],
    ) -> None:
        """Raises StepFailure if a word is wrong."""
        if not wrong:
            return
        figures = self.figures | {
            "pattern": pattern,
            "wrong_words": len(wrong),
            **_first(wrong[0]),
            "suspects": (lines := suspects(wrong)),
        }
        raise StepFailure(self._text(pattern, wrong, lines), figures)

    def _text(self, pattern: str, wrong: Sequence[WrongWord], lines: Collection[str]) -> str:
        first, words = wrong[0], len(self.places) * WORDS
        bits = ", ".join(map(str, set_bits(first.bits)))
        points = " and ".join(lines) or "no single line"
        return (
            f"{self.session.transport.name}: {pattern}: expected {first.expected:#010x} at byte "
            f"{first.address:#x} of memory, found {first.actual:#010x}: other bits {bits}; "
            f"{len(wrong):,} of {words:,} words differ, which points at {points}"
        )


def _first(word: WrongWord) -> Mapping[str, object]:
    """Figures of the first wrong word."""
    return {
        "address": word.address,
        "written": f"{word.expected:#010x}",
        "read": f"{word.actual:#010x}",
        "bits": set_bits(word.bits),
    }
