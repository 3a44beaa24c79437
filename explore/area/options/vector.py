"""The vector engine: one unit of micro-ops more, its place in the core, and its last results."""

from __future__ import annotations

from collections.abc import Mapping

from vdla.boards.flows.yosys import CORE
from vdla.explore.area.added import REGISTERS, Features, adds_features
from vdla.isa.config import Config
from vdla.isa.options.vector import VECTOR, has_vector_engine


@REGISTERS.add
def registers(config: Config) -> Mapping[str, int]:
    """The last results of both engines of micro-ops."""
    acc = 32 * config.block_out * has_vector_engine(config)
    return {"COMPUTE": acc, VECTOR.name: acc}


@adds_features(CORE, "counters", "registers", "STORE")
def core(config: Config, unit: str) -> Features:
    """Features of a fourth engine in the units around it."""
    return {"vector engine": has_vector_engine(config)}


@adds_features("LOAD", behind="ACC bits")
def load(config: Config, unit: str) -> Features:
    """The way of its results to ACC."""
    return {"ACC bits, vector engine": 32 * config.block_out * has_vector_engine(config)}
