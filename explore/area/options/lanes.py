"""Lanes in groups: what ALU and STORE keep of the groups before a vector's last, or a beat's."""

from __future__ import annotations

from vdla.explore.area.added import Features, adds_features
from vdla.isa.config import Config
from vdla.isa.options.lanes import alu_lanes, store_lanes


@adds_features("ALU", behind="lanes that multiply")
def alu(config: Config, unit: str) -> Features:
    """Lanes that are kept: as many are chosen from for those that multiply."""
    return {"lanes kept": config.block_out - alu_lanes(config)}


@adds_features("STORE", behind="lanes that multiply")
def store(config: Config, unit: str) -> Features:
    """Bytes that are kept."""
    return {"bytes kept": config.port_bytes - store_lanes(config)}
