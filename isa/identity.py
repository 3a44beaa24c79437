"""Identity that a program is for, in two numbers that everything compiled or built carries.

* ``config``: the hash of the accelerator's parameters, ``Config.hash``.
* ``isa``: the hash of the instruction set itself: every opcode, every field's name, place, width
  and values, the micro-ops, the arithmetic of ``numbers.py`` and what instructions do. An option
  of a config adds to the set where it is on; where it is off, set and hash are as without it.

Modules, programs, cores and tuning records have both. One of another instruction set is refused by
that name, whatever its config: its bits would mean something else here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from itertools import combinations

from vdla.isa import numbers
from vdla.isa.config import Config
from vdla.isa.fields import Record
from vdla.isa.instructions import (
    Init,
    Uop,
    instruction_bytes,
    instruction_set,
    memories,
    operations,
)
from vdla.isa.operations import SEMANTICS
from vdla.isa.options import OPTIONS
from vdla.isa.options.option import Option
from vdla.isa.ring import numbered, ring_of
from vdla.isa.rows import Row

DIGITS = 8  # of a hash, in hex: one register

# Widths follow the config. Each buffer is the deepest and the shallowest in one of these, so that
# no rule for a width can change and leave all of them as they were.
PROBES = (
    Config("a", 16, 16, inp_bytes=1 << 15, wgt_bytes=1 << 18, acc_bytes=1 << 17, uop_bytes=1 << 15),
    Config("b", 8, 4, inp_bytes=1 << 14, wgt_bytes=1 << 8, acc_bytes=1 << 9, uop_bytes=1 << 9,
           port_bytes=4),
    Config("c", 4, 8, inp_bytes=1 << 7, wgt_bytes=1 << 14, acc_bytes=1 << 12, uop_bytes=1 << 10,
           port_bytes=4),
    Config("d", 16, 16, inp_bytes=1 << 10, wgt_bytes=1 << 11, acc_bytes=1 << 17, uop_bytes=1 << 8,
           port_bytes=16),
    Config("e", 8, 8, inp_bytes=1 << 9, wgt_bytes=1 << 10, acc_bytes=1 << 10, uop_bytes=1 << 16),
)  # fmt: skip


# The options that add to the instruction set, or change it.
ENCODED = tuple(option for option in OPTIONS if option.probes)


@dataclass(frozen=True)
class Identity:
    """The instruction set and the config of a program, or of what runs it; hex digits."""

    isa: str
    config: str

    @classmethod
    def of(cls, config: Config) -> Identity:
        """The identity of this instruction set with a config."""
        return cls(isa_hash(config), config.hash)

    @classmethod
    def of_words(cls, isa: int, config: int) -> Identity:
        """The inverse of ``words``."""
        return cls(f"{isa:0{DIGITS}x}", f"{config:0{DIGITS}x}")

    @property
    def words(self) -> tuple[int, int]:
        """Both digests as numbers, as the identity registers hold them."""
        return int(self.isa, 16), int(self.config, 16)


def other_isa(
    expected: str, actual: str, made: str = "compiled", again: str = "compile it again"
) -> str:
    """Error about something that was ``made`` for another instruction set."""
    return f"{made} for another instruction set: expected ISA {expected}, found {actual}; {again}"


def probes_of(option: Option) -> tuple[Config, ...]:
    """Configs that have an option, those that it needs, and no others; none if it has no part."""
    by_name = {probe.name: probe for probe in PROBES}
    configs = option.probes.configs if option.probes else ()
    return tuple(replace(by_name[name], **changes) for name, changes in configs)


def isa_hash(config: Config | None = None) -> str:
    """The hash of a config's instruction set; without a config, of the set without options."""
    return _isa_hash(() if config is None else tuple(o for o in ENCODED if o.is_on(config)))


def isa_hashes() -> dict[tuple[str, ...], str]:
    """The hash of each instruction set there is, by the titles of the options it has."""
    return {
        tuple(option.title for option in options): _isa_hash(options)
        for count in range(len(ENCODED) + 1)
        for options in combinations(ENCODED, count)
        if all(option.needs <= {o.parameter.name for o in options} for option in options)
        and len([option for option in options if option.engine]) <= 1
    }


@cache
def _isa_hash(options: tuple[Option, ...]) -> str:
    parts = [*_encoding(PROBES), *_arithmetic(), f"semantics {SEMANTICS}"]
    for option in options:
        if option.probes:
            parts += [*_encoding(probes_of(option)), f"semantics {option.probes.semantics}"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:DIGITS]


def _encoding(probes: Sequence[Config]) -> Iterator[str]:
    enums: tuple[Iterable[Row | IntEnum], ...] = (
        numbered(probes[0]), memories(probes[0]), Init, operations(probes[0])
    )  # fmt: skip
    for members in map(tuple, enums):
        name = type(members[0]).__name__
        yield f"{name} " + " ".join(f"{each.name}={each.value}" for each in members)
    for cls in instruction_set(probes[0]):
        engine = ring_of(probes[0]).executor[cls]
        yield f"{cls.mnemonic} opcode {cls.opcode} engine {engine.name}"
    for record in (*instruction_set(probes[0]), Uop):
        for config in probes:
            yield from _fields(record, config)
    for config in probes:
        yield f"{config.name} {instruction_bytes(config)} {config.uop_entry} {config.uops_per_word}"


def _fields(record: type[Record], config: Config) -> Iterator[str]:
    for f, bit, width in record.layout(config):
        place = f"{record.__name__} {config.name} {bit} {width} {f.name}"
        values = f"{f.names_in(config)} {f.legal(config)}"
        yield f"{place} signed={f.signed} {values} multiple={f.multiple(config)}"


def _arithmetic() -> Iterator[str]:
    """``pack_scale`` and ``rq`` over scales and values at their ends and at ties."""
    scales = [1.0, 0.5, 0.75, 1 / 3, 3.0, 1e-3, 1 - 2.0**-25, 2.0**23]
    scales += [2.0**-40, 2.0**-63, 1.5 * 2.0**-62]
    words = [numbers.pack_scale(scale) for scale in scales]
    yield "pack " + " ".join(f"{word:x}" for word in words)
    words += [0, 1 << 24 | 1, 2 << 24 | 1, 2 << 24 | 3, 63 << 24 | 0xFFFFFF, 0xFFFFFF]
    values = [0, 1, -1, 2, -2, 3, -3, 5, -5, 6, -6, 127, -128, 1 << 23, -(1 << 23)]
    values += [numbers.INT32_MIN, numbers.INT32_MAX]
    for word in words:
        yield f"rq {word:x} " + " ".join(str(numbers.rq(value, word)) for value in values)
