"""Clocks of the ULX3S's SDRAM: what the PLL makes, and what their phase leaves to spare.

    python benchmarks/sdram_clocks.py [--mhz 60,66,70]

A row for each clock of the core, with the SDRAM's as fast and twice as fast. The margin is the
least of ``phase_margins`` in ``boards/wiring.py``, with the delays that
``boards/ulx3s.py`` assumes.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from vdla.boards.board import BoardError
from vdla.boards.ulx3s import CHIP, WIRING
from vdla.boards.wiring import Clocks
from vdla.isa.config import load_config

MHZ = "60,66,70,75,80,85"
RATIOS = (1, 2)
WHEN = ("its own", "the next")


def row(clocks: Clocks) -> tuple[str, ...]:
    """The figures of some clocks."""
    pll = clocks.pll
    return (
        f"{clocks.hz / 1e6:g}",
        f"{clocks.pads.ratio}",
        f"{clocks.sdram_hz / 1e6:g}",
        f"{CHIP.cas(clocks.sdram_hz)}",
        f"{float(pll.vco_mhz):g}",
        f"{float(pll.detector_mhz):g}",
        f"{360 * clocks.late / pll.phases(clocks.pads.ratio):g}°",
        WHEN[clocks.pads.late],
        f"{min(WIRING.phase_margins(clocks).values()):.2f}",
    )


def main() -> None:
    """Prints the table, and what the clocks that it lacks are refused with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mhz", default=MHZ)
    table = Table("core, MHz", "ratio", "SDRAM, MHz", "CAS latency", "VCO, MHz",
                  "phase detector, MHz", "phase", "a word's clock", "margin, ns")  # fmt: skip
    refused = []
    for ratio in RATIOS:
        for mhz in parser.parse_args().mhz.split(","):
            settings = [f"clock_mhz={mhz}", f"memory.banks.clock_ratio={ratio}"]
            try:
                table.add_row(*row(WIRING.clocks_of(load_config("ulx3s", settings))))
            except BoardError as error:
                refused.append(f"{mhz} MHz, ratio {ratio}: {error}")
    console = Console(width=120)
    console.print(table)
    for line in refused:
        console.print(line)


if __name__ == "__main__":
    main()
