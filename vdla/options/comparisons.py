"""Options of ``compare``, ``sweep`` and ``offload``.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.options import fields
from vdla.options.common import Progress, Sized, progress
from vdla.options.spelling import option

if TYPE_CHECKING:
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
    from vdla.isa.config import Config


@dataclass(frozen=True)
class Compare(Sized):
    """Options of a comparison: schedules for some numbers of virtual threads, on a config.

    ``energy`` names the table by which the energy of each layer is estimated; none by default.
    ``host`` is the processor whose time is modelled for what the accelerator leaves, "native" this
    machine's.
    """

    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: paper, or the board's."
    )
    vthreads: Sequence[int] = fields.vthreads((1, 2))
    settings: Sequence[str] = fields.settings()
    records: str | Path | TileRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    latencies: Sequence[int] = option(
        (),
        "--latency",
        typed=str | None,
        shown=None,
        read=partial(fields.listed, "--latency", 0, None),
        metavar="N,N,…",
        help="Sweep over memory latencies, in cycles; schedules are chosen anew at each.",
    )
    energy: str | None = fields.energy()
    board: str | None = fields.board("In front of this board's memory.")
    host: str = fields.modelled_host()
    progress: Progress = progress()


@dataclass(frozen=True)
class CompareOutput:
    """Outputs of ``vdla compare`` beside the table, and where it writes them."""

    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for the plots and the trace.")
    trace_layer: str = option(
        "", "--trace-layer", typed=str, help="The layer to trace; default: the first."
    )
    same_schedule: bool = option(
        False,
        "--same-schedule",
        typed=bool,
        help="Also the schedule of the most threads by itself: serialized by tokens, with one "
        "engine alone, and with threads and buffer copies apart.",
    )
    report: Path | None = option(
        None,
        "--report",
        typed=Path | None,
        metavar="OUT.html",
        help="Write one page that opens offline.",
    )


@dataclass(frozen=True)
class Offload(Sized):
    """Machine that a network is put on: a ``board``, with its processor and a config in its fabric.

    ``config`` and ``records`` are as for ``compile``.
    """

    board: str = fields.board("Its processor, its memory, its clock.", needed=True)
    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: the board's."
    )
    settings: Sequence[str] = fields.settings()
    records: str | Path | TileRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    progress: Progress = progress()
