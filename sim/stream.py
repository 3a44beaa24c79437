"""A program as arrays: one row of int64 field values per instruction, for the compiled loops.

Column ``i`` of a row is the ``i``-th field of that instruction's class, so the columns derive from
``isa`` and every room that reads a row names them with ``column``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from vdla import isa
from vdla.isa.config import Config
from vdla.isa.instructions import (
    BY_OPCODE,
    INSTRUCTIONS,
    OPCODE_BITS,
    Engine,
    Finish,
    Instruction,
    Unknown,
    Uop,
    instruction_bytes,
)
from vdla.isa.program import Program
from vdla.support.files import cache_folder, digest


def _key_cache() -> None:
    """Keys numba's cache by the sources of the rooms it compiles.

    numba notices a change of the file a function stands in, not of the files whose functions and
    constants it inlines; without this an edited machine would run as the one before.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = cache_folder("numba", digest((Path(__file__).parent, Path(isa.__file__).parent)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # no home to write to
        folder = Path(tempfile.mkdtemp(prefix="vdla-"))
    numba.config.CACHE_DIR = str(folder)


def compile_once(what: str, run: Callable[[], object]) -> None:
    """Calls ``run``, which compiles some loops or fetches them from numba's cache.

    numba's cache mixes up entries that two processes write at once, so one compiles at a time. When
    it is done it leaves a mark in the cache; who finds the mark only reads and waits for nobody.
    """
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or numba.config.CACHE_DIR)
    mark = folder / f"{what}-{_circumstances()}.compiled"
    if mark.exists():
        run()
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / "lock", what):
        run()
        mark.touch()


@contextmanager
def _lock(path: Path, what: str) -> Iterator[None]:
    """Held by the one process that compiles; a terminal is told why it waits."""
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _tell(f"waiting for another process that compiles; then the {what} is compiled")
            fcntl.flock(lock, fcntl.LOCK_EX)
        _tell(f"compiling the {what}, once for this version: up to a minute")
        yield


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"vdla: {text}", file=sys.stderr, flush=True)


def _circumstances() -> str:
    """Digits over all that decides whether numba takes a cached loop: sources, itself, the CPU."""
    files = [(str(p), p.stat().st_mtime_ns) for p in sorted(Path(__file__).parent.rglob("*.py"))]
    cpu = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    text = repr((numba.__version__, sys.version, cpu, files))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_key_cache()

Rows = NDArray[np.int64]
Bytes = NDArray[np.uint8]
F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiles a loop with numba and caches the machine code on disk."""
    compiled: F = numba.njit(cache=True, nogil=True)(function)
    return compiled


def jit_lean(function: F) -> F:
    """As ``jit``, for a loop that makes no array and divides by nothing that could be 0.

    Numba counts references to arrays at every call, inlined or not, and took nine tenths of the
    time for it; it looks at every divisor, which took a twentieth.
    """
    compiled: F = numba.njit(cache=True, nogil=True, _nrt=False, error_model="numpy")(function)
    return compiled


def inline(function: F) -> F:
    """Lets compiled loops inline a helper; called from Python it is the plain function.

    Numba compiles it where a loop calls it, without entries from Python and C: nobody uses them,
    and they took a third of the time. Like a lean loop it makes no array and divides by no 0.
    """
    entries = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    lean = {"_nrt": False, "error_model": "numpy"}
    helper: F = register_jitable(nogil=True, forceinline=True, **lean, **entries)(function)
    return helper


def column(cls: type[Instruction], name: str) -> int:
    """The column that holds a field of an instruction class."""
    return next(i for i, f in enumerate(cls.fields) if f.name == name)


COLUMNS = max(len(cls.fields) for cls in INSTRUCTIONS)
NO_ENGINE = -1  # of FINISH and of unknown opcodes
ENGINE_OF = np.full(1 << OPCODE_BITS, NO_ENGINE, np.int64)
for _cls in INSTRUCTIONS:
    ENGINE_OF[_cls.opcode] = NO_ENGINE if _cls is Finish else _cls.engine


@dataclass(frozen=True)
class Stream:
    """Rows of a program and, per engine, the indices of its instructions in program order.

    ``legal`` is false where the machine stops, since the ISA doesn't know what stands there.
    """

    config: Config
    instructions: Sequence[Instruction]
    rows: Rows
    base: int

    @classmethod
    def of(cls, config: Config, instructions: Sequence[Instruction], base: int = 0) -> Stream:
        """Lays a program out in rows."""
        rows = np.zeros((len(instructions), COLUMNS), np.int64)
        for row, each in zip(rows, instructions, strict=True):
            values = list(each.__dict__.values())
            row[: len(values)] = values
        return cls(config, instructions, rows, base)

    @classmethod
    def of_bytes(cls, config: Config, raw: bytes, base: int = 0) -> Stream:
        """Decodes a stream as the machine would: it doesn't look at bits above the fields."""
        size = instruction_bytes(config)
        words = [int.from_bytes(raw[i : i + size], "little") for i in range(0, len(raw), size)]
        return cls.of(config, [_decode(word, config) for word in words], base)

    def engine(self, engine: Engine) -> NDArray[np.int64]:
        """Indices of an engine's instructions; FINISH and the unknown belong to none."""
        return np.flatnonzero(ENGINE_OF[self.rows[:, 0]] == engine)

    @cached_property
    def order(self) -> Rows:
        """Per engine the indices of its instructions in program order, and -1 after the last."""
        lists = [self.engine(engine) for engine in Engine]
        order = np.full((3, max(map(len, lists)) + 1), -1, np.int64)
        for row, indices in zip(order, lists, strict=True):
            row[: len(indices)] = indices
        return order

    @cached_property
    def legal(self) -> NDArray[np.bool_]:
        """Per instruction, whether every field holds a value the ISA knows."""
        return np.array([each.is_legal for each in self.instructions], np.bool_)

    @cached_property
    def aligned(self) -> NDArray[np.bool_]:
        """Per instruction, whether every field is a multiple of what the machine wants."""
        aligned = np.ones(len(self.rows), np.bool_)
        for cls in INSTRUCTIONS:
            for i, f in enumerate(cls.fields):
                if (unit := f.multiple(self.config)) > 1:
                    aligned &= (self.rows[:, 0] != cls.opcode) | (self.rows[:, i] % unit == 0)
        return aligned


def _decode(word: int, config: Config) -> Instruction:
    opcode = word & ((1 << OPCODE_BITS) - 1)
    kind = BY_OPCODE.get(opcode)
    return kind.unpack(word, config) if kind else Unknown(opcode)


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
