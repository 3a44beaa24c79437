"""The vector engine: its place in the core."""

from __future__ import annotations

from vdla.boards.flows.yosys import CORE
from vdla.explore.area.added import Features, adds_features
from vdla.isa.config import Config
from vdla.isa.options.vector import has_vector_engine


@adds_features(CORE, "counters", "registers", "STORE")
def core(config: Config, unit: str) -> Features:
    """Features of a fourth engine in the units around it."""
    return {"vector engine": has_vector_engine(config)}


@adds_features("LOAD", behind="ACC bits")
def load(config: Config, unit: str) -> Features:
    """The way of its results to ACC."""
    return {"ACC bits, vector engine": 32 * config.block_out * has_vector_engine(config)}
