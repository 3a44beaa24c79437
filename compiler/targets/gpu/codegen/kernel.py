"""One kernel, as the printers take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.tir.ir import Buffer, Stmt


@dataclass(frozen=True)
class Kernel:
    """One kernel's name, the buffers that it gets, in order, and its statements."""

    name: str
    buffers: Sequence[Buffer]
    body: Stmt
