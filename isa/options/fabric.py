"""Fabric lanes: lanes of an ACC vector whose products have no DSPs but LUTs. No cycle differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.options.option import Expectations, Option, Parameter

if TYPE_CHECKING:
    from vdla.isa.config import Config

LANES = Parameter(
    "fabric_lanes", "lanes of an ACC vector whose GEMM has no DSPs but LUTs", high=256,
    pace=True,
)  # fmt: skip


def fabric_lanes(config: Config) -> int:
    """Lanes of an ACC vector whose products are made of LUTs."""
    return LANES.of(config)


def _checks(config: Config) -> Expectations:
    lanes = fabric_lanes(config)
    yield (
        lanes % 2 == 0 and lanes <= config.block_out,
        "fabric_lanes to be even, since two lanes share DSPs, and at most block_out = "
        f"{config.block_out}, found {lanes}",
    )


OPTIONS = (Option(rank=7, title="fabric lanes", parameter=LANES, checks=_checks),)
