"""Options of the commands about designs: ``evaluate`` and ``explore``.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.options import fields
from vdla.options.common import NO_FARM, Progress, Report, Sized, progress, report
from vdla.options.spelling import option

if TYPE_CHECKING:
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
    from vdla.isa.config import Config


@dataclass(frozen=True)
class Evaluate(Sized):
    """Options by which a design is evaluated: networks, schedules, and the part that it has to fit.

    ``weights`` are the models' shares of the total, 1 unless given. ``level`` is "exact", "model"
    for the analytic model's cycles, or "bound" for those that no schedule goes below. ``records``
    are tuned schedules, "none" by default, so that all designs are scheduled by the same means.
    """

    config: str | Path | Config = fields.config("paper")
    settings: Sequence[str] = fields.settings()
    part: str = fields.part()
    weights: Mapping[str, float] | None = fields.weights()
    energy: str | None = fields.energy()
    level: str = option("exact", "--level", typed=str, help="exact; model or bound, at once.")
    records: str | Path | TileRecords = option(
        "none", "--records", typed=str, metavar="F|none", help="Tuned schedules."
    )
    shapes: Shapes | None = fields.shapes()


@dataclass(frozen=True)
class Explore(Sized):
    """Options of a search for designs: a space, for some models, on a part, and the search.

    ``space`` is a bundled one's name or a TOML file. ``budget`` is the most designs that are
    compiled and simulated, those in the ``log`` included, which is made or gone on with; ``time``
    the seconds after which no more are begun. ``trials`` are candidates per distinct layer when
    the schedules of the front are tuned; 0 leaves these to the analytic model. ``baseline`` is the
    config to compare with. ``energy`` names the table by which energy is estimated. ``mapped``
    has yosys count the areas of the front. With a ``farm``, its workers evaluate.
    """

    space: str | Path = option(
        "default", "--space", typed=str, metavar="SPACE", help="A space's name or TOML file."
    )
    part: str = fields.part()
    objectives: Sequence[str] = option(
        ("cycles", "luts"), "--objectives", typed=str, shown="cycles,luts", read=fields.texts,
        help="What is minimized, one to three: cycles, ms, luts, ffs, dsps, brams, "
        "energy, multipliers, buffer_bytes.",
    )  # fmt: skip
    budget: int = option(100, "--budget", typed=int, min=1, help="Designs that are simulated.")
    time: float | None = option(
        None, "--time", typed=float | None, min=0, metavar="T",
        help="Seconds after which no more are begun.",
    )  # fmt: skip
    log: str | Path | None = option(
        None, "--resume", "--log", typed=Path | None, metavar="LOG",
        help="Evaluations; resumed if there; several searches may share one.",
    )  # fmt: skip
    searcher: str = option(
        "guided",
        "--searcher",
        typed=str,
        help="guided, nsga2, random, bound, optuna-nsga2 or optuna-tpe.",
    )
    trials: int = option(
        8, "--trials", typed=int, min=0,
        help="Schedules per distinct layer of the front's designs; 0: the analytic model's.",
    )  # fmt: skip
    weights: Mapping[str, float] | None = fields.weights()
    energy: str | None = fields.energy()
    baseline: str | Path | Config = option(
        "paper", "--baseline", typed=str, metavar="CONFIG", help="The config to compare with."
    )
    mapped: bool = option(
        False, "--map", typed=bool, help="Map the front's designs by yosys, a minute or two each."
    )
    seed: int = option(0, "--seed", typed=int, min=0, help="Of the search's random draws.")
    workers: int = option(
        2, "--workers", typed=int, only=[NO_FARM], min=1, max=64, help="Processes that evaluate."
    )
    shapes: Shapes | None = fields.shapes()
    farm: str | None = fields.farm()
    folder: Path | None = fields.folder()
    without_encryption: bool = fields.without_encryption()
    progress: Progress = progress()
    report: Report = report()


@dataclass(frozen=True)
class ExploreOutput:
    """Outputs of ``vdla explore`` beside its table."""

    export: int | None = option(
        None, "--export", typed=int | None, metavar="N", min=1,
        help="Write design N of the front: its config, its tuned schedules.",
    )  # fmt: skip
    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for what is exported.")
    page: Path | None = option(
        None, "--report", typed=Path | None, metavar="OUT.html",
        help="Write one page that opens offline.",
    )  # fmt: skip
