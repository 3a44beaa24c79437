"""The sequence of primitives that made a schedule: plain JSON, and replayable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive as it was applied: its name, the stage, and its arguments as plain JSON.

    Loops are named ``stage.loop``, intrinsics by their names.
    """

    primitive: str
    stage: str
    args: Mapping[str, Json] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """The step as a dictionary of plain JSON."""
        return {"primitive": self.primitive, "stage": self.stage, "args": dict(self.args)}

    @staticmethod
    def from_json(data: Mapping[str, Json]) -> Step:
        """The step of which ``to_json`` made ``data``."""
        return Step(data["primitive"], data["stage"], dict(data.get("args", {})))


Trace = list[Step]


def to_json(trace: Trace) -> list[dict[str, Json]]:
    """A trace as plain JSON: a list with one dictionary per step."""
    return [step.to_json() for step in trace]


def from_json(data: list[dict[str, Json]]) -> Trace:
    """The trace of which ``to_json`` made ``data``."""
    return [Step.from_json(item) for item in data]
