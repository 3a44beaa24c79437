"""The search for schedules as a command has it, whatever is searched for."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from vdla.api import tuning
from vdla.commands.output import check_folder, console, log, print_json, progress
from vdla.compiler.search.records import AnyRecord, Log, export, load
from vdla.compiler.search.tuner import Task
from vdla.options import Tune

AnyTask = TypeVar("AnyTask", bound=Task[Any, Any, Any])


class Tuning(ABC, Generic[AnyTask, AnyRecord]):
    """One run of the command: a target says what is searched for, and how that is told.

    ``NOUN`` is what its records are the best of; ``of`` is their kind.
    """

    NOUN: ClassVar[str]

    def __init__(self, model: str, options: Tune, of: type[AnyRecord]) -> None:
        self.model, self.options, self.of = model, options, of

    def run(self, exported: Path | None, json: bool) -> None:
        """Searches, prints what was found per task, and exports the best records."""
        path = Path(self.options.log)
        check_folder(path)
        before: list[AnyRecord] = []
        if exported is not None:
            check_folder(exported)
            before = load(exported, self.of) if exported.exists() else []
        begun = time.monotonic()
        tasks = self.tasks()
        with Log(path, self.of) as opened, progress() as update:
            if opened.cut:
                log.print(f"{path}: removed {opened.cut} bytes of a record that was cut off")
            self.tell_resumed(opened)
            tuning.search(tasks, replace(self.options, progress=update), opened)
            everything = list(opened.records)
        seconds = time.monotonic() - begun
        if json:
            print_json(self.to_json(tasks, seconds))
        else:
            self.show(tasks)
            tried = sum(task.trials - task.resumed for task in tasks)
            console.print(f"{tried} candidates measured in {seconds:.0f} s{self.summary(tasks)}")
        self.tell_failures(tasks)
        if exported is not None:
            count = export([*before, *everything], exported)
            log.print(f"wrote {exported}: the best of {count} {self.NOUN}")

    @abstractmethod
    def tasks(self) -> Sequence[AnyTask]:
        """Tasks of the search."""

    def tell_resumed(self, opened: Log[AnyRecord]) -> None:
        """Says what of the log doesn't count."""

    @abstractmethod
    def to_json(self, tasks: Sequence[AnyTask], seconds: float) -> dict[str, object]:
        """Results for programs."""

    @abstractmethod
    def show(self, tasks: Sequence[AnyTask]) -> None:
        """Prints what was found as a table; the schedules themselves are in the log."""

    def summary(self, tasks: Sequence[AnyTask]) -> str:
        """Text below the table, behind the number of candidates."""
        return ""

    @abstractmethod
    def tell_failures(self, tasks: Sequence[AnyTask]) -> None:
        """Says which tasks lost candidates."""


def and_more(task: Task[Any, Any, Any]) -> str:
    """The first of a task's layers, and how many more have it."""
    more = f" and {len(task.layers) - 1} more" if len(task.layers) > 1 else ""
    return f"{task.layers[0]}{more}"
