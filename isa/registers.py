"""The control and status registers, seen through an AXI-Lite port of 4 KiB.

A driver writes where the program lies and what it was compiled for, sets START, and waits for DONE
or FAULT. Registers are 32 bits wide; a 64-bit value takes two, the low half first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.instructions import DRAM_BITS, instruction_bytes
from vdla.isa.ring import Engine, numbered

IDENTITY = 0x56444C41  # "VDLA"
VERSION = 0x0002_0000  # major, minor: 16 bits each
SPACE_BYTES = 4096  # addresses the port decodes
COUNTERS_AT = 0x80  # the offset of the engines' counters
INDEX_BITS = 24  # instructions are numbered from 0; a program has fewer than 2**24


class Cause(IntEnum):
    """Cause that a cycle of an engine went to: docs/timing.md, section 10."""

    BUSY = 0
    TOKEN = 1
    MEMORY = 2
    BANK = 3
    FETCH = 4
    DRAIN = 5


class Fault(IntEnum):
    """Fault for which the core stopped: docs/timing.md, section 9."""

    NONE = 0
    PROGRAM_CONFIG = 1
    ILLEGAL = 2
    ADDRESS = 3
    BUS = 4
    PROGRAM_ISA = 5


@dataclass(frozen=True)
class Bits:
    """A bit field of a register."""

    name: str
    low: int
    width: int
    doc: str

    @property
    def mask(self) -> int:
        """The field's bits in place."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """One 32-bit register. ``access``: ``ro``, ``rw``, ``wo`` or ``w1c`` (write one to clear).

    A ``locked`` register can't be written while a program runs.
    """

    name: str
    offset: int
    access: str
    doc: str
    bits: tuple[Bits, ...] = ()
    locked: bool = False

    @property
    def fields(self) -> tuple[Bits, ...]:
        """Bit fields of the register; one field VALUE of 32 bits where none are declared."""
        return self.bits or (Bits("VALUE", 0, 32, self.doc),)

    def field(self, name: str) -> Bits:
        """A bit field by its name."""
        return next(b for b in self.bits if b.name == name)


_EVENTS = (Bits("DONE", 0, 1, "the program ended"), Bits("FAULT", 1, 1, "the core stopped"))


def counter(engine: Engine, cause: Cause) -> str:
    """The name of the register that counts an engine's cycles of a cause."""
    return f"{engine.name}_{cause.name}"


def _counter(engine: Engine, cause: Cause) -> Register:
    return Register(
        counter(engine, cause),
        COUNTERS_AT + 4 * (len(Cause) * engine + cause),
        "ro",
        f"cycles {engine.name} spent: {cause.name.lower()}",
    )


_COMMON: tuple[Register, ...] = (
    Register("ID", 0x00, "ro", 'reads "VDLA"'),
    Register("VERSION", 0x04, "ro", "version of this register map: major and minor, 16 bits each"),
    Register("ISA_HASH", 0x08, "ro", "hash of the instruction set the core was built for"),
    Register("CONFIG_HASH", 0x0C, "ro", "hash of the config it was built for"),
    Register(
        "CONTROL",
        0x10,
        "wo",
        "commands; a written 1 acts once",
        (
            Bits("START", 0, 1, "runs the program; ignored while RUNNING or STOPPING"),
            Bits("RESET", 1, 1, "stops the core and clears DONE and FAULT"),
        ),
    ),
    Register(
        "STATUS",
        0x14,
        "ro",
        "what the core does",
        (
            Bits("RUNNING", 0, 1, "a program runs"),
            Bits("DONE", 1, 1, "the last program ended"),
            Bits("FAULT", 2, 1, "the last program was stopped by a fault"),
            Bits("STOPPING", 3, 1, "waits for its transfers in flight after a fault or a reset"),
        ),
    ),
    Register("INTERRUPT_ENABLE", 0x18, "rw", "events that raise the interrupt", _EVENTS),
    Register("INTERRUPT_STATUS", 0x1C, "w1c", "events that have happened", _EVENTS),
    Register("PROGRAM_ISA", 0x20, "rw", "ISA_HASH of what the program is for", locked=True),
    Register("PROGRAM_CONFIG", 0x24, "rw", "CONFIG_HASH of what it is for", locked=True),
    Register(
        "PROGRAM_BASE",
        0x28,
        "rw",
        "byte address of the stream, a multiple of port_bytes",
        locked=True,
    ),
    Register(
        "PROGRAM_LENGTH",
        0x2C,
        "rw",
        "instructions of the stream, FINISH included",
        (Bits("COUNT", 0, INDEX_BITS, "instructions"),),
        locked=True,
    ),
    Register(
        "DRAM_BASE",
        0x30,
        "rw",
        "bus address of the program's DRAM, whole pages; a program's addresses count from here",
        (Bits("PAGE", 12, 20, "page number"),),
        locked=True,
    ),
    Register(
        "DRAM_SIZE",
        0x34,
        "rw",
        "bytes of DRAM from there, whole pages; what lies beyond is out of range, 0 is 4 GiB",
        (Bits("PAGES", 12, 20, "pages"),),
        locked=True,
    ),
    Register(
        "FAULT_CAUSE",
        0x40,
        "ro",
        "why the core stopped",
        (Bits("CAUSE", 0, 3, ", ".join(f"{f.value} {f.name}" for f in Fault)),),
    ),
    Register("FAULT_INSTRUCTION", 0x44, "ro", "byte address of the instruction it stopped at"),
    Register("CYCLES_LOW", 0x50, "ro", "cycles of the program so far, low half"),
    Register("CYCLES_HIGH", 0x54, "ro", "the high half"),
)


@cache
def registers(config: Config) -> tuple[Register, ...]:
    """The registers of a config's core: the counters are those of its engines."""
    counters = (_counter(engine, cause) for engine in numbered(config) for cause in Cause)
    return (*_COMMON, *counters)


_BY_NAME = {r.name: r for r in (*_COMMON, *(_counter(e, c) for e in Engine for c in Cause))}


def register(name: str) -> Register:
    """A register by its name; it lies at one place in every core that has it."""
    return _BY_NAME[name]


START, RESET = (register("CONTROL").field(name).mask for name in ("START", "RESET"))
BUSY = sum(register("STATUS").field(name).mask for name in ("RUNNING", "STOPPING"))  # not at rest
EVENTS = sum(event.mask for event in _EVENTS)


def program_registers(
    identity: Identity, base: int, length: int, dram_base: int, dram_size: int
) -> dict[str, int]:
    """Registers that a driver writes before START: the program's identity, its place, its DRAM."""
    isa, config = identity.words
    return {
        "PROGRAM_ISA": isa,
        "PROGRAM_CONFIG": config,
        "PROGRAM_BASE": base,
        "PROGRAM_LENGTH": length,
        "DRAM_BASE": dram_base,
        "DRAM_SIZE": dram_size & 0xFFFF_FFFF,
    }


def instruction_address(config: Config, base: int, index: int) -> int:
    """Byte address of an instruction of the stream at ``base``: what FAULT_INSTRUCTION holds."""
    return base + index * instruction_bytes(config)


def most_instructions(config: Config) -> int:
    """The longest program: what PROGRAM_LENGTH can say. The address space holds it, since no
    instruction has more than 256 bytes."""
    assert instruction_bytes(config) << INDEX_BITS <= 1 << DRAM_BITS
    return (1 << INDEX_BITS) - 1


def reset_value(register: Register, config: Config) -> int:
    """Value that a register reads after a reset."""
    isa, own = Identity.of(config).words
    known = {"ID": IDENTITY, "VERSION": VERSION, "ISA_HASH": isa, "CONFIG_HASH": own}
    return known.get(register.name, 0)
