"""Tiles that were measured, as lines of a log, and those that ship with the package.

    {"schema": 2, "workload": {…}, "tile": {…}, "status": "ok", "cycles": 60988,
     "note": "", "isa": "5e1c…", "sources": "0d2f…", "version": "0.1.0"}

Every line says what was measured on which machine, and the sources that decided the cycles. A
record of another instruction set is no record of this machine: no tile is chosen by it. The
workload of a record whose cycles a board counted names that board, ``"board": "ulx3s"``; the cycles
of others are the simulator's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

from vdla.compiler.search.records import Line, Record, RecordError, Records, load, own_version
from vdla.compiler.targets.accelerator.operators.template import BY_NAME, AnyTemplate, Tile
from vdla.compiler.targets.accelerator.search.simulation import Cycles
from vdla.compiler.targets.accelerator.search.workload import Workload, is_small, sources
from vdla.isa.config import Config
from vdla.isa.identity import isa_hash, other_isa
from vdla.isa.parameters import ConfigError

RENAMED = {"keep": "stationary"}  # knobs of a tile, as records before the renaming call them


@dataclass(frozen=True)
class TileRecord(Record):
    """One tile's measurement. ``cycles`` is None unless ``status`` is "ok"."""

    workload: Workload
    tile: Mapping[str, object]
    status: str
    cycles: int | None
    note: str = ""
    isa: str = field(default_factory=isa_hash)
    sources: str = field(default_factory=sources)
    version: str = field(default_factory=own_version)

    @classmethod
    def of(cls, workload: Workload, tile: Tile, outcome: Cycles) -> Self:
        """The record of what became of a tile, just now."""
        return cls(workload, vars(tile), outcome.status, outcome.cycles, outcome.note)

    @property
    def key(self) -> Workload:
        """The workload: its records can be compared."""
        return self.workload

    @property
    def outcome(self) -> Cycles:
        """Outcome of the tile."""
        return Cycles(self.status, self.note, self.cycles)

    @property
    def fresh(self) -> bool:
        """Whether today's instruction set and sources would give these cycles."""
        return self.isa == isa_hash() and self.sources == sources()

    @property
    def usable(self) -> bool:
        """Whether it is of this instruction set."""
        return self.isa == isa_hash()

    def to_json(self) -> Line:
        """The line as a dictionary, without its schema."""
        return {**super().to_json(), "workload": self.workload.to_json()}

    @classmethod
    def from_json(cls, line: Line) -> Self:
        """The record of which ``to_json`` made ``line``, its tile with today's names of the knobs.

        Raises:
            KeyError, TypeError: a part is missing.
            ValueError: a part is of another type.
        """
        workload, tile = Workload.from_json(line["workload"]), _renamed(line["tile"])
        return super().from_json({**line, "workload": workload, "tile": tile})

    def check(self) -> None:
        """Raises ValueError, which says what there is, unless it is a record that makes sense."""
        super().check()
        if (type(self.cycles) is int and self.cycles > 0) != (self.status == "ok"):
            raise ValueError(f"status {self.status} with cycles {self.cycles!r}")
        if not isinstance(self.tile, dict) or not is_small(self.tile):
            raise ValueError(f"tile {self.tile!r}")
        if self.usable:  # another version's configs may have other parameters
            try:
                _ = self.workload.config
            except ConfigError as error:
                text = str(error).removeprefix("record: ")
                raise ValueError(f"a machine that can't be: {text}") from None


def _renamed(tile: object) -> object:
    """A tile under today's names of its knobs."""
    return {RENAMED.get(k, k): v for k, v in tile.items()} if isinstance(tile, dict) else tile


class TileRecords(Records[TileRecord]):
    """Records to choose tiles by: those of the board ``board``, if one is named, before those of
    the simulator."""

    board = ""

    def on(self, board: str) -> TileRecords:
        """Records to choose tiles for a board by: its own, then the simulator's."""
        result = TileRecords(lambda: self.best.values())
        result.board = board
        return result

    def tile(self, template: AnyTemplate, config: Config, vthreads: int) -> Tile | None:
        """The best recorded tile of a template, if there is one and today's rules allow it."""
        for board in dict.fromkeys((self.board, "")):
            record = self.best.get(Workload.of(template, config, vthreads, board))
            tile = None if record is None else make_tile(record)
            if tile and template.is_legal(tile, config, vthreads):
                return tile
        return None


def make_tile(record: TileRecord) -> Tile | None:
    """The tile of a record, or None if tiles have other fields today."""
    try:
        tile: Tile = BY_NAME[record.workload.kind].TILE(**record.tile)
    except (KeyError, TypeError):
        return None
    kinds = {f.name: f.type for f in fields(tile)}  # as the sources have them: int, bool, str
    return tile if all(type(v).__name__ == kinds[k] for k, v in vars(tile).items()) else None


def load_own(path: Path) -> list[TileRecord]:
    """The records of a file that are of this instruction set.

    Raises:
        RecordError: it holds something else, or records of another instruction set alone.
        OSError: it can't be read.
    """
    records = load(path, TileRecord)
    own = [record for record in records if record.usable]
    if records and not own:
        text = other_isa(isa_hash(), records[-1].isa, "tuned", "tune again")
        raise RecordError(f"{path}: {text}")
    return own


BUNDLED_PATH = Path(__file__).parent / "data" / "best.jsonl"
BUNDLED = TileRecords(lambda: load(BUNDLED_PATH, TileRecord))
