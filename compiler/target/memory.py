"""The on-chip memories as scopes of buffers: ``"vdla.inp"``, ``"vdla.wgt"`` and ``"vdla.acc"``."""

from __future__ import annotations

from math import prod

from vdla.compiler.tir.ir import Buffer
from vdla.isa.config import Config

INP, WGT, ACC = "vdla.inp", "vdla.wgt", "vdla.acc"
BUFFER_OF_SCOPE = {INP: "inp", WGT: "wgt", ACC: "acc"}


def entries(buffer: Buffer, config: Config) -> int:
    """How many entries one copy of a buffer takes: its elements over the lanes of an entry."""
    lanes = {INP: config.block_in, WGT: config.block_in * config.block_out, ACC: config.block_out}
    return -(-prod(buffer.shape) // lanes[buffer.scope])
