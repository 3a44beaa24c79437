"""The picture of a network on a processor alone and with the accelerator, with latency hiding
beside it: figure 3 of TVM's paper at SysML 2018 drew both for ResNet-18 on a PYNQ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vdla.analysis.figures import COLOURS, new_figure, plain_label, save
from vdla.analysis.offload import NOWHERE, OffloadedLayer, OffloadResult, milliseconds_text
from vdla.compiler.placement import ACCELERATOR, PROCESSOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY, BLUE, GREEN = COLOURS[:3]
RED = COLOURS[6]
DRAWN = 64  # layers with a row; of more, the longest
LONGEST_NAME = 26  # characters of a layer's name
WIDTH, TOP, ROW = 10.0, 1.8, 0.19  # inches: the picture, what stands above the layers, a layer
ABOVE = 1.6  # rows above the first layer, where a legend is


def save_offload_plot(offload: OffloadResult, path: Path) -> Path:
    """Writes the picture; returns its path."""
    return save(offload_plot(offload), path)


def offload_plot(offload: OffloadResult) -> Figure:
    """Above, the whole network twice and the parts of the faster way; below, a row per layer: its
    milliseconds both ways, and how busy it keeps the multipliers."""
    layers = _drawn(offload)
    below = ROW * (len(layers) + ABOVE) + 0.8
    figure = new_figure(WIDTH, TOP + below)
    (whole, parts), (times, hiding) = figure.subplots(
        2, 2, width_ratios=(1.35, 1), height_ratios=(TOP, below)
    )
    for axes in (whole, parts, times, hiding):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.grid(axis="x", color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(labelsize=8)
    _draw_whole(whole, offload)
    _draw_parts(parts, offload)
    _draw_times(times, offload, layers)
    _draw_hiding(hiding, offload, layers)
    figure.suptitle(
        f"{plain_label(offload.model)} on {offload.board}: {offload.processor} at "
        f"{offload.processor_mhz:g} MHz (modelled), accelerator (config {offload.config.name}, "
        f"simulated) {offload.at_clock}\nmemory: {offload.config.memory.name}",
        fontsize=9.5,
    )
    return figure


def _drawn(offload: OffloadResult) -> list[OffloadedLayer]:
    """The layers that have a row, in their order."""
    longest = sorted(offload.layers, key=lambda layer: -max(layer.alone, layer.together))
    drawn = set(longest[:DRAWN])
    return [layer for layer in offload.layers if layer in drawn]


def _draw_whole(axes: Axes, offload: OffloadResult) -> None:
    """Two bars on one scale."""
    totals = (offload.alone, offload.together)
    axes.barh((0, 1), totals, 0.55, color=(GREY, BLUE))
    for row, total in enumerate(totals):
        _say(axes, total, row, milliseconds_text(total))
    names = (f"{offload.processor} alone", "with the accelerator")
    axes.set_yticks((0, 1), names)
    axes.set_ylim(1.6, -0.6)
    axes.set_xlim(0, 1.2 * max(totals))
    axes.set_xlabel("milliseconds for an image", fontsize=8)
    axes.set_title(f"Whole network: {offload.speedup:.1f}× as fast", fontsize=9)


def _draw_parts(axes: Axes, offload: OffloadResult) -> None:
    """Draws the parts of the time with the accelerator, one bar for each part."""
    parts = {
        "processor": (offload.host, RED),
        "transfers": (offload.transfers, GREEN),
        "accelerator": (offload.accelerator, BLUE),
    }
    start = 0.0
    for row, (value, colour) in enumerate(parts.values()):
        axes.barh(row, value, 0.6, left=start, color=colour)
        start += value
        _say(axes, start, row, milliseconds_text(value))
    axes.set_yticks(range(len(parts)), list(parts))
    axes.set_ylim(2.6, -0.6)
    axes.set_xlim(0, 1.3 * start)
    axes.set_xlabel("milliseconds, one after the other", fontsize=8)
    title = f"With the accelerator: {milliseconds_text(offload.together)}"
    axes.set_title(title, fontsize=9)


def _draw_times(axes: Axes, offload: OffloadResult, layers: list[OffloadedLayer]) -> None:
    """Two dots per layer on a logarithmic scale, which spans what is drawn."""
    colours = {ACCELERATOR: BLUE, PROCESSOR: RED}
    for row, layer in enumerate(layers):
        ends = [value for value in (layer.alone, layer.together) if value > 0]
        if not ends:
            continue
        axes.plot(ends, [row] * len(ends), color="#c9d1d9", lw=1.2, zorder=1)
        if layer.alone > 0:
            axes.plot(layer.alone, row, "o", ms=5, color=GREY)
        if layer.together > 0:
            axes.plot(layer.together, row, "o", ms=5, color=colours[layer.device])
        _say(axes, max(ends), row, _remark(layer))
    every = [value for x in layers for value in (x.alone, x.together) if value > 0]
    low, high = min(every, default=1.0), max(every, default=1.0)
    axes.set_xscale("log")
    axes.set_xlim(low / 2, high * max(high / low, 10) ** 0.2)  # remarks stand right of the dots
    axes.set_yticks(range(len(layers)), [plain_label(x.name, LONGEST_NAME) for x in layers])
    axes.set_ylim(len(layers) - 0.3, -0.7 - ABOVE)
    axes.set_xlabel("milliseconds, logarithmic", fontsize=8)
    alone, together = offload.convolutions
    ratio = f": convolutions {alone / together:.0f}× as fast" if together else ""
    some = "" if len(layers) == len(offload.layers) else f", the {DRAWN} longest"
    axes.set_title(f"Each layer{some}{ratio}", fontsize=9)
    for label, colour in (
        (f"{offload.processor} alone", GREY),
        ("on the accelerator", BLUE),
        ("left to the processor", RED),
    ):
        axes.plot([], [], "o", ms=5, color=colour, label=label)
    axes.legend(fontsize=8, frameon=False, loc="upper center", ncols=3, handletextpad=0.1)


def _remark(layer: OffloadedLayer) -> str:
    """Text beside a layer's dots: how many times as fast it is, if the accelerator runs it,
    or that it isn't needed."""
    if layer.device == NOWHERE:
        return "not needed"
    if layer.device == ACCELERATOR and layer.alone and layer.together:
        ratio = layer.alone / layer.together
        return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"
    return ""


def _draw_hiding(axes: Axes, offload: OffloadResult, layers: list[OffloadedLayer]) -> None:
    """Utilization of the multipliers in the layers that use them, in the rows of the layers, with
    latency hiding and without."""
    comparison = offload.hiding
    measured = {layer.name: layer.measured for layer in comparison.layers}
    rows = [(row, measured[x.name]) for row, x in enumerate(layers) if x.name in measured]
    threads = comparison.vthreads
    bar = 0.8 / max(len(threads), 1)
    for i, v in enumerate(threads):
        label = "without" if v == 1 else f"with {v} threads"
        axes.barh(
            [row + (i - (len(threads) - 1) / 2) * bar for row, _ in rows],
            [100 * each[v].utilization for _, each in rows],
            bar,
            label=f"{label}: {100 * comparison.utilization(v):.0f} %",
            color=COLOURS[i],
        )
    axes.set_yticks([])
    axes.set_ylim(len(layers) - 0.3, -0.7 - ABOVE)
    axes.set_xlim(0, 105)
    axes.set_xlabel("utilization, % of the multipliers", fontsize=8)
    axes.set_title("Latency hiding", fontsize=9)
    axes.legend(fontsize=8, frameon=False, loc="upper center", ncols=2)


def _say(axes: Axes, at: float, row: float, text: str) -> None:
    """Text right of a mark."""
    axes.annotate(
        text, (at, row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8
    )
