"""A user's operator among the accelerator's: its schedule is the user's, so there is one tile."""

from __future__ import annotations

import json
from dataclasses import dataclass

from vdla.compiler.schedule import Schedule
from vdla.compiler.user import Type, UserOperator
from vdla.isa.config import Config


@dataclass(frozen=True)
class UserShape:
    """An operator on inputs of some types; ``attributes`` are JSON."""

    operator: UserOperator
    types: tuple[Type, ...]
    attributes: str


@dataclass(frozen=True)
class UserTile:
    """The one point of its schedule space."""

    schedule: str = "the user's"


def schedule_user(shape: UserShape, config: Config) -> Schedule:
    """The user's schedule for a config."""
    return shape.operator.scheduled(shape.types, json.loads(shape.attributes), config)[0]
