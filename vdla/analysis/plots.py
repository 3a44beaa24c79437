"""Pictures: of a comparison (utilization with and without latency hiding, sweep), and lines of any
figures. The roofline has a file of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vdla.analysis.comparison import Comparison
from vdla.analysis.figures import COLOURS, bare, new_axes, new_figure, plain_label, save
from vdla.analysis.roofline_plot import roofline_plot
from vdla.analysis.same_schedule import SameSchedule
from vdla.analysis.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_plots(
    comparison: Comparison,
    folder: Path,
    stem: str,
    sweep: Sweep | None = None,
    same: SameSchedule | None = None,
    formats: Sequence[str] = ("png",),
) -> list[Path]:
    """Writes ``STEM-utilization.png``, ``STEM-roofline.png`` and, of a sweep, ``STEM-latency.png``,
    of one schedule ``STEM-same-schedule.png``, in each of some formats: png, svg, pdf.

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
    return [
        save(figure, folder / f"{stem}-{name}.{kind}")
        for name, figure in pictures.items()
        for kind in formats
    ]


def utilization_plot(comparison: Comparison) -> Figure:
    """Bars per layer, one colour per number of virtual threads; what a paper published as lines."""
    layers, threads = comparison.layers, comparison.vthreads
    peaks = {}
    if comparison.published:
        paper = comparison.published.hiding[0]
        peaks = {1: paper.without, 2: paper.hidden}
    width = max(6.0, 1.6 + 0.55 * len(layers))
    figure, axes = new_axes(width, 3.8)
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
            axes.axhline(100 * peaks[v], color=COLOURS[-1], lw=1, ls=":")
            which = f"{v} thread{'s' if v > 1 else ''}"
            axes.annotate(
                f"OSDI'18,\n{which}: {100 * peaks[v]:.0f} %",
                (1.0, 100 * peaks[v]),
                xycoords=("axes fraction", "data"),
                fontsize=7,
                va="center",
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
    figure, axes = new_axes(max(7.5, 1.6 + 0.8 * len(layers)), 3.8)
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


def latency_plot(sweep: Sweep) -> Figure:
    """Utilization of the whole over memory latency, one line per number of virtual threads."""
    figure, axes = new_axes(6.0, 3.8)
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
    figure, axes = new_axes(6.0, 3.8)
    _draw(axes, lines, labels[0])
    axes.set_ylabel(labels[1])
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    return save(figure, path)


def save_panels(
    path: Path, panels: Mapping[str, Sequence[Line]], title: str, labels: tuple[str, str]
) -> Path:
    """Draws plots of lines side by side, with one y axis; the panels' names stand above them."""
    figure = new_figure(3.0 * len(panels) + 1.0, 3.4)
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (name, lines) in zip(row, panels.items(), strict=True):
        bare(axes)
        _draw(axes, lines, labels[0])
        axes.set_title(plain_label(name), fontsize=9)
    row[0].set_ylabel(labels[1])
    row[-1].legend(fontsize=8, frameon=False, loc="lower right")
    figure.suptitle(title, fontsize=10)
    return save(figure, path)


def _draw(axes: Axes, lines: Sequence[Line], label: str) -> None:
    """Draws lines by steps, over what the x axis is."""
    for line, colour in zip(lines, COLOURS[1:], strict=False):
        axes.step(range(len(line.values)), line.values, where="post", label=line.label, c=colour)
    axes.set_xlabel(label)
