"""Lanes: how many multipliers the ALU and STORE have. With fewer than lanes, they take these in
groups, one after the other, and the same instructions take longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.options.option import Expectations, Option, Parameter

if TYPE_CHECKING:
    from vdla.isa.config import Config

ALU_LANES = Parameter(
    "alu_lanes", "lanes of a vector that the ALU multiplies at a time; 0: all", high=256, pace=True
)
STORE_LANES = Parameter(
    "store_lanes", "lanes that STORE requantizes at a time; 0: a beat's", high=128, pace=True
)
LEAST = 4  # of a beat's lanes STORE takes a quarter at least: those of a raw beat


def alu_lanes(config: Config) -> int:
    """Lanes of a vector that the ALU multiplies at a time."""
    return ALU_LANES.of(config) or config.block_out


def alu_groups(config: Config) -> int:
    """Groups of lanes that the ALU's multipliers take one after the other."""
    return config.block_out // alu_lanes(config)


def store_lanes(config: Config) -> int:
    """Lanes of an ACC vector that STORE requantizes at a time."""
    return STORE_LANES.of(config) or config.port_bytes


def store_groups(config: Config) -> int:
    """Groups of lanes that make a beat of requantized bytes."""
    return config.port_bytes // store_lanes(config)


def _check_alu(config: Config) -> Expectations:
    """Groups are full."""
    lanes = ALU_LANES.of(config)
    yield (
        lanes == 0 or config.block_out % lanes == 0,
        f"alu_lanes to be 0 or to divide block_out = {config.block_out}, found {lanes}",
    )


def _check_store(config: Config) -> Expectations:
    """Groups are full, and none is smaller than a raw beat's lanes."""
    lanes, port = STORE_LANES.of(config), config.port_bytes
    allowed = [port >> n for n in range(LEAST.bit_length())]
    yield (
        lanes in (0, *allowed),
        f"store_lanes to be 0, {', '.join(map(str, allowed[:-1]))} or {allowed[-1]}, found {lanes}",
    )


OPTIONS = (
    Option(rank=8, title="ALU lanes", parameter=ALU_LANES, checks=_check_alu),
    Option(rank=9, title="STORE lanes", parameter=STORE_LANES, checks=_check_store),
)
