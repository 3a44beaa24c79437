"""Families of devices: in what they differ for the area of a core.

A family's RAMs are ``rams.py``'s. Its coefficients and what they are fitted to are files in
``data/``; how its cores are mapped is in ``mapping.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vdla.explore.area.rams import ECP5, SERIES_7, Kinds, Memory, fifo
from vdla.hw.dma import most_reads
from vdla.isa.config import Config
from vdla.runtime.board.link import MOST_WORDS, WORD

DATA = Path(__file__).parent / "data"
DEFAULT = "xc7"
ULX3S_BYTES = 32 << 20  # of SDRAM


@dataclass(frozen=True, eq=False)
class Family:
    """Devices with the same RAMs and multipliers.

    ``name`` is a part's ``family``, ``title`` what readers call it, ``ram`` the block RAM that is
    counted. A product of 25 × 18 bits takes ``per_product`` multipliers. ``around`` gives the
    memories around a config's core, where a design is more.
    ``coefficients`` and ``measured`` are names of files in ``data/``.
    """

    name: str
    title: str
    kinds: Kinds
    ram: str
    per_product: int
    coefficients: str
    measured: str
    around: Callable[[Config], tuple[Memory, ...]] = lambda config: ()

    @property
    def model_path(self) -> Path:
        """The file of the family's coefficients."""
        return DATA / self.coefficients

    @property
    def measured_path(self) -> Path:
        """The file of what the coefficients are fitted to, a mapping in each line."""
        return DATA / self.measured


def _in_ulx3s(config: Config) -> tuple[Memory, ...]:
    """Frames of the serial bridge, and reads that wait for the memory: of each the place, the
    length, who asks, and whether it lies beyond."""
    place = (ULX3S_BYTES // config.port_bytes).bit_length() - 1
    read = place + (config.burst_beats - 1).bit_length() + 2
    return Memory(MOST_WORDS, (8 * WORD,)), fifo(most_reads(config), read)


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
            around=_in_ulx3s,
        ),
    )
}
