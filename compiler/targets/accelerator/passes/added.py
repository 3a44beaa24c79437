"""Passes over loops that options add, before virtual threads are injected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vdla.compiler.tir.ir import PrimFunc
from vdla.isa.config import Config
from vdla.support.seams import Seam


@dataclass(frozen=True)
class AddedPass:
    """A pass by its name, and whether a config's loops need it."""

    name: str
    run: Callable[[PrimFunc], PrimFunc]
    is_needed: Callable[[Config], bool]


ADDED: Seam[AddedPass] = Seam()


def added_passes(config: Config) -> list[AddedPass]:
    """The passes that a config's loops need."""
    return [each for each in ADDED if each.is_needed(config)]
