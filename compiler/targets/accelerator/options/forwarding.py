"""Forwarding: vectors of ACC requantized into INP, whose entries have as many lanes."""

from __future__ import annotations

from vdla.compiler.targets.accelerator.description.declared import Declared
from vdla.compiler.targets.accelerator.description.intrinsics import add_intrinsics
from vdla.compiler.targets.accelerator.description.memory import INP
from vdla.compiler.targets.accelerator.description.transfers import PADDED, store8
from vdla.isa.config import Config
from vdla.isa.instructions import Mem
from vdla.isa.options.forwarding import OPTIONS, forwards

(_OPTION,) = OPTIONS
add_intrinsics(
    Declared("keep8", "an ACC vector to INP, requantized to int8", store8(Mem.INP, INP), _OPTION),
    Declared("keep8_pad", f"keep8{PADDED}", store8(Mem.INP, INP, padded=True), _OPTION),
)


def no_forwarding(config: Config) -> str | None:
    """Reason for which a config can't keep results in INP; None where it can."""
    if forwards(config):
        return None
    return f"config {config.name} has no STORE to INP (forwarding = 0)"
