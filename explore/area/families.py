"""Families of devices: in what they differ for the area of a core.

A family's RAMs are ``rams.py``'s. Its coefficients and what they are fitted to are files in
``data/``; how its cores are mapped is in ``mapping.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vdla.explore.area.rams import ECP5, SERIES_7, Kinds, Memory
from vdla.runtime.board.link import MOST_WORDS, WORD

DATA = Path(__file__).parent / "data"
DEFAULT = "xc7"


@dataclass(frozen=True, eq=False)
class Family:
    """Devices with the same RAMs and multipliers.

    ``name`` is a part's ``family``, ``title`` what readers call it, ``ram`` the block RAM that is
    counted. A product of 25 × 18 bits takes ``per_product`` multipliers. ``around`` are memories
    around the core, where a design is more.
    ``coefficients`` and ``measured`` are names of files in ``data/``.
    """

    name: str
    title: str
    kinds: Kinds
    ram: str
    per_product: int
    coefficients: str
    measured: str
    around: tuple[Memory, ...] = ()

    @property
    def model_path(self) -> Path:
        """The file of the family's coefficients."""
        return DATA / self.coefficients

    @property
    def measured_path(self) -> Path:
        """The file of what the coefficients are fitted to, a mapping in each line."""
        return DATA / self.measured


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="xc7",
            title="a 7-series device",
            kinds=SERIES_7,
            ram="RAMB36",
            per_product=1,
            coefficients="model.toml",
            measured="measured.jsonl",
        ),
        Family(
            name="ecp5",
            title="an ECP5",
            kinds=ECP5,
            ram="DP16KD",
            per_product=2,
            coefficients="model-ecp5.toml",
            measured="measured-ecp5.jsonl",
            around=(Memory(MOST_WORDS, (8 * WORD,)),),  # frames of the serial bridge
        ),
    )
}
