"""Suspects for wrong words of a memory: the address line or data bit that they point at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from vdla.isa.memory import Banks, Memory

WORD_BITS = 32
MOST_SUSPECTS = 2  # more lines than these are no line's fault


class WrongWord(NamedTuple):
    """A word of memory that isn't what was written: its byte address, and both values."""

    address: int
    expected: int
    actual: int

    @property
    def bits(self) -> int:
        """The bits that differ."""
        return self.expected ^ self.actual


def set_bits(value: int) -> list[int]:
    """The numbers of the bits that are 1."""
    return [bit for bit in range(value.bit_length()) if value >> bit & 1]


def data_suspects(memory: Memory, wrong: Sequence[WrongWord]) -> list[str]:
    """Data lines, where wrong bits are in few of them."""
    lanes = _lanes(memory)
    lines = {bit % lanes for word in wrong for bit in set_bits(word.bits)}
    if len(lines) > MOST_SUSPECTS:
        return []
    what = "data line DQ" if memory.banks else "data bit "
    return [f"{what}{line}" for line in sorted(lines)]


def address_suspects(
    memory: Memory, wrong: Sequence[WrongWord], addresses: Collection[int]
) -> list[str]:
    """Address lines, where each wrong word is another place's and all of these are few bits away.

    Words hold their own addresses, all of which are in ``addresses``.
    """
    if not all(word.actual in addresses for word in wrong):
        return []
    bits = set_bits(reduce(or_, (word.bits for word in wrong), 0))
    if len(bits) > MOST_SUSPECTS:
        return []
    return [_address_bit(memory, bit) for bit in bits]


def _address_bit(memory: Memory, bit: int) -> str:
    """A bit of a byte address, and the pin of an SDRAM that it comes to."""
    text = f"address bit {bit}"
    if memory.banks is None:
        return text
    return f"{text} ({_pin(memory.banks, _lanes(memory) // 8, bit)})"


def _pin(banks: Banks, word_bytes: int, bit: int) -> str:
    """The pin that a bit of a byte address comes to: columns are lowest, then banks, then rows."""
    columns, numbers = _width(banks.row_bytes), _width(banks.count)
    if bit >= columns + numbers:
        return f"pin A{bit - columns - numbers}, of a row"
    if bit >= columns:
        return f"pin BA{bit - columns}"
    low = _width(word_bytes)
    return f"pin A{bit - low}, of a column" if bit >= low else "a byte of a word"


def _lanes(memory: Memory) -> int:
    """Data lines of the chip; of a memory without one, the bits of a word."""
    if memory.banks is None:
        return WORD_BITS
    return 8 * memory.bytes_per_cycle // memory.banks.clock_ratio


def _width(power: int) -> int:
    """The address bits of a power of two."""
    return power.bit_length() - 1


def corner_places(memory: Memory, size: int, granule: int) -> Iterator[int]:
    """Addresses of granules in ``size`` bytes that differ in one bit from the first or the last, or
    in the bank from the first."""
    last = size - granule
    bits = [1 << bit for bit in range(_width(granule), size.bit_length()) if 1 << bit < size]
    yield from (0, last, *bits, *(last ^ bit for bit in bits))
    if memory.banks:
        row = memory.banks.row_bytes
        yield from range(0, memory.banks.count * row, row)
