"""The picture of a network on a processor alone and with the accelerator, with latency hiding
beside it: figure 3 of TVM's paper at SysML 2018 drew both for ResNet-18 on a PYNQ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vdla.analysis.offload import OffloadedLayer, OffloadResult
from vdla.analysis.plots import COLOURS, new_figure, plain_label, save
from vdla.compiler.placement import ACCELERATOR, PROCESSOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY, BLUE, GREEN, ORANGE, PURPLE = COLOURS[:5]
NAMED = 40  # layers whose names fit below the bars
LEAST = 0.01  # ms, of what is drawn on a logarithmic scale


def save_offload_plot(offload: OffloadResult, path: Path) -> Path:
    """Writes the picture; returns its path."""
    return save(offload_plot(offload), path)


def offload_plot(offload: OffloadResult) -> Figure:
    """Three parts: the whole network; each layer that the accelerator runs; latency hiding."""
    figure = new_figure(13.5, 4.4)
    whole, layers, hiding = figure.subplots(1, 3, width_ratios=(1.1, 2.4, 1.9))
    for axes in (whole, layers, hiding):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
    _draw_whole(whole, offload)
    _draw_layers(layers, offload)
    _draw_hiding(hiding, offload)
    memory = offload.config.memory.name
    figure.suptitle(
        f"{plain_label(offload.model)} on {offload.board}: {offload.processor} at "
        f"{offload.processor_mhz:g} MHz (modelled), {offload.config.name} at "
        f"{offload.clock_mhz:g} MHz (simulated; memory: {memory})",
        fontsize=9,
    )
    return figure


def _draw_whole(axes: Axes, offload: OffloadResult) -> None:
    """Two bars of milliseconds, the second one again as large as the first beside it."""
    moved = [x for x in offload.layers if x.device == ACCELERATOR]
    convolutions = sum(x.alone for x in moved if x.is_convolution)
    others = sum(x.alone for x in moved) - convolutions
    left = offload.alone - convolutions - others
    rows: list[tuple[str, str, tuple[float, float]]] = [
        ("convolutions", GREY, (convolutions, 0)),
        ("other layers", PURPLE, (others, 0)),
        ("left to the processor", ORANGE, (left, offload.host)),
        ("transfers", GREEN, (0, offload.transfers)),
        ("accelerator", BLUE, (0, offload.accelerator)),
    ]
    near = axes.inset_axes((0.68, 0.12, 0.3, 0.42))  # the second bar, large
    base = np.zeros(2)
    for label, colour, values in rows:
        if sum(values) > 0:
            axes.bar((0, 1), values, 0.6, bottom=base, color=colour, label=label)
            near.bar(0, values[1], 0.6, bottom=base[1], color=colour)
            base += values
    for at, total in enumerate((offload.alone, offload.together)):
        axes.text(at, total, f"{total:,.0f} ms", ha="center", va="bottom", fontsize=8)
    axes.set_ylim(0, 1.1 * max(base))
    near.set_xticks([])
    near.tick_params(labelsize=6)
    near.spines[["top", "right"]].set_visible(False)
    axes.set_xticks((0, 1), (offload.processor, f"with {offload.config.name}"))
    axes.set_ylabel("milliseconds for an image")
    axes.set_title(f"whole network: {offload.speedup:.1f}× as fast", fontsize=9)
    axes.legend(fontsize=7, frameon=False, loc="upper right")


def _draw_layers(axes: Axes, offload: OffloadResult) -> None:
    """Each layer's milliseconds on a logarithmic scale, alone and together."""
    layers = [x for x in offload.layers if max(x.alone, x.together) >= LEAST]
    at = np.arange(len(layers))
    colours = [_colour(layer) for layer in layers]
    axes.bar(at - 0.2, [max(x.alone, LEAST) for x in layers], 0.4, color=GREY)
    axes.bar(at + 0.2, [max(x.together, LEAST) for x in layers], 0.4, color=colours)
    for place, layer in enumerate(layers):
        if layer.device == ACCELERATOR and layer.together > 0 and len(layers) <= NAMED:
            text = f"{layer.alone / layer.together:.0f}×"
            height = max(layer.alone, layer.together)
            axes.text(place, height, text, ha="center", va="bottom", fontsize=6)
    axes.set_yscale("log")
    axes.set_ylim(bottom=LEAST)
    names = [plain_label(x.name) for x in layers] if len(layers) <= NAMED else []
    axes.set_xticks(at[: len(names)], names, rotation=75, fontsize=6, ha="right")
    alone, together = offload.convolutions
    ratio = f"convolutions: {alone / together:.0f}× as fast" if together else "no convolution"
    axes.set_title(f"layer by layer, milliseconds; {ratio}", fontsize=9)


def _colour(layer: OffloadedLayer) -> str:
    return {ACCELERATOR: BLUE, PROCESSOR: ORANGE}.get(layer.device, GREEN)


def _draw_hiding(axes: Axes, offload: OffloadResult) -> None:
    """Utilization of the multipliers in each distinct layer, with latency hiding and without."""
    comparison = offload.hiding
    at, threads = np.arange(len(comparison.layers)), comparison.vthreads
    bar = 0.8 / max(len(threads), 1)
    for i, v in enumerate(threads):
        label = "without" if v == 1 else f"with: {v} virtual threads"
        values = [100 * layer.measured[v].utilization for layer in comparison.layers]
        axes.bar(
            at + (i - (len(threads) - 1) / 2) * bar,
            values,
            bar,
            label=f"{label}, {100 * comparison.utilization(v):.0f} %",
            color=COLOURS[i],
        )
    names = [plain_label(layer.name) for layer in comparison.layers]
    axes.set_xticks(at, names, rotation=75, fontsize=6, ha="right")
    axes.set_ylim(0, 119)
    axes.set_title("latency hiding: utilization, % of the multipliers", fontsize=9)
    axes.legend(fontsize=7, frameon=False, ncols=2, loc="upper center")
