"""Mapping of a memory to the RAMs of a family of devices, as by yosys: which kind, and how many.

yosys (``memory_libmap``) tries each kind of RAM in each of its shapes and takes the cheapest. A
shape is a width with the depth that goes with it. What it costs:

* its RAMs: bits of one row over the width, times the rows in its depth, times its copies, since a
  RAM has so many read ports; a LUT RAM costs less if bits of its width stay unused;
* half a unit for each bit that a multiplexer chooses where the rows of several RAMs lie behind each
  other, and for each write enable that is decoded there;
* two units for each read port that no write port shares.

Columns that are written apart begin at a byte of 9 bits. So the numbers of RAMs are exact, for
yosys's tables of the families: ``lutrams_xc5v.txt`` and ``brams_xc4v.txt`` for the 7 series,
``lutrams_trellis.txt`` and ``brams_16kd.txt`` for ECP5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vdla.hw.fifo import SHALLOW
from vdla.support.numbers import ceil_div

BYTE = 9  # bits of a block RAM that are written together
CHOSEN_BIT = 0.5
READ_PORT = 2
HALF, FULL, DP16KD = 129, 257, 128  # what a RAMB18, a RAMB36 and a DP16KD cost
LUT_RAM = 8


@dataclass(frozen=True)
class Memory:
    """``depth`` entries of ``columns``, each of some bits and written apart from the others.

    ``shared`` read ports have the address of the write port. A memory that is read in the cycle of
    its address is ``combinational``. A port reads all bits, or those that ``bits_read`` has for it,
    from the first port on: a RAM none of whose bits is read is left out.
    """

    depth: int
    columns: tuple[int, ...]
    reads: int = 1
    shared: int = 0
    combinational: bool = False
    bits_read: tuple[frozenset[int], ...] = ()

    @property
    def width(self) -> int:
        """Bits of an entry."""
        return sum(self.columns)


def fifo(depth: int, width: int) -> Memory:
    """The memory of a FIFO: a deep one is read a cycle after its address."""
    return Memory(depth, (width,), combinational=depth <= SHALLOW)


@dataclass(frozen=True)
class Rams:
    """RAMs of a memory: block RAMs in the family's unit (RAMB36, DP16KD), and LUTs; neither where
    it is made of flip-flops. Where RAMs lie behind each other, ``chosen`` are the bits that a read
    chooses from the further ones, and ``decoded`` the write enables."""

    blocks: float = 0
    luts: int = 0
    chosen: int = 0
    decoded: int = 0


@dataclass(frozen=True)
class Kind:
    """A RAM of ``1 << address_bits`` entries of the first of its ``widths``; of the next, half.

    ``reads`` is the number of ports left for reading when one writes. ``fixed`` is the part of the
    ``cost`` that it has whatever it holds; the rest goes with the bits that are used. It is
    ``blocks`` block RAMs in the family's unit, or a LUT RAM of so many ``luts``.
    """

    primitive: str
    cost: int
    fixed: int
    address_bits: int
    widths: tuple[int, ...]
    reads: int
    shares: bool = False  # whether a read port may be the write port
    blocks: float = 0
    luts: int = 0

    @property
    def is_block(self) -> bool:
        """Whether it is a block RAM."""
        return self.blocks > 0


Kinds = tuple[Kind, ...]
TRUE, SIMPLE = (1, 2, 4, 9, 18), (1, 2, 4, 9, 18, 36)
SERIES_7: Kinds = (
    Kind("RAM32M", LUT_RAM, 0, 5, (4,), 1, luts=4),
    Kind("RAM64X1D", LUT_RAM, 0, 6, (2,), 1, luts=2),
    Kind("RAM128X1D", LUT_RAM, 0, 7, (1,), 1, luts=4),
    Kind("RAM32M", LUT_RAM - 1, 0, 5, (2,), 3, luts=4),
    Kind("RAM64M", LUT_RAM - 1, 0, 6, (1,), 3, luts=4),
    Kind("RAM32M", LUT_RAM, 1, 5, (6,), 1, luts=4),
    Kind("RAM64M", LUT_RAM, 1, 6, (3,), 1, luts=4),
    Kind("RAMB18", HALF, HALF, 14, TRUE, 1, shares=True, blocks=0.5),
    Kind("RAMB36", FULL, FULL, 15, (*TRUE, 36), 1, shares=True, blocks=1),
    Kind("RAMB36 cascade", 513, 513, 16, (1,), 1, shares=True, blocks=2),  # ports of one bit alone
    Kind("RAMB18", HALF, HALF, 14, SIMPLE, 1, blocks=0.5),
    Kind("RAMB36", FULL, FULL, 15, (*SIMPLE, 72), 1, blocks=1),
)
ECP5: Kinds = (
    Kind("TRELLIS_DPR16X4", 4, 4, 4, (4,), 1, luts=4),
    Kind("DP16KD", DP16KD, DP16KD, 14, TRUE, 1, shares=True, blocks=1),
    Kind("DP16KD", DP16KD, DP16KD, 14, SIMPLE, 1, blocks=1),  # as PDPW16KD
)


@cache
def rams_of(memory: Memory, kinds: Kinds) -> Rams:
    """The RAMs that yosys makes a memory of, where a family has these ``kinds``."""
    best: dict[bool, tuple[float, Rams]] = {}
    for kind in kinds:
        if kind.is_block and memory.combinational:
            continue
        option = _cheapest(memory, kind)
        if kind.is_block not in best or option[0] < best[kind.is_block][0]:
            best[kind.is_block] = option
    least, result = memory.width * memory.depth, Rams()  # flip-flops
    for _, (cost, rams) in sorted(best.items(), key=lambda item: item[0]):
        if cost < least:
            least, result = int(cost), rams  # as yosys keeps it
    return result


def _cheapest(memory: Memory, kind: Kind) -> tuple[float, Rams]:
    """The least cost of a memory of a kind of RAM, and the RAMs."""
    apart = memory.reads - (memory.shared if kind.shares else 0)
    copies = max(ceil_div(apart, kind.reads), 1)
    best: tuple[float, int, int] | None = None  # cost, width, rows
    for width, depth in _shapes(kind):
        rows = ceil_div(memory.depth, depth)
        count = ceil_div(rows * _row_bits(memory, _byte(kind, width)), width)
        chosen, decoded = _choice(memory, rows)
        cost: float = kind.fixed * count * copies
        cost += (kind.cost - kind.fixed) * rows * memory.width / width * copies
        cost += CHOSEN_BIT * (chosen + decoded) + READ_PORT * apart
        if best is None or cost < best[0]:
            best = cost, width, rows
    assert best is not None
    return best[0], _rams(memory, kind, best[1:], copies)


def _choice(memory: Memory, rows: int) -> tuple[int, int]:
    """Bits that reads choose, and write enables that are decoded, where rows of RAMs lie behind
    each other."""
    if rows == 1:
        return 0, 0
    return (rows - 1) * memory.width * memory.reads, rows * len(memory.columns)


def _rams(memory: Memory, kind: Kind, shape: tuple[int, int], copies: int) -> Rams:
    """The RAMs of a kind, of a width and in so many rows. Those of one bit are there for the bits
    that are used alone."""
    width, rows = shape
    byte = _byte(kind, width)
    count = ceil_div(rows * _row_bits(memory, byte), width) * copies
    for bits in memory.bits_read[:copies]:
        count -= _unread(memory, bits, shape, byte)
    if kind.is_block:
        return Rams(kind.blocks * count, 0, *_choice(memory, rows))
    if kind.primitive.endswith("X1D"):
        count = rows * memory.width * memory.reads
    return Rams(0, kind.luts * count, *_choice(memory, rows))


def _unread(memory: Memory, read: frozenset[int], shape: tuple[int, int], byte: int) -> int:
    """RAMs of a copy none of whose bits is read."""
    width, rows = shape
    count = ceil_div(rows * _row_bits(memory, byte), width)
    places, row_bits = _places(memory, byte), _row_bits(memory, byte)
    return count - len(
        {(row * row_bits + places[bit]) // width for row in range(rows) for bit in read}
    )


def _byte(kind: Kind, width: int) -> int:
    """Bits of a RAM that are written together."""
    return min(BYTE, width) if kind.is_block else width


def _places(memory: Memory, byte: int) -> list[int]:
    """Places of an entry's bits where each column begins at a byte."""
    places: list[int] = []
    at = 0
    for column in memory.columns:
        places += range(at, at + column)
        at += ceil_div(column, byte) * byte
    return places


def _shapes(kind: Kind) -> Iterator[tuple[int, int]]:
    """Widths of a kind of RAM with their depths, the narrowest first."""
    for step, width in enumerate(kind.widths):
        yield width, 1 << (kind.address_bits - step)


def _row_bits(memory: Memory, byte: int) -> int:
    """Bits of an entry where each column begins at a byte."""
    return sum(ceil_div(column, byte) * byte for column in memory.columns)
