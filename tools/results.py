"""Writes the figures of docs/results.md from the commands that print them.

    python tools/results.py           # rewrite docs/results.md and docs/images/
    python tools/results.py --check   # exit code 1 if the page isn't current

The text between ``BEGIN tools/results.py`` and ``END`` is generated.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import vdla
from vdla import api
from vdla.analysis.comparison import Comparison
from vdla.analysis.offload import OffloadResult
from vdla.analysis.offload_plot import save_offload_plot
from vdla.analysis.plots import save_plots
from vdla.analysis.same_schedule import VARIANTS
from vdla.runtime import Module
from vdla.runtime.devices.named import module_config

ROOT = Path(__file__).parent.parent
MEANS = {
    "serialized": "serialized: no two engines work at once",
    "neither": "one thread, one copy of each buffer",
    "copies": "one thread, copies of what streams by",
    "threads": "two threads, one copy of what streams by",
    "both": "two threads and copies: the schedule as it is",
}
BLOCK = re.compile(r"(<!-- BEGIN tools/results.py: (.*?) -->\n).*?(<!-- END -->)", re.DOTALL)


def comparison_table(comparison: Comparison) -> str:
    """Utilization and cycles per layer, with one virtual thread and with two."""
    lines = ["| layer | one virtual thread | cycles | two virtual threads | cycles |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    for layer in comparison.layers:
        cells = [
            f"{100 * layer.measured[v].utilization:.1f} % | {layer.measured[v].cycles:,}"
            for v in (1, 2)
        ]
        lines.append(f"| {layer.name} | {' | '.join(cells)} |")
    cells = [
        f"**{100 * comparison.utilization(v):.1f} %** | {comparison.cycles(v):,}" for v in (1, 2)
    ]
    lines.append(f"| all | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def same_schedule_table() -> str:
    """Utilization of all layers together by what hides latency."""
    comparison = api.same_schedule("resnet18-convs")
    lines = ["| means | utilization | cycles |", "| --- | ---: | ---: |"]
    lines += [
        f"| {MEANS[v]} | {100 * comparison.utilization(v):.1f} % | {comparison.cycles(v):,} |"
        for v in VARIANTS
    ]
    return "\n".join(lines) + "\n"


def offload_table(offloaded: OffloadResult) -> str:
    """A network on a board's processor alone and with the accelerator, in milliseconds."""
    alone, together = offloaded.convolutions
    rows = [
        ("convolutions", alone, together),
        ("other layers, and calls", offloaded.alone - alone, offloaded.accelerator - together),
        ("left to the processor", None, offloaded.host),
        ("transfers", None, offloaded.transfers),
        ("all", offloaded.alone, offloaded.together),
    ]
    together_title = f"with {offloaded.config.name} {offloaded.at_clock}"
    lines = [f"| ms | {offloaded.processor} alone | {together_title} | speedup |"]
    lines += ["| --- | ---: | ---: | ---: |"]
    for name, before, after in rows:
        cells = ("", "") if before is None else (f"{before:,.1f}", f"{before / after:.1f}×")
        lines.append(f"| {name} | {cells[0]} | {after:,.1f} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def network_line(module: Module) -> str:
    """Cycles of the whole network."""
    result = vdla.run(module, api.random_inputs(module))
    assert result.cycles is not None
    config = module_config(module)
    return (
        f"Whole ResNet-18 at 224×224 takes **{result.cycles:,} cycles**: "
        f"{result.cycles / config.clock_mhz / 1000:.1f} ms {config.at_clock}.\n"
    )


def main() -> int:
    """Rewrites or checks the page."""
    comparison = vdla.compare("resnet18-convs")
    offloaded = vdla.offload("resnet18", board="pynq-z2")
    texts = {
        "vdla compare resnet18-convs -c paper": comparison_table(comparison),
        "vdla compare resnet18-convs -c paper --same-schedule": same_schedule_table(),
        "vdla offload resnet18 --board pynq-z2": offload_table(offloaded),
        "vdla run resnet18 --device sim -c paper": network_line(vdla.compile("resnet18")),
    }
    page = ROOT / "docs" / "results.md"
    old = page.read_text()
    new = BLOCK.sub(lambda m: m[1] + texts[m[2]] + m[3], old)
    if "--check" in sys.argv:
        if old != new:
            print("docs/results.md: expected current figures; run python tools/results.py")
        return int(old != new)
    page.write_text(new)
    images = ROOT / "docs" / "images"
    save_plots(comparison, images, "resnet18-convs-paper")
    save_offload_plot(offloaded, images / "resnet18-paper-pynq-z2-offload.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
