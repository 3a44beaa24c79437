"""A design of a front as files that the other commands take: its config, its tuned schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla.compiler.search.records import export as export_records
from vdla.explore.errors import ExploreError
from vdla.explore.search import Exploration
from vdla.support.files import write_bytes
from vdla.support.names import LONGEST_NAME


def export(result: Exploration, number: int, folder: Path) -> list[Path]:
    """Writes design ``number`` of a front, counted from 1, as ``SPACE-NUMBER.toml``; where its
    schedules are tuned, their records as ``SPACE-NUMBER.jsonl``, too. Each file is whole or not
    there.

    Raises:
        ExploreError: the front has no such design.
        OSError: a file can't be written.
    """
    count = len(result.front)
    if not 1 <= number <= count:
        raise ExploreError(
            f"--export: expected a design of the front, from 1 to {count}, found {number}"
            if count
            else f"--export: expected a front with designs, found none to export as {number}"
        )
    point = result.front[number - 1]
    folder.mkdir(parents=True, exist_ok=True)
    ending = f"-{number}"
    name = result.space.name[: LONGEST_NAME - len(ending)] + ending
    files = [folder / f"{name}.toml"]
    config = replace(result.evaluations[point].config, name=name)
    write_bytes(files[0], config.to_toml().encode())
    if records := result.records.get(point):
        files.append(folder / f"{name}.jsonl")
        export_records(records, files[1])
    return files
