"""Latency hiding on ResNet-18's convolutions beside the figures that TVM published.

    python benchmarks/utilization.py [-c CONFIG]

Those of the papers and of open VTA are shown where the config has 16 × 16 multipliers, too.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.published import HIDING, VTA_SOURCE


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--config", default="paper")
    result = vdla.compare("resnet18-convs", parser.parse_args().config)
    table = Table("layer", "one virtual thread", "two", "bound", "open VTA, tuned")
    for layer in result.layers:
        shares = [f"{100 * layer.measured[v].utilization:.1f} %" for v in (1, 2)]
        bound = f"{100 * layer.compute_cycles / layer.bound_cycles:.1f} %"
        vta = result.published.vta.get(layer.name) if result.published else None
        table.add_row(layer.name, *shares, bound, f"{100 * vta:.1f} %" if vta else "–")
    table.add_row(
        "all", *(f"{100 * result.utilization(v):.1f} %" for v in (1, 2)), end_section=True
    )
    best = [max(layer.measured[v].utilization for layer in result.layers) for v in (1, 2)]
    table.add_row("best layer", *(f"{100 * b:.1f} %" for b in best))
    for peer in HIDING:
        table.add_row(peer.name, f"{100 * peer.without:.0f} %", f"{100 * peer.hidden:.0f} %")
    console = Console()
    console.print(f"memory: {result.config.memory.name}; the papers measured a PYNQ board")
    console.print(table)
    for name, source in [*((peer.name, peer.source) for peer in HIDING), ("VTA", VTA_SOURCE)]:
        console.print(f"{name}: {source}")


if __name__ == "__main__":
    main()
