"""Hooks: what the options of a config do in the units, each from its own file in ``hw/options``.

1. A unit that options may change has a class of hooks. Its attributes and methods are the unit's
   seams: each says what an option may do there, and does nothing itself.
2. The file of an option has a subclass for each unit that the option changes. The file is found by
   being in ``hw/options``; no list names it.
3. A unit asks the hooks of the options that its config has, in the order of the options' ranks in
   ``isa/options``. Where an option is off, it has no hook, no port and no logic.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import ClassVar, TypeVar

from amaranth.lib.wiring import Member

from vdla.isa.config import Config
from vdla.isa.options.option import Option

H = TypeVar("H", bound="Hooks")


class Hooks:
    """Hooks of an option in one unit; ``option`` is the option's declaration in ``isa/options``."""

    option: ClassVar[Option]

    def __init__(self, config: Config) -> None:
        self.config = config


class PortHooks(Hooks):
    """Hooks of an option in one unit, which has ports for the option."""

    def ports(self) -> dict[str, Member]:
        """Ports that the unit has with the option."""
        return {}


def ports_of(hooks: Iterable[PortHooks]) -> dict[str, Member]:
    """All ports that a unit has by its hooks."""
    return {name: port for hook in hooks for name, port in hook.ports().items()}


def hooks_of(seams: type[H], config: Config) -> tuple[H, ...]:
    """The hooks that a config's options have at the seams of a unit, made for that unit."""
    return tuple(cls(config) for cls in _declared(seams) if cls.option.is_on(config))


@cache
def _declared(seams: type[H]) -> tuple[type[H], ...]:
    """The classes of hooks in the options' files, which import the units: they are loaded late."""
    files = import_module("vdla.hw.options").option_files()
    classes = [each for file in files for each in vars(file).values() if _is_hooks(each, seams)]
    return tuple(sorted(dict.fromkeys(classes), key=lambda each: each.option.rank))


def _is_hooks(each: object, seams: type[H]) -> bool:
    return isinstance(each, type) and issubclass(each, seams) and each is not seams
