"""Options of a config in hardware: a file each, named as in ``isa/options``; see ``hooks.py``."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def option_files() -> list[ModuleType]:
    """The files of this folder: each is found by being here."""
    return [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
