"""Weights of 4 bits: LOAD chooses between a beat and two beats of widened nibbles."""

from __future__ import annotations

from vdla.explore.area.added import Features, adds_features
from vdla.isa.config import Config
from vdla.isa.options.weights4 import has_weights4


@adds_features("LOAD")
def load(config: Config, unit: str) -> Features:
    """Bits that come of a beat of nibbles, and the columns of WGT that they go to."""
    on = has_weights4(config)
    return {
        "port bits, weights of 4 bits": 8 * config.port_bytes * on,
        "columns, weights of 4 bits": config.wgt_entry // config.port_bytes * on,
    }
