"""The on-chip memories as scopes of buffers: ``"vdla.inp"``, ``"vdla.wgt"`` and ``"vdla.acc"``."""

from __future__ import annotations

from math import prod

from vdla.compiler.tir.ir import Buffer
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

INP, WGT, ACC = "vdla.inp", "vdla.wgt", "vdla.acc"
BUFFER_OF_SCOPE = {INP: "inp", WGT: "wgt", ACC: "acc"}


def entry_shape(scope: str, config: Config) -> tuple[int, ...]:
    """The elements of one entry of an on-chip memory."""
    shapes: dict[str, tuple[int, ...]] = {
        INP: (config.block_in,),
        WGT: (config.block_out, config.block_in),
        ACC: (config.block_out,),
    }
    return shapes[scope]


def entries(buffer: Buffer, config: Config) -> int:
    """How many entries one copy of a buffer takes: its elements over the lanes of an entry."""
    return ceil_div(prod(buffer.shape), prod(entry_shape(buffer.scope, config)))
