"""Pictures: of a comparison (utilization with and without latency hiding, roofline, sweep), and
lines of any figures."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vdla.analysis.comparison import Comparison
from vdla.analysis.same_schedule import SameSchedule
from vdla.analysis.sweep import Sweep
from vdla.support.files import atomic_write
from vdla.support.names import printable, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (
    "#9aa5b1", "#1f6feb", "#0b8f5a", "#b35900", "#7a3fb0", "#d1a000", "#56b4e9", "#24292f"
)  # fmt: skip
LONGEST_LABEL = 48  # characters of a name


def save_plots(
    comparison: Comparison,
    folder: Path,
    stem: str,
    sweep: Sweep | None = None,
    same: SameSchedule | None = None,
) -> list[Path]:
    """Writes ``STEM-utilization.png``, ``STEM-roofline.png`` and, of a sweep, ``STEM-latency.png``,
    of one schedule ``STEM-same-schedule.png``.

    Returns their paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "utilization": utilization_plot(comparison),
        "roofline": roofline_plot(comparison),
    }
    if sweep:
        pictures["latency"] = latency_plot(sweep)
    if same:
        pictures["same-schedule"] = same_schedule_plot(same)
    return [save(figure, folder / f"{stem}-{n}.png") for n, figure in pictures.items()]


def utilization_plot(comparison: Comparison) -> Figure:
    """Bars per layer, one colour per number of virtual threads; what a paper published as lines."""
    layers, threads = comparison.layers, comparison.vthreads
    peaks = {}
    if comparison.published:
        paper = comparison.published.hiding[0]
        peaks = {1: paper.without, 2: paper.hidden}
    width = max(6.0, 1.6 + 0.55 * len(layers))
    figure, axes = _figure(width, 3.8)
    at = np.arange(len(layers))
    bar = 0.8 / max(len(threads), 1)
    for i, v in enumerate(threads):
        values = [100 * layer.measured[v].utilization for layer in layers]
        label = f"{v} virtual thread{'s' if v > 1 else ''}: {100 * comparison.utilization(v):.1f} %"
        axes.bar(
            at + (i - (len(threads) - 1) / 2) * bar,
            values,
            bar,
            label=label,
            color=COLOURS[i % len(COLOURS)],
        )
        if v in peaks:
            axes.axhline(100 * peaks[v], color=COLOURS[i % len(COLOURS)], lw=1, ls=":")
            axes.text(
                len(layers) - 0.45,
                100 * peaks[v],
                f"OSDI'18 {100 * peaks[v]:.0f} %",
                fontsize=7,
                va="bottom",
                ha="right",
                color="#444444",
            )
    bounds = [100 * layer.compute_cycles / layer.bound_cycles for layer in layers]
    axes.plot(at, bounds, "_", color="black", ms=14, label="bound")
    axes.set_xticks(
        at, [plain_label(layer.name) for layer in layers], rotation=0 if len(layers) < 13 else 75
    )
    axes.set_ylim(0, 112)
    axes.set_ylabel("utilization, % of peak")
    memory = comparison.config.memory.name
    axes.set_title(f"Latency hiding on {comparison.config.name} (memory: {memory})", fontsize=10)
    axes.legend(fontsize=8, loc="upper center", ncols=len(threads) + 1, frameon=False)
    return figure


def same_schedule_plot(same: SameSchedule) -> Figure:
    """Bars per layer of one schedule: one colour per means of hiding latency."""
    layers, variants = same.layers, same.variants
    figure, axes = _figure(max(7.5, 1.6 + 0.8 * len(layers)), 3.8)
    at, bar = np.arange(len(layers)), 0.85 / len(variants)
    for i, variant in enumerate(variants):
        values = [100 * same.layer_utilization(layer, variant) for layer in layers]
        label = f"{variant}: {100 * same.utilization(variant):.1f} %"
        axes.bar(
            at + (i - (len(variants) - 1) / 2) * bar,
            values,
            bar,
            label=label,
            color=COLOURS[i % len(COLOURS)],
        )
    axes.set_xticks(
        at, [plain_label(layer.name) for layer in layers], rotation=0 if len(layers) < 13 else 75
    )
    axes.set_ylim(0, 125)  # the legend takes two lines
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("utilization, % of peak")
    title = f"One schedule on {same.config.name}: what hides latency"
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, loc="upper center", ncols=4, frameon=False)
    return figure


def roofline_plot(comparison: Comparison) -> Figure:
    """Attained GOPS over operational intensity, under the roof of peak and bandwidth."""
    config = comparison.config
    figure, axes = _figure(6.0, 4.2)
    bandwidth = config.bytes_per_cycle * config.clock_mhz / 1000
    peak = config.peak_gops
    x = np.logspace(0, 4, 200)
    axes.plot(x, np.minimum(peak, x * bandwidth), color="black", lw=1.2)
    for i, v in enumerate(comparison.vthreads):
        intensity = [2 * layer.macs / layer.dram_bytes for layer in comparison.layers]
        attained = [peak * layer.measured[v].utilization for layer in comparison.layers]
        axes.plot(
            intensity,
            attained,
            "o",
            ms=5,
            color=COLOURS[i % len(COLOURS)],
            label=f"{v} virtual thread{'s' if v > 1 else ''}",
        )
    last = comparison.vthreads[-1]
    for layer in comparison.layers if len(comparison.layers) < 16 else []:
        at = (2 * layer.macs / layer.dram_bytes, peak * layer.measured[last].utilization)
        axes.annotate(
            plain_label(layer.name), at, textcoords="offset points", xytext=(4, 4), fontsize=7
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, 3000)
    axes.set_ylim(peak / 50, peak * 1.6)
    axes.set_xlabel("operations per byte of DRAM traffic")
    axes.set_ylabel("GOPS")
    axes.set_title(f"Roofline of {config.name}: {peak:g} GOPS, {bandwidth:g} GB/s", fontsize=10)
    axes.legend(fontsize=8, loc="lower right", frameon=False)
    return figure


def latency_plot(sweep: Sweep) -> Figure:
    """Utilization of the whole over memory latency, one line per number of virtual threads."""
    figure, axes = _figure(6.0, 3.8)
    points = sorted(sweep.points, key=lambda point: point.latency)
    latencies = [point.latency for point in points]
    for i, v in enumerate(sweep.vthreads):
        values = [100 * point.utilization(v) for point in points]
        axes.plot(
            latencies,
            values,
            "o-",
            ms=4,
            color=COLOURS[i % len(COLOURS)],
            label=f"{v} virtual thread{'s' if v > 1 else ''}",
        )
    axes.set_xticks(latencies)
    axes.set_ylim(0, 105)
    axes.set_xlabel("memory latency, cycles")
    axes.set_ylabel("utilization, % of peak")
    bandwidth = sweep.config.memory.bytes_per_cycle
    title = f"Latency hiding on {sweep.config.name} as memory gets slower ({bandwidth} B/cycle)"
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, loc="lower left", frameon=False)
    return figure


@dataclass(frozen=True)
class Line:
    """A line of a plot: one value for each whole number on the x axis, from 0 on."""

    label: str
    values: Sequence[float]


def save_lines(path: Path, lines: Sequence[Line], title: str, labels: tuple[str, str]) -> Path:
    """Draws lines in one plot, by steps; the format follows from the path's ending.

    ``labels`` are those of the x and the y axis.
    """
    figure, axes = _figure(6.0, 3.8)
    for line, colour in zip(lines, COLOURS[1:], strict=False):
        axes.step(range(len(line.values)), line.values, where="post", label=line.label, c=colour)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    return save(figure, path)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; what matplotlib says of a home that it can't write to is kept from users."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def plain_label(name: str, most: int = LONGEST_LABEL) -> str:
    """A foreign name as matplotlib shows it letter by letter, in at most ``most`` of them: ``$``
    opens no formula."""
    return shortened(printable(name), most).replace("$", r"\$")


def save(figure: Any, path: Path) -> Path:
    """Writes a picture without anything that differs between two runs."""
    from matplotlib import rc_context

    kind = path.suffix.removeprefix(".")
    metadata = {"Software": None} if kind == "png" else {"Date": None}
    with atomic_write(path) as beside, rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(beside, format=kind, metadata=metadata)
    return path
