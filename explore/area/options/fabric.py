"""Fabric lanes: products of GEMM that are made of LUTs."""

from __future__ import annotations

from vdla.explore.area.added import FABRIC_LANES, Features, adds_features
from vdla.isa.config import Config
from vdla.isa.options.fabric import fabric_lanes

FABRIC_LANES.add(fabric_lanes)


@adds_features("GEMM", behind="lanes with DSPs")
def products(config: Config, unit: str) -> Features:
    """Products in LUTs."""
    lanes = fabric_lanes(config)
    return {
        "multiply-adds in the fabric": config.block_in * lanes,
        "lanes in the fabric": lanes,
    }


@adds_features("GEMM", behind="input lanes")
def inputs(config: Config, unit: str) -> Features:
    """Lanes that such products read."""
    return {"input lanes, fabric": config.block_in * bool(fabric_lanes(config))}
