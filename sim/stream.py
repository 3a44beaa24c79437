"""A program as arrays: one row of int64 field values per instruction, for the compiled loops.

Column ``i`` of a row is the ``i``-th field of that instruction's class, so the columns derive from
``isa`` and every room that reads a row names them with ``column``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from vdla import isa
from vdla.isa.config import Config
from vdla.isa.instructions import INSTRUCTIONS, Engine, Finish, Instruction, Uop
from vdla.isa.program import Program


def _key_cache() -> None:
    """Keys numba's cache by the sources of the rooms it compiles.

    numba notices a change of the file a function stands in, not of the files whose functions and
    constants it inlines; without this an edited machine would run as the one before.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    digest = hashlib.sha256()
    for room in (Path(__file__).parent, Path(isa.__file__).parent):
        for path in sorted(room.rglob("*.py")):
            digest.update(path.read_bytes())
    root = Path(os.environ.get("VDLA_CACHE", Path.home() / ".cache" / "vdla"))
    folder = root / "numba" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # no home to write to
        folder = Path(tempfile.mkdtemp(prefix="vdla-"))
    numba.config.CACHE_DIR = str(folder)


@contextmanager
def cache_lock() -> Iterator[None]:
    """Held by the one process that may compile into the cache."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or numba.config.CACHE_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_key_cache()

Rows = NDArray[np.int64]
Bytes = NDArray[np.uint8]
F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiles a loop with numba and caches the machine code on disk."""
    compiled: F = numba.njit(cache=True, nogil=True)(function)
    return compiled


def inline(function: F) -> F:
    """Compiles a helper that is inlined where compiled loops call it, and cached with them."""
    compiled: F = numba.njit(nogil=True, forceinline=True)(function)
    return compiled


def column(cls: type[Instruction], name: str) -> int:
    """The column that holds a field of an instruction class."""
    return next(i for i, f in enumerate(cls.fields) if f.name == name)


COLUMNS = max(len(cls.fields) for cls in INSTRUCTIONS)
ENGINE_OF = np.array([cls.engine for cls in INSTRUCTIONS], np.int64)


@dataclass(frozen=True)
class Stream:
    """Rows of a program and, per engine, the indices of its instructions in program order."""

    config: Config
    instructions: Sequence[Instruction]
    rows: Rows
    base: int

    @classmethod
    def of(cls, config: Config, instructions: Sequence[Instruction], base: int = 0) -> Stream:
        """Lays a program out in rows.

        Raises:
            ValueError: the stream doesn't end with its only FINISH.
        """
        ends = [i for i, each in enumerate(instructions) if isinstance(each, Finish)]
        if ends != [len(instructions) - 1]:
            raise ValueError(
                f"expected one FINISH, as the last of {len(instructions)} instructions, "
                f"found FINISH at {ends}"
            )
        rows = np.zeros((len(instructions), COLUMNS), np.int64)
        for row, each in zip(rows, instructions, strict=True):
            values = list(each.__dict__.values())
            row[: len(values)] = values
        return cls(config, instructions, rows, base)

    def engine(self, engine: Engine) -> NDArray[np.int64]:
        """Indices of an engine's instructions; FINISH belongs to none."""
        return np.flatnonzero(ENGINE_OF[self.rows[:-1, 0]] == engine)


def memory_image(program: Program, size: int) -> Bytes:
    """DRAM of ``size`` bytes with a program's stream and data, and zeros elsewhere."""
    image = np.zeros(size, np.uint8)
    for address, raw in {**program.data, program.base: program.stream()}.items():
        image[address : address + len(raw)] = np.frombuffer(raw, np.uint8)
    return image


def uop_layout(config: Config) -> NDArray[np.int64]:
    """(lowest bit, width) of first, dst, src, wgt; then bytes per micro-op."""
    rows = [[bit, width] for _, bit, width in Uop.layout(config)]
    return np.array([*rows, [config.uop_entry, config.uops_per_word]], np.int64)


@jit
def decode_uops(raw: Bytes, layout: Rows, out: Rows, at: int) -> None:
    """Decodes packed micro-ops into rows (first, dst, src, wgt) of ``out`` from ``at``."""
    size = layout[4, 0]
    for i in range(raw.shape[0] // size):
        word = np.uint64(0)
        for b in range(size):
            word |= np.uint64(raw[i * size + b]) << np.uint64(8 * b)
        for f in range(4):
            mask = (np.uint64(1) << np.uint64(layout[f, 1])) - np.uint64(1)
            out[at + i, f] = np.int64((word >> np.uint64(layout[f, 0])) & mask)
