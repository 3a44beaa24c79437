"""Reciprocals: units that compute 1 / y and 1 / √y bit by bit, and SCALE, which uses them.

RECIPROCAL and RSQRT give scale words, as ``pack_scale`` makes them: SCALE and RQ multiply by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.operations import AluOp, X
from vdla.isa.options.option import Expectations, Option, Parameter, Probes

if TYPE_CHECKING:
    from vdla.isa.config import Config

UNITS = Parameter(
    "reciprocal_units", "lanes whose reciprocals are computed at a time; 0: none", high=256
)


def reciprocal_units(config: Config) -> int:
    """Lanes whose reciprocals are computed at a time; 0: the config has no units."""
    return UNITS.of(config)


def reciprocal_groups(config: Config) -> int:
    """Groups of lanes that the units take one after another; 0 without units."""
    units = reciprocal_units(config)
    return config.block_out // units if units else 0


def _checks(config: Config) -> Expectations:
    """The units take the lanes of a vector in groups that are all full."""
    units = reciprocal_units(config)
    yield (
        units & (units - 1) == 0 and (units == 0 or config.block_out % units == 0),
        "reciprocal_units to be 0 or a power of two that divides block_out = "
        f"{config.block_out}, found {units}",
    )


SCALE = AluOp.add(8, "SCALE", words="rq(x, y)", x=X.EARLY, imm="scale")
RECIPROCAL = AluOp.add(
    9, "RECIPROCAL", words="the scale word of 1 / y", x=X.NONE, y_from_acc=True, serial=True
)
RSQRT = AluOp.add(
    10, "RSQRT", words="the scale word of 1 / √y", x=X.NONE, y_from_acc=True, serial=True
)

OPTIONS = (
    Option(
        rank=6,
        title="reciprocals",
        parameter=UNITS,
        checks=_checks,
        operations=(SCALE, RECIPROCAL, RSQRT),
        probes=Probes((("a", {UNITS.name: 4}), ("b", {UNITS.name: 1})), "3b4e525c"),
    ),
)
