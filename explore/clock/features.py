"""Features that a core's longest path grows with: a few numbers that follow from the config.

A buffer of twice the entries has an address of a bit more; twice the lanes double the sinks of what
tells them all; a deeper queue compares longer pointers. So features are logarithms, and whether an
option is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from vdla.isa.config import Config
from vdla.isa.options import OPTIONS

BUFFERS = ("inp", "wgt", "acc", "uop")
ONCE = "once"  # what a path has whatever the config is


def features(config: Config) -> Mapping[str, float]:
    """The features of a config, by name; none is below 0."""
    return {
        ONCE: 1.0,
        **{f"{name} address bits": config.index_bits(name) for name in BUFFERS},
        "doublings of block_in": log2(config.block_in),
        "doublings of block_out": log2(config.block_out),
        "doublings of the port": log2(config.port_bytes),
        "doublings of commands": log2(config.command_queue),
        "doublings of tokens": log2(config.token_queue),
        "doublings of reads": log2(config.reads_in_flight),
        "doublings of writes": log2(config.writes_in_flight),
        "doublings of beats": log2(config.read_buffer_beats),
        "doublings of a burst": log2(config.burst_beats),
        **{option.title: float(option.is_on(config)) for option in OPTIONS},
    }
