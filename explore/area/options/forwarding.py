"""Forwarding: STORE's way to INP, and LOAD's vectors that wait for it."""

from __future__ import annotations

from collections.abc import Mapping

from vdla.explore.area.added import REGISTERS, Features, adds_features
from vdla.isa.config import Config
from vdla.isa.options.forwarding import forwards


@REGISTERS.add
def registers(config: Config) -> Mapping[str, int]:
    """LOAD keeps a whole vector of INP, where that is longer than one of ACC."""
    return {"LOAD": max(8 * config.inp_entry * forwards(config) - 32 * config.block_out, 0)}


@adds_features("LOAD", behind="address bits")
def load(config: Config, unit: str) -> Features:
    """Vectors that are written at once."""
    on = forwards(config)
    return {"forwarding": on, "INP bits, forwarding": 8 * config.inp_entry * on}


@adds_features("STORE")
def store(config: Config, unit: str) -> Features:
    """Addresses of INP."""
    on = forwards(config)
    return {"forwarding": on, "INP address bits, forwarding": config.index_bits("inp") * on}
