"""Families of devices as the clock's model has them: delays, a part, and files of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vdla.explore.clock.cells import Cells
from vdla.explore.clock.ecp5 import ECP5
from vdla.explore.clock.series_7 import SERIES_7

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, eq=False)
class Family:
    """Devices with the same delays: ``part`` with its speed grade, whose ``cells`` these are.

    ``name`` is what the area's model calls the family. The files in ``data/`` are the ``routed``
    designs that wires are scaled to, the mapped designs that the model is fitted to, ``measured``,
    and the model.
    """

    name: str
    part: str
    cells: Cells

    @property
    def measured_path(self) -> Path:
        """The file of mapped designs, one in each line, with their longest paths."""
        return DATA / f"measured-{self.name}.jsonl"

    @property
    def routed_path(self) -> Path:
        """The file of routed designs, with the clock that each reached; it need not exist."""
        return DATA / f"routed-{self.name}.toml"

    @property
    def model_path(self) -> Path:
        """The file of the model's coefficients."""
        return DATA / f"model-{self.name}.toml"


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("xc7", "xc7z020-1", SERIES_7),
        Family("ecp5", "LFE5U-85F-6", ECP5),
    )
}
