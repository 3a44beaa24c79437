"""Products of bytes in tile registers: AMX's eight tiles of 16 rows of 64 bytes each.

    tiles 0 to 3    sums: of each 16 rows of data by each 16 columns of weights, int32
    tiles 4, 5      data: rows of 64 uint8
    tiles 6, 7      weights: 16 rows of words, each of four int8 for every column

One step is 64 bytes of every row: ``tdpbusd`` adds the products of a tile of data and one of
weights to one of sums. Sums are loaded before the first step and stored behind the last. How many
rows each tile has is in a configuration, which is set before and released afterwards, so that the
registers count as unused (Intel SDM volume 1, chapter 18). Linux gives a process the registers when
it first asks (``arch_prctl``, Documentation/arch/x86/xstate.rst): functions ask at each entry, and
where the answer is no, the first of their instructions ends the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

from llvmlite import ir as ll

from vdla.compiler.targets.processor.codegen.emit_memory import I8, I64
from vdla.compiler.targets.processor.description.intrinsics import (
    TILE_BYTES,
    TILE_ROWS,
    Tiles,
)

PALETTE, ROWS_AT, COLUMNS_AT, CONFIG_BYTES = 1, 48, 16, 64  # of the configuration
DATA, WEIGHTS, AT_ONCE = 4, 6, 2  # first tiles of data and weights; how many there are of each
ARCH_PRCTL, REQUEST, TILE_DATA = 158, 0x1023, 18  # Linux's: ARCH_REQ_XCOMP_PERM, XTILEDATA
VOID = ll.VoidType()

# The function of a name, with the type of its result and its arguments.
Library = Callable[[str, ll.Type, list[ll.Type]], ll.Value]


def request_tiles(b: ll.IRBuilder, library: Library) -> None:
    """Asks Linux for the registers; after the first time that changes nothing."""
    syscall = library("syscall", I64, [I64, I64, I64])
    b.call(syscall, [I64(ARCH_PRCTL), I64(REQUEST), I64(TILE_DATA)])


def emit_tiles(
    b: ll.IRBuilder,
    library: Library,
    tiles: Tiles,
    starts: Sequence[ll.Value],
    strides: Sequence[int],
) -> None:
    """``sums[r, v, l] += Σ_k data[r, k] * weights[k, v, l]``.

    Args:
        b: where the instructions go.
        library: functions and instructions by their names.
        tiles: numbers of rows, vectors and steps.
        starts: where sums of int32, data of uint8 and weights of int8 begin.
        strides: bytes from each one's row to the next; a row of weights is a word of every column.
    """
    sums, data, weights = (_Operand(b, *each) for each in zip(starts, strides, strict=True))
    heights = [min(TILE_ROWS, tiles.high - n) for n in range(0, tiles.high, TILE_ROWS)]
    places = list(product(range(len(heights)), range(tiles.wide)))

    def call(name: str, *args: ll.Value) -> None:
        kinds = [arg.type for arg in args]
        b.call(library(f"llvm.x86.{name}", VOID, kinds), args)

    call("ldtilecfg", _configuration(b.module, heights, tiles.wide))
    for row, vector in places:
        call("tileloadd64", _sums(row, vector), *sums.at(row * TILE_ROWS, vector * TILE_BYTES))
    with _loop(b, tiles.steps) as step:
        for row in range(len(heights)):
            call("tileloadd64", I8(DATA + row), *data.at(row * TILE_ROWS, 0, step, TILE_BYTES))
        for vector in range(tiles.wide):
            more = TILE_ROWS * weights.stride
            call(
                "tileloadd64", I8(WEIGHTS + vector), *weights.at(0, vector * TILE_BYTES, step, more)
            )
        for row, vector in places:
            call("tdpbusd", _sums(row, vector), I8(DATA + row), I8(WEIGHTS + vector))
    for row, vector in places:
        call("tilestored64", _sums(row, vector), *sums.at(row * TILE_ROWS, vector * TILE_BYTES))
    call("tilerelease")


def _sums(row: int, vector: int) -> ll.Constant:
    """Number of the tile of some sums."""
    return I8(row * AT_ONCE + vector)


@dataclass(frozen=True)
class _Operand:
    """A matrix in memory: where it begins, and bytes from a row to the next."""

    b: ll.IRBuilder
    start: ll.Value
    stride: int

    def at(
        self, row: int, column: int, step: ll.Value = None, step_bytes: int = 0
    ) -> tuple[ll.Value, ll.Value]:
        """A pointer to a byte of a row, ``step`` times some bytes on, and the stride."""
        offset = I64(row * self.stride + column)
        if step is not None:
            offset = self.b.add(self.b.mul(step, I64(step_bytes)), offset)
        return self.b.gep(self.start, [offset], source_etype=I8), I64(self.stride)


def _configuration(module: ll.Module, heights: Sequence[int], wide: int) -> ll.Value:
    """A constant with the rows of each tile, and the bytes of a row."""
    rows = {DATA + n: height for n, height in enumerate(heights)}
    rows |= {WEIGHTS + vector: TILE_ROWS for vector in range(wide)}
    for n, height in enumerate(heights):
        rows |= {n * AT_ONCE + vector: height for vector in range(wide)}
    config = bytearray(CONFIG_BYTES)
    config[0] = PALETTE
    for tile, count in rows.items():
        config[ROWS_AT + tile] = count
        config[COLUMNS_AT + 2 * tile] = TILE_BYTES
    name = f"vdla.tiles.{'.'.join(map(str, heights))}x{wide}"
    if name not in module.globals:
        kind = ll.ArrayType(I8, CONFIG_BYTES)
        made = ll.GlobalVariable(module, kind, name)
        made.initializer, made.global_constant, made.linkage = kind(config), True, "internal"
    pointer: ll.Value = module.globals[name]
    return pointer


@contextmanager
def _loop(b: ll.IRBuilder, steps: int) -> Iterator[ll.Value]:
    """A loop around what is emitted meanwhile; gives its counter."""
    before, head = b.block, b.append_basic_block("step")
    after = b.append_basic_block("step.end")
    b.branch(head)
    b.position_at_end(head)
    counter = b.phi(I64, "step")
    counter.add_incoming(I64(0), before)
    yield counter
    following = b.add(counter, I64(1), flags=("nuw", "nsw"))
    counter.add_incoming(following, b.block)
    b.cbranch(b.icmp_unsigned("<", following, I64(steps)), head, after)
    b.position_at_end(after)
