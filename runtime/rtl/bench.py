"""A running RTL model: memory, registers, programs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.identity import Identity
from vdla.isa.memory import Memory
from vdla.isa.registers import (
    BUSY,
    EVENTS,
    RESET,
    START,
    Cause,
    Fault,
    counter,
    program_registers,
    register,
)
from vdla.isa.ring import Engine, numbered
from vdla.runtime.errors import DeviceError
from vdla.runtime.rtl.build import scratchpads
from vdla.support.numbers import ceil_div

DRAM_BASE = 0x1000_0000  # where the bench puts a program's DRAM on the bus
CHUNK = 1_000_000  # cycles between two looks at Python's signals
PATIENCE = 65_536  # looks at a core that has to come to rest
INTERRUPT, STUCK, MORE, OVERDUE = range(4)
NO_ERRORS = (DRAM_BASE, DRAM_BASE)  # the bytes whose beats bear one: from, to

Bytes = NDArray[np.uint8]
Functions = dict[str, tuple[Any, list[Any]]]  # of a library: what each returns, and takes

HANDLE, INT, U32 = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32
I64, U64, POINTER_U64 = ctypes.c_int64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)
FUNCTIONS: Functions = {
    "vdla_new": (HANDLE, []),
    "vdla_free": (None, [HANDLE]),
    "vdla_memory": (HANDLE, [HANDLE]),
    "vdla_events": (None, [HANDLE, INT, HANDLE, HANDLE, I64]),
    "vdla_rewind": (None, [HANDLE]),
    "vdla_rest": (None, [HANDLE, I64]),
    "vdla_write": (None, [HANDLE, U32, U32]),
    "vdla_read": (U32, [HANDLE, U32]),
    "vdla_run": (INT, [HANDLE, I64]),
    "vdla_scratchpad": (HANDLE, [HANDLE, INT, POINTER_U64, POINTER_U64]),
    "vdla_trace": (INT, [HANDLE, ctypes.c_char_p]),
    "vdla_trace_close": (None, [HANDLE]),
}


@dataclass(frozen=True)
class Stopped:
    """End of a program on the RTL.

    ``start`` and ``finish`` hold per engine, in its order, the cycles its instructions start and
    finish in; ``causes`` the counters; ``fault`` and the byte address of its instruction.
    ``cycles`` is -1 when the machine stood still, or was ``overdue``: it hadn't ended when the
    caller lost patience.
    """

    cycles: int
    start: dict[Engine, NDArray[np.int64]]
    finish: dict[Engine, NDArray[np.int64]]
    causes: dict[Engine, dict[Cause, int]]
    fault: Fault
    fault_instruction: int
    overdue: bool


class Bench:
    """One Verilated core with its memory. Not for several threads."""

    dram_base = DRAM_BASE  # where a program's DRAM lies on the bus
    rest_cycles = 0  # in which the memory comes to rest before a program: it needs no time
    memory_functions: ClassVar[Functions] = {
        "vdla_attach": (None, [HANDLE, HANDLE, U64, U64, U64, U64, U64, U64]),
        "vdla_banks": (None, [HANDLE, HANDLE]),
    }
    _handle: Any = None

    def __init__(self, config: Config, library: Path) -> None:
        self.config = config
        self._lib = _load(library, FUNCTIONS | self.memory_functions)
        self._handle = self._lib.vdla_new()
        self._memory = self._lib.vdla_memory(self._handle)

    def close(self) -> None:
        """Frees the model; closes its waves."""
        if self._handle is not None:
            self._lib.vdla_free(self._handle)
            self._handle = None

    __del__ = close

    # Registers --------------------------------------------------------------------------------

    def read(self, name: str) -> int:
        """A register's value, over AXI-Lite."""
        return self.read_at(register(name).offset)

    def write(self, name: str, value: int) -> None:
        """Writes a register, over AXI-Lite."""
        self.write_at(register(name).offset, value)

    def read_at(self, offset: int) -> int:
        """A register's value, by its address."""
        return int(self._lib.vdla_read(self._handle, offset))

    def write_at(self, offset: int, value: int) -> None:
        """Writes a register, by its address."""
        self._lib.vdla_write(self._handle, offset, value)

    # Programs ---------------------------------------------------------------------------------

    def run(
        self,
        base: int,
        counts: Sequence[int],
        *,
        identity: Identity | None = None,
        length: int | None = None,
        limit: int | None = None,
    ) -> Stopped:
        """Runs the stream that lies at ``base`` in the attached DRAM to its end.

        ``counts``: instructions per engine, in the order of their numbers. ``identity``: what the
        program is for, when not this core. ``length``: instructions with FINISH, when not one more
        than ``counts`` add up to. After ``limit`` cycles, if there is one, the program is stopped.
        """
        sizes = dict(zip(numbered(self.config), counts, strict=True))
        start = {e: np.full(n, -1, np.int64) for e, n in sizes.items()}
        finish = {e: np.full(n, -1, np.int64) for e, n in sizes.items()}
        for place, (e, n) in enumerate(sizes.items()):  # bits of the trace lie in this order
            where = (start[e].ctypes.data, finish[e].ctypes.data)
            self._lib.vdla_events(self._handle, place, *where, n)
        self._start(base, sum(counts) + 1 if length is None else length, identity)
        return self._result(self._advance_to_end(limit), start, finish)

    def _advance_to_end(self, limit: int | None) -> int:
        """Lets time pass until the program has stopped, or a limit is reached."""
        left = limit
        while left is None or left > 0:
            cycles = CHUNK if left is None else min(CHUNK, left)
            if (how := self.advance(cycles)) != MORE:
                return how
            left = None if left is None else left - cycles
        return OVERDUE

    def attach(
        self, dram: Bytes, *, memory: Memory | None = None, errors: tuple[int, int] = NO_ERRORS
    ) -> None:
        """Puts ``dram``, whole pages, behind the AXI4 port, at DRAM_BASE; it changes in place.

        Beats at byte addresses within ``errors`` bear an error.
        """
        if dram.size % PAGE_BYTES or not dram.flags.c_contiguous:
            raise ValueError(f"expected DRAM of whole pages, found {dram.size} bytes")
        self._dram = dram  # kept alive
        memory = memory or self.config.memory
        interval = ceil_div(self.config.port_bytes, memory.bytes_per_cycle)
        self._lib.vdla_attach(
            self._memory,
            dram.ctypes.data,
            dram.size,
            DRAM_BASE,
            memory.latency,
            interval,
            *errors,
        )
        if memory.banks:
            numbers = np.array(list(asdict(memory.banks).values()), np.int64)
            self._lib.vdla_banks(self._memory, numbers.ctypes.data)

    def advance(self, cycles: int) -> int:
        """Lets time pass: until the interrupt, until nothing can move any more, or so long."""
        return int(self._lib.vdla_run(self._handle, cycles))

    def _start(self, base: int, length: int, identity: Identity | None) -> None:
        own = Identity.of(self.config) if identity is None else identity
        registers = program_registers(own, base, length, self.dram_base, self._dram.size)
        for name, value in registers.items():
            self.write(name, value)
        self.write("INTERRUPT_STATUS", EVENTS)
        self.write("INTERRUPT_ENABLE", EVENTS)
        self.rest()
        self._lib.vdla_rewind(self._handle)
        self.write("CONTROL", START)

    def rest(self) -> None:
        """Lets the memory come to rest, as before a program starts."""
        self._lib.vdla_rest(self._handle, self.rest_cycles)

    def _result(
        self, how: int, start: dict[Engine, NDArray[np.int64]], finish: dict[Engine, Any]
    ) -> Stopped:
        cycles = self.read("CYCLES_LOW") | self.read("CYCLES_HIGH") << 32
        causes = {e: {c: self.read(counter(e, c)) for c in Cause} for e in start}
        fault = Fault(self.read("FAULT_CAUSE"))
        at = self.read("FAULT_INSTRUCTION")
        if how in (STUCK, OVERDUE):
            cycles = -1
            self.write("CONTROL", RESET)
        self._settle()
        return Stopped(cycles, start, finish, causes, fault, at, how == OVERDUE)

    def _settle(self) -> None:
        for _ in range(PATIENCE):
            if not self.read("STATUS") & BUSY:
                self.write("INTERRUPT_STATUS", EVENTS)
                return
        raise DeviceError("device rtl: expected the core to come to rest, found it running")

    # Memories and waves -----------------------------------------------------------------------

    def scratchpad(self, name: str) -> Bytes:
        """Bytes of one of ``scratchpads``, to read and write: [entries, bytes].

        An entry of one of several RAMs is a port word, as for LOAD.
        """
        stride, depth = ctypes.c_uint64(), ctypes.c_uint64()
        index = scratchpads(self.config).index(name)
        at = self._lib.vdla_scratchpad(
            self._handle, index, ctypes.byref(stride), ctypes.byref(depth)
        )
        shape = (depth.value, stride.value)
        raw = np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), shape)
        buffer, _, ram = name.partition(".")
        entry = self.config.entry(buffer)
        return raw.reshape(-1, entry) if ram else raw[:, :entry]

    def clear(self) -> None:
        """Zeroes the scratchpads, as after power-up."""
        for name in scratchpads(self.config):
            self.scratchpad(name)[:] = 0

    def open_waves(self, path: Path) -> None:
        """Writes waves to an FST file from now on; needs a model built with ``trace``."""
        if not self._lib.vdla_trace(self._handle, str(path).encode()):
            raise DeviceError(f"device rtl: expected to write waves to {path}, found that it can't")

    def close_waves(self) -> None:
        """Ends the file."""
        self._lib.vdla_trace_close(self._handle)


def _load(library: Path, functions: Functions) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(library))
    for name, (result, arguments) in functions.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
