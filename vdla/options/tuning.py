"""Options of ``tune``.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.options import devices, fields
from vdla.options.common import NO_FARM, Progress, Report, Sized, progress, report
from vdla.options.spelling import Only, option

if TYPE_CHECKING:
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.isa.config import Config

# Where options count
ACCELERATOR = Only("target", "accelerator")
ON_CPU = Only("target", *devices.PROCESSORS)


@dataclass(frozen=True)
class Tune(Sized):
    """Options of a search for schedules: the records' file, made or gone on with, and the search.

    ``trials`` is the most candidates per distinct layer, ``layer`` the one to search for; all
    without it. With another target than ``accelerator``, where functions share their trials, it
    is the mean; ``strategy`` says which schedules there are, and what is the accelerator's alone
    (``config``, ``settings``, ``vthreads``, ``workers``, ``board``) is refused. With a ``board``,
    its own counters measure and not the simulator: at each of ``ports`` one, by default at all
    that are found, or as many ``virtual`` ones as ``workers``. With a ``farm``, its workers
    measure: those that have what it needs, as ``board:ulx3s`` or ``cpu:x86-64-v3``.
    """

    log: str | Path = option(
        MISSING, "--log", typed=Path, metavar="F", help="Records; resumed if there."
    )
    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: paper, or the board's.", [ACCELERATOR]
    )
    settings: Sequence[str] = fields.settings(ACCELERATOR)
    trials: int = option(64, "--trials", typed=int, min=1, help="Candidates per distinct layer.")
    searcher: str = option("model", "--searcher", typed=str, help="model, random, grid or genetic.")
    cost_model: str = option(
        "xgboost", "--cost-model", typed=str, only=[Only("searcher", "model")],
        help="What --searcher model asks: xgboost (of features) or tree (of loops).",
    )  # fmt: skip
    vthreads: Sequence[int] = fields.vthreads((2,), ACCELERATOR)
    layer: str = option("", "--layer", typed=str, metavar="NAME", help="This layer alone.")
    seed: int = option(0, "--seed", typed=int, min=0, help="Of the search's random draws.")
    workers: int = option(
        2, "--workers", typed=int, only=[ACCELERATOR, NO_FARM], min=1, max=64,
        help="Processes that measure; with --virtual, virtual boards.",
    )  # fmt: skip
    shapes: Shapes | None = fields.shapes()
    progress: Progress = progress()
    target: str = devices.tuned()
    strategy: str = devices.strategy()
    threads: int = option(
        1, "--threads", typed=int, only=[ON_CPU], min=1, help="That share a candidate's loops."
    )
    board: str | None = option(
        None, "--board", typed=str | None, only=[ACCELERATOR], metavar="B",
        help="Measure on boards of this kind, and not on the simulator.",
    )  # fmt: skip
    ports: Sequence[str] = option(
        (), "--port", typed=str | None, shown=None, read=fields.texts,
        only=[Only("board"), NO_FARM], metavar="PORT,PORT…",
        help="The boards' serial ports; default: all that are found.",
    )  # fmt: skip
    virtual: bool = option(
        False, "--virtual", typed=bool, only=[Only("board"), NO_FARM],
        help="Measure on the RTL of whole boards instead.",
    )  # fmt: skip
    farm: str | None = fields.farm(devices.NAMED)
    folder: Path | None = fields.folder()
    without_encryption: bool = fields.without_encryption()
    report: Report = report()
