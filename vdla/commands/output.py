"""Printing: JSON or tables on stdout, progress on stderr, files written whole or not at all."""

from __future__ import annotations

import json as jsonlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from vdla.commands.tables import fitted
from vdla.compiler.schedule_words import schedule_words
from vdla.options.spelling import UsageError
from vdla.support import files
from vdla.support.names import printable
from vdla.support.progress import heard_by

if TYPE_CHECKING:  # the simulator takes long to import
    from vdla.runtime.module import Module
    from vdla.sim.energy import Energy, EnergyTable

# Names and paths are printed as they are: no markup, no line breaks of our own.
PLAIN: dict[str, Any] = {"markup": False, "emoji": False}
# With a unit, or a dash where there is none.
NUMBER = re.compile(r"[-–−+≤~]?\s?\d[\d,.]*(e[-+]?\d+)?\s?[^\s\d]{0,6}|[-–]")
UNSEEN_WIDTH = 120  # characters of a table in a file or a pipe
LEAST_WIDTH = 20  # characters of a line that is wrapped


class PlainConsole(Console):
    """A console that prints foreign names: their control characters show as escapes."""

    def render_str(self, text: str, **options: object) -> Text:
        """Text that rich makes of every string, in a line or in a cell."""
        return super().render_str(printable(text), **options)  # type: ignore[arg-type]


console = PlainConsole(soft_wrap=True, **PLAIN)
log = PlainConsole(stderr=True, soft_wrap=True, **PLAIN)


def say(text: str) -> None:
    """A line on stdout, in several where the terminal, or ``COLUMNS``, has room for less; what has
    neither gets it whole."""
    width = _width()
    lines = [text]
    if width is not None:
        lines = wrap(
            text,
            max(LEAST_WIDTH, width),
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    for line in lines:
        console.print(line, highlight=False)


def _width() -> int | None:
    """Characters in a line of the terminal, or of ``COLUMNS``; None without both."""
    if console.is_terminal:
        return console.width
    columns = os.environ.get("COLUMNS", "")
    return max(int(columns), LEAST_WIDTH) if columns.isdecimal() else None


def print_json(value: object) -> None:
    """One object on stdout, as the command's schema describes it: ``schema.py``."""
    print(json_text(value))


def json_text(value: object) -> str:
    """An object's JSON; the tests check each one here."""
    return jsonlib.dumps(value)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table as wide as the terminal, or 120 characters without one and without ``COLUMNS``; every
    column is right-aligned if all its cells look like numbers."""
    grid = Table(title=title, title_justify="left", header_style="bold")
    width = _width() or UNSEEN_WIDTH
    paper = PlainConsole(width=width, **PLAIN)
    cells = [[printable(str(cell)) for cell in row] for row in (columns, *rows)]
    numeric = [all(map(_numeric, column)) for column in zip(*cells[1:], strict=True)]
    numeric = numeric or [False] * len(columns)
    titles, *lines = fitted(cells, numeric, width)
    for heading, is_numeric in zip(titles, numeric, strict=True):
        justify: Literal["left", "right"] = "right" if is_numeric else "left"
        grid.add_column(Text(heading), justify=justify, overflow="fold")
    for line in lines:
        grid.add_row(*map(Text, line))
    paper.print(grid)


def print_energy_table(table: EnergyTable, energies: Iterable[Energy]) -> None:
    """Which table energy is estimated by, and which buffers are far beyond its rows."""
    console.print(f"energy by {table.name}: {table.title}")
    beyond = dict.fromkeys(buffer for energy in energies for buffer in energy.beyond)
    if beyond:
        console.print(f"far beyond the table's buffers, so a guess: {', '.join(beyond)}")


def print_placement(module: Module) -> None:
    """Prints where every operator runs, and why, and the accelerator's schedules; nothing where
    the module doesn't say it."""
    if not module.metadata:
        return
    placement, layers = module.metadata["placement"], module.metadata["layers"]
    rows = [(p["name"], p["op"], p["device"], p["reason"]) for p in placement]
    table("placement", ("name", "operator", "device", "reason"), rows)
    if layers:
        words = [(layer["name"], schedule_words(layer["tile"])) for layer in layers]
        table("schedules", ("layer", "schedule"), words)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr; the callable is told (what, done, of)."""
    bar = Progress(
        TextColumn("{task.description:24}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=log,
        transient=True,
        disable=not log.is_terminal,
    )
    with bar, ExitStack() as stack:
        task = bar.add_task("", total=None)

        def update(what: str, done: int, total: int) -> None:
            bar.update(task, description=printable(what), completed=done, total=total)

        if log.is_terminal:  # what takes long is said in a log, too, where no bar is
            stack.enter_context(heard_by(update))
        yield update


def write_text(path: Path | None, text: str, *sources: object) -> None:
    """To a file that is none of ``sources``, whole or not at all; without a path to stdout."""
    if path is None:
        print(text, end="")
        return
    write_bytes(path, text.encode(), *sources)


def write_bytes(path: Path, data: bytes, *sources: object) -> None:
    """To a file that is none of ``sources``, whole or not at all."""
    check_folder(path, *sources)
    files.write_bytes(path, data)


def check_folder(path: Path, *sources: object, made: Path | None = None) -> None:
    """Raises UsageError unless a file can be made at ``path``: known before hours of work.

    Args:
        path: the file to write.
        sources: what the command reads; those that are names of files must not be ``path``, by
            whatever link.
        made: a folder that the command will make.
    """
    if not path.parent.is_dir() and (made is None or path.parent.resolve() != made.resolve()):
        raise UsageError(f"{path}: expected the folder {path.parent} to exist, found none")
    if path.is_dir():
        raise UsageError(f"{path}: expected a file to write, found a folder")
    for source in sources:
        if isinstance(source, str | Path) and _is_same(path, Path(source)):
            raise UsageError(
                f"{path}: expected a file that the command doesn't read, found {source}; "
                "write to another"
            )


def _is_same(path: Path, source: Path) -> bool:
    """Whether two paths lead to one regular file, by links or otherwise."""
    try:
        return path.is_file() and path.samefile(source)
    except OSError:  # there is no such source: a bundled model's name
        return False


def check_output_folder(path: Path) -> None:
    """Raises UsageError unless ``path`` is a folder or can become one."""
    nearest = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not nearest.is_dir():
        raise UsageError(f"{path}: expected a folder to write to, found {nearest} to be a file")
    if not os.access(nearest, os.W_OK):
        raise UsageError(f"{path}: expected a folder to write to, found {nearest} to be read-only")


def _numeric(text: str) -> bool:
    return not text or NUMBER.fullmatch(text) is not None
