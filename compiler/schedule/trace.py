"""The sequence of primitives that made a schedule: plain JSON, and replayable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive: what was applied to which stage. Loops are named `stage.loop`."""

    primitive: str
    stage: str
    args: Mapping[str, Json] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        return {"primitive": self.primitive, "stage": self.stage, "args": dict(self.args)}

    @staticmethod
    def from_json(data: Mapping[str, Json]) -> Step:
        return Step(data["primitive"], data["stage"], dict(data.get("args", {})))


Trace = list[Step]


def to_json(trace: Trace) -> list[dict[str, Json]]:
    return [step.to_json() for step in trace]


def from_json(data: list[dict[str, Json]]) -> Trace:
    return [Step.from_json(item) for item in data]
