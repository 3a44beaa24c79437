"""Reciprocals: the units beside ALU, and lanes that round 32 bits."""

from __future__ import annotations

from vdla.explore.area.added import MICRO_OPS, Features, adds_features
from vdla.isa.config import Config
from vdla.isa.instructions import Alu
from vdla.isa.options.lanes import alu_lanes
from vdla.isa.options.reciprocals import reciprocal_units
from vdla.isa.ring import ring_of


@adds_features("ALU", before="lanes beside GEMM")
def alu(config: Config, unit: str) -> Features:
    """A wider shift for each lane that multiplies."""
    return {"lanes that multiply, reciprocals": alu_lanes(config) * bool(reciprocal_units(config))}


@adds_features(MICRO_OPS)
def micro_ops(config: Config, unit: str) -> Features:
    """The units, and the results that wait for them, where ALU is executed."""
    units = reciprocal_units(config) * (ring_of(config).executor[Alu].name == unit)
    return {
        "reciprocals": bool(units),
        "reciprocal units": units,
        "ACC bits, reciprocals": 32 * config.block_out * bool(units),
    }
