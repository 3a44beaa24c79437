"""The window of GEMM: lanes that outputs see of it, vectors that it keeps, INP's second port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vdla.explore.area.added import (
    MICRO_OPS,
    PORTS,
    REGISTERS,
    Features,
    adds_features,
    lanes_in_fabric,
)
from vdla.isa.config import Config
from vdla.isa.instructions import Gemm
from vdla.isa.options.window import has_second_row, has_window, window_rows, window_taps
from vdla.isa.ring import ring_of


@PORTS.add
def ports(config: Config) -> Mapping[str, Sequence[frozenset[int]]]:
    """INP's second port is that of the second row, of which each output sees a channel."""
    seen = frozenset(range(8 * min(config.block_in, config.block_out)))
    return {"inp": (seen,)} if has_second_row(config) else {}


@REGISTERS.add
def registers(config: Config) -> Mapping[str, int]:
    """The second row, as it was read."""
    gemm = ring_of(config).executor[Gemm]
    return {gemm.name: 8 * config.inp_entry * has_second_row(config)}


@adds_features("GEMM")
def gemm(config: Config, unit: str) -> Features:
    """Lanes that are seen and kept."""
    lanes, rows = config.block_in, window_rows(config)
    window = 2 * window_taps(config) * rows
    seen = min(config.block_out, config.block_in) // 2 * min(window, lanes)
    return {
        "lanes seen in the window": seen,
        "lanes seen in the window, fabric": seen * lanes_in_fabric(config) / config.block_out,
        "lanes kept in the window": max(window_taps(config) - 1, 0) * rows * lanes,
    }


@adds_features(MICRO_OPS)
def micro_ops(config: Config, unit: str) -> Features:
    """Addresses of the second row."""
    own = ring_of(config).executor[Gemm].name == unit
    return {"window": has_window(config) * own, "second row": (window_rows(config) - 1) * own}
