"""The accelerator as schedules see it: its memories, and its instructions as tensor intrinsics.

Schedules are written against this, and code generation follows it. ``memory`` names the scopes,
``lowering`` says how a call of an intrinsic becomes instructions, ``intrinsics`` has one intrinsic
per operation of the ISA: its behaviour, the values its operands may hold, and the instruction it
is. The files of options add memories and intrinsics.
"""

from vdla.compiler.targets.accelerator.description.intrinsics import Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.description.memory import (
    ACC,
    BUFFER_OF_SCOPE,
    INP,
    WGT,
    entries,
)

__all__ = ["ACC", "BUFFER_OF_SCOPE", "INP", "WGT", "Intrinsics", "entries", "intrinsics"]
