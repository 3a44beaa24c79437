"""Options of a config: a file each, all found by being here; see ``option``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from vdla.isa.operations import AluOp
from vdla.isa.options.option import Option
from vdla.isa.scratchpads import Mem

if TYPE_CHECKING:
    from vdla.isa.config import Config


def option_files() -> list[ModuleType]:
    """The files that declare options, in the order of these."""
    modules = (import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
    declaring = (module for module in modules if hasattr(module, "OPTIONS"))
    return sorted(declaring, key=lambda module: module.OPTIONS[0].rank)


OPTIONS: tuple[Option, ...] = tuple(each for module in option_files() for each in module.OPTIONS)


@cache
def options_of(config: Config) -> tuple[Option, ...]:
    """The options that a config has."""
    return tuple(option for option in OPTIONS if option.is_on(config))


@cache
def operations(config: Config) -> tuple[AluOp, ...]:
    """Operations of the config's ALU."""
    absent = {row for option in _off(config) for row in option.operations}
    return tuple(row for row in AluOp if row not in absent)


@cache
def memories(config: Config) -> tuple[Mem, ...]:
    """Memories that a LOAD of the config may name."""
    absent = {row for option in _off(config) for row in option.memories}
    return tuple(row for row in Mem if row not in absent)


@cache
def stored_memories(config: Config) -> tuple[Mem, ...]:
    """Memories that a STORE of the config may name."""
    more = (row for option in options_of(config) for row in option.stores)
    return tuple(sorted((Mem.ACC, Mem.ACC8, *more)))


def _off(config: Config) -> tuple[Option, ...]:
    return tuple(option for option in OPTIONS if not option.is_on(config))
