"""Facts of a config's ring of engines that schedules and their costs depend on."""

from __future__ import annotations

from functools import cache

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Gemm
from vdla.isa.ring import ring_of


@cache
def alu_beside_gemm(config: Config) -> bool:
    """Whether ALU has an engine of its own, which works beside GEMM's."""
    executor = ring_of(config).executor
    return executor[Alu] != executor[Gemm]
