"""An option of a config: an optional unit, declared whole in one file of this folder.

    file of isa/options     parameters and their checks · memories · operations · instructions and
                            fields · its engine · what instructions read and write · identity

A config without an option is the one that it was before anybody thought of the option: it has the
same encoding, hashes, cycles and Verilog. The files of the same name in ``sim/options``,
``hw/options`` and the other rooms say what the unit does there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vdla.isa.engines import Engine
from vdla.isa.fields import Field
from vdla.isa.operations import AluOp
from vdla.isa.scratchpads import Mem

if TYPE_CHECKING:
    from vdla.isa.config import Config

# Pairs: whether something holds, and what is expected, for the error if it doesn't.
Expectations = Iterable[tuple[bool, str]]
Checks = Callable[["Config"], Expectations]


def no_checks(config: Config) -> Expectations:
    """Nothing more than the parameter's range is expected of a config."""
    return ()


@dataclass(frozen=True)
class Parameter:
    """An option's key in a config: an integer from ``low`` to ``high``, ``off`` where it's absent.

    ``pace`` says that it changes no instruction, at most when instructions run.
    """

    name: str
    doc: str
    off: int = 0
    low: int = 0
    high: int = 1
    pace: bool = False

    def of(self, config: Config) -> int:
        """The value that a config has."""
        return int(getattr(config, self.name))


@dataclass(frozen=True)
class Probes:
    """An option's part of the instruction set's hash.

    ``configs`` have the option: the name of a probe in ``isa/identity.py``, and what is different.
    ``semantics`` is a digest, as ``SEMANTICS`` in ``isa/operations.py`` is one, of the instructions
    that the option adds or changes.
    """

    configs: tuple[tuple[str, Mapping[str, Any]], ...]
    semantics: str


@dataclass(frozen=True)
class AddedField:
    """A field that an instruction has behind another one."""

    instruction: str  # its mnemonic
    behind: str
    name: str
    field: Field


@dataclass(frozen=True)
class AddedEngine:
    """An engine that stands behind another one in the ring, and the mnemonics that it executes."""

    engine: Engine
    behind: Engine
    executes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Option:
    """An optional unit.

    Attributes:
        rank: when options came: the order of keys in a config file, and of an ISA hash's parts.
        title: the word for it in sentences: "with tables".
        parameter: the key that turns it on.
        checks: what the option expects of a config.
        needs: parameters of the options that it can't be without.
        operations, memories: rows that only a config with it has.
        fields: what it adds to instructions.
        stores: memories that a STORE may name, too.
        reads, writes: what instructions, by their mnemonics, read and write more than without it.
        engine: the engine that it puts into the ring; a config has one of these at most.
        probes: its part of the ISA's hash; None where it leaves the instruction set as it is.
    """

    rank: int
    title: str
    parameter: Parameter
    checks: Checks = no_checks
    needs: frozenset[str] = frozenset()
    operations: tuple[AluOp, ...] = ()
    memories: tuple[Mem, ...] = ()
    fields: tuple[AddedField, ...] = ()
    stores: tuple[Mem, ...] = ()
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, Any])
    writes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, Any])
    engine: AddedEngine | None = None
    probes: Probes | None = None

    def is_on(self, config: Config) -> bool:
        """Whether a config has the option."""
        return self.parameter.of(config) != self.parameter.off
