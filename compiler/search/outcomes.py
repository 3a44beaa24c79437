"""Outcomes of candidates that are measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

STATUSES = ("ok", "illegal", "crash", "timeout")


@dataclass(frozen=True)
class Outcome(ABC):
    """Outcome of a candidate; a target adds its figures, which are there for "ok" alone.

    ``status`` is "ok", "illegal" (``note`` says why), "crash" or "timeout".
    """

    status: str
    note: str = ""

    @property
    @abstractmethod
    def cost(self) -> float:
        """Cost that the search makes as low as it can; infinity unless ``status`` is "ok"."""


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)
