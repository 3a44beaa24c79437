"""Lanes: how many multipliers the ALU and STORE have. With fewer than lanes, they take these in
groups, one after the other, and the same instructions take longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.options.option import Expectations, Option, Parameter

if TYPE_CHECKING:
    from vdla.isa.config import Config

ALU_GROUPS = Parameter(
    "alu_groups", "groups of a vector's lanes that the ALU multiplies one after the other",
    off=1, low=1, high=256, pace=True,
)  # fmt: skip
STORE_GROUPS = Parameter(
    "store_groups", "groups of a beat's lanes that STORE requantizes one after the other",
    off=1, low=1, high=4, pace=True,
)  # fmt: skip


def alu_groups(config: Config) -> int:
    """Groups of lanes that the ALU's multipliers take one after the other."""
    return ALU_GROUPS.of(config)


def alu_lanes(config: Config) -> int:
    """Lanes of a vector that the ALU multiplies at a time."""
    return config.block_out // alu_groups(config)


def store_groups(config: Config) -> int:
    """Groups of lanes that make a beat of requantized bytes; a raw beat has a quarter as many."""
    return STORE_GROUPS.of(config)


def store_lanes(config: Config) -> int:
    """Lanes of an ACC vector that STORE requantizes at a time."""
    return config.port_bytes // store_groups(config)


def _check_alu(config: Config) -> Expectations:
    """Groups are full."""
    groups = alu_groups(config)
    yield (
        config.block_out % groups == 0,
        f"alu_groups to divide block_out = {config.block_out}, found {groups}",
    )


def _check_store(config: Config) -> Expectations:
    """A beat has a power of two of groups."""
    groups = store_groups(config)
    yield groups != 3, f"store_groups to be 1, 2 or 4, found {groups}"


OPTIONS = (
    Option(rank=8, title="ALU groups", parameter=ALU_GROUPS, checks=_check_alu),
    Option(rank=9, title="STORE groups", parameter=STORE_GROUPS, checks=_check_store),
)
