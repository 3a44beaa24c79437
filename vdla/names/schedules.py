"""Tuned schedules by the names that users give: a log's, "none", or the bundled ones."""

from __future__ import annotations

from pathlib import Path

from vdla.compiler.search.records import holds, load
from vdla.compiler.targets.accelerator.search.kernel_records import KernelRecord, KernelRecords
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords, load_own
from vdla.compiler.targets.processor.search import bundled
from vdla.compiler.targets.search.function_records import FunctionRecord, FunctionRecords

Tuned = str | Path | TileRecords | FunctionRecords | None


def tuned_tiles(choice: Tuned, board: str | None = None) -> TileRecords | None:
    """Tuned schedules for the accelerator: the bundled ones, with those of a log; or, for "none",
    no schedules. For a ``board``, what was measured on it goes before what was simulated.

    Raises:
        RecordError: the file holds something else, or schedules for another instruction set.
        OSError: it can't be read.
    """
    records = _tuned_tiles(choice)
    return records.on(board) if records and board else records


def _tuned_tiles(choice: Tuned) -> TileRecords | None:
    """Tuned schedules for the accelerator, wherever they were measured."""
    if choice is None or isinstance(choice, TileRecords | FunctionRecords):
        return choice if isinstance(choice, TileRecords) else BUNDLED
    if str(choice) == "none":
        return None
    path = Path(choice)
    return BUNDLED if holds(path, FunctionRecord) else BUNDLED.with_more(load_own(path))


def tuned_functions(choice: Tuned) -> FunctionRecords | None:
    """Tuned schedules for a processor: the bundled ones, with those of a log, if it holds such; or,
    for "none", no schedules.

    Raises:
        RecordError: the file holds something else.
        OSError: it can't be read.
    """
    if choice is None or isinstance(choice, TileRecords | FunctionRecords):
        return choice if isinstance(choice, FunctionRecords) else bundled.BUNDLED
    if str(choice) == "none":
        return None
    own = load(Path(choice), FunctionRecord) if holds(Path(choice), FunctionRecord) else []
    return bundled.BUNDLED.with_more(own) if own else bundled.BUNDLED


def tuned_kernels(path: str | Path) -> KernelRecords:
    """Schedules of users' kernels for the accelerator, of a log.

    Raises:
        RecordError: the file holds something else.
        OSError: it can't be read.
    """
    return KernelRecords(lambda: load(Path(path), KernelRecord))
