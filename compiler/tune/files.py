"""Tuned schedules by a user's choice: the bundled ones, a file's, or none."""

from __future__ import annotations

from pathlib import Path

from vdla.compiler.tune.cpu.records import FunctionRecords, holds_functions
from vdla.compiler.tune.cpu.records import load as load_functions
from vdla.compiler.tune.records import BUNDLED, Records, load_own

Choice = str | Path | Records | FunctionRecords | None


def tuned(choice: Choice) -> Records | None:
    """Tuned schedules for the accelerator: the bundled ones, with those of a log; or, for "none",
    no schedules.

    Raises:
        RecordError: the file holds something else, or schedules for another instruction set.
        OSError: it can't be read.
    """
    if isinstance(choice, Records) or choice is None or isinstance(choice, FunctionRecords):
        return choice if isinstance(choice, Records) else BUNDLED
    if str(choice) == "none":
        return None
    path = Path(choice)
    return BUNDLED if holds_functions(path) else BUNDLED.with_more(load_own(path))


def tuned_functions(choice: Choice) -> FunctionRecords | None:
    """Tuned schedules for a processor: a log's, if it holds such.

    Raises:
        RecordError: the file holds something else.
        OSError: it can't be read.
    """
    if choice is None or isinstance(choice, Records | FunctionRecords):
        return choice if isinstance(choice, FunctionRecords) else None
    if str(choice) == "none" or not holds_functions(Path(choice)):
        return None
    records = load_functions(Path(choice))
    return FunctionRecords(lambda: records)
