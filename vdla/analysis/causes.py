"""Causes for which operators stay on the host: what they cost there, and what would remove them.

Reasons of placement name tensors and sizes, so that no two are alike. Here they are grouped by what
is the same about them; a reason that no rule knows is a cause of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vdla.analysis.profile import Profile
from vdla.compiler.placement import ACCELERATOR


class Rule(NamedTuple):
    """Reasons that have some text are of a cause, which a remedy removes; empty where none does."""

    text: str
    cause: str
    remedy: str


RULES = (
    Rule("kept on the host by --strict", "--strict", "leave out --strict"),
    Rule("the user placed it", "--place", "leave out --place"),
    Rule("by cost:", "faster on the host", "--placement capability"),
    Rule("has no tables|has no two tables", "no tables of functions", "--set table_bytes=2048"),
    Rule("has no reciprocals", "no reciprocals", "--set reciprocal_units=4"),
    Rule("has no STORE to INP", "no STORE to INP", "--set forwarding=1"),
    Rule(
        "expected buffers that hold|buffers don't hold|WGT doesn't hold|tiles of wgt",
        "buffers too small",
        "--set inp_bytes=…, wgt_bytes=… or acc_bytes=… of twice the size",
    ),
    Rule("input channels? fills?", "few input channels", "a config of fewer lanes: block_in"),
    Rule(
        "end with a block of",
        "channels that fill no block",
        "layers whose channels are multiples of the block",
    ),
    Rule("no range follows", "floats without ranges", "--calibration X.npz, samples of the inputs"),
    Rule(
        "nothing quantizes|is not quantized|expected quantized",
        "floats in the file",
        "quantize the operators around, too: vdla quantize without --exclude",
    ),
    Rule(
        "scale per channel|scale for each channel",
        "activations with a scale for each channel",
        "one scale for each activation",
    ),
    Rule("^float operator", "operators without integers", ""),
    Rule(
        "layout change|channel blocks|elements other than|images of which|pixels other than",
        "moves of elements",
        "they go with the operators beside which they stand",
    ),
    Rule(
        "float input becomes integers|integers become float output",
        "conversions of numbers",
        "they go with the operators beside which they stand",
    ),
)


@dataclass(frozen=True)
class Cause:
    """A cause and the operators of it.

    ``operators`` counts them by kind, ``between`` those that stand between the accelerator's first
    and last; ``seconds`` are those of the host, ``cycles`` what the accelerator's clock counts
    meanwhile. ``example`` is one of the reasons, in full.
    """

    name: str
    remedy: str
    operators: Mapping[str, int]
    between: int
    seconds: float
    cycles: int
    example: str


def causes(rows: Sequence[Mapping[str, str]], profile: Profile, clock_hz: float) -> list[Cause]:
    """Causes of all that stays on the host, what costs most first.

    Args:
        rows: of a module's placement.
        profile: of its steps.
        clock_hz: the accelerator's.
    """
    seconds = {step.name: step.seconds or 0.0 for step in profile.steps}
    places = [n for n, row in enumerate(rows) if row["device"] == ACCELERATOR]
    groups: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(rows):
        if row["device"] != ACCELERATOR:
            groups.setdefault(cause_of(row["reason"]), []).append(number)
    result = []
    for (name, remedy), numbers in groups.items():
        own = [rows[n] for n in numbers]
        took = sum(seconds.get(row["name"], 0.0) for row in own)
        result.append(
            Cause(
                name,
                remedy,
                dict(Counter(row["op"] for row in own).most_common()),
                sum(places[0] < n < places[-1] for n in numbers) if places else 0,
                took,
                round(took * clock_hz),
                own[0]["reason"],
            )
        )
    return sorted(result, key=lambda cause: -cause.seconds)


def cause_of(reason: str) -> tuple[str, str]:
    """Name and remedy of a reason's cause."""
    for text, cause, remedy in RULES:
        if re.search(text, reason):
            return cause, remedy
    return reason, ""
