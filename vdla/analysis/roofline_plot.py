"""The roofline of a comparison: every layer below the roof of peak and bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vdla.analysis.comparison import Comparison, Layer
from vdla.analysis.figures import COLOURS, new_axes, plain_label
from vdla.analysis.labels import Box, line_end, placed_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import BboxBase

DOT = 5.0  # points
NEAR = 4.0  # points between dots that have one label
FONT = 7.5  # points
LONGEST_LABEL = 8  # characters; where a name is longer, dots have numbers and a list has the names
LONGEST_NAME = 26  # characters of a name in the list
LISTED = 24  # names in a column of the list
LIST_INCHES = 2.0  # a column's width
MOST_LISTED = 2 * LISTED
POINTS_PER_INCH = 72
NUMBERS = (1, 2, 5)  # on an axis, times powers of ten


def roofline_plot(comparison: Comparison) -> Figure:
    """Attained GOPS over operational intensity; a line joins the same layer with fewer virtual
    threads and with more. The axes span the layers and the ridge of the roof."""
    config = comparison.config
    figure, axes = new_axes(7.0 + LIST_INCHES * _columns(comparison.layers), 4.4)
    peak, bandwidth = config.peak_gops, config.bytes_per_cycle * config.clock_mhz / 1000
    ridge = peak / bandwidth
    layers = comparison.layers
    across = [_intensity(layer) for layer in layers]
    attained = {
        v: [peak * layer.measured[v].utilization for layer in layers] for v in comparison.vthreads
    }
    every = [value for values in attained.values() for value in values]
    left, right = min([ridge, *across]) / 1.6, max([ridge, *across]) * 1.6
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(every, default=peak / 10) / 1.6, peak * 1.3)
    roof = np.geomspace(left, right, 400)
    axes.plot(roof, np.minimum(peak, roof * bandwidth), color="black", lw=1.2)
    for i, v in enumerate(comparison.vthreads):
        label = f"{v} virtual thread{'s' if v > 1 else ''}"
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(across, attained[v], "o", ms=DOT, color=colour, label=label, zorder=3)
    if attained:
        axes.vlines(
            across,
            np.min(list(attained.values()), axis=0),
            np.max(list(attained.values()), axis=0),
            color="#c9d1d9",
            lw=1,
        )
    _set_ticks(axes)
    axes.set_xlabel("operations per byte of DRAM traffic")
    axes.set_ylabel("GOPS")
    title = f"Roofline of {config.name}: {peak:g} GOPS, {bandwidth:g} GB/s {config.at_clock}"
    axes.set_title(title, fontsize=10)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4, frameon=False)
    _name_layers(figure, axes, layers, across, attained)
    return figure


def _intensity(layer: Layer) -> float:
    return 2 * layer.macs / layer.dram_bytes


def _set_ticks(axes: Axes) -> None:
    """Plain numbers on both axes, as many as a decade or a few of them need."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        subs = NUMBERS if high / low < 300 else (1,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=99))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def _name_layers(
    figure: Figure,
    axes: Axes,
    layers: Sequence[Layer],
    across: Sequence[float],
    attained: dict[int, list[float]],
) -> None:
    """Each name below its layer's lowest dot, or where there is room around it; layers whose dots
    coincide share a label."""
    if not layers:
        return
    texts = _texts(figure, layers)
    figure.draw_without_rendering()  # the layout, which decides how far apart dots are
    dots = {v: _places(figure, axes, across, values) for v, values in attained.items()}
    lowest = [min(column, key=lambda dot: dot[1]) for column in zip(*dots.values(), strict=True)]
    groups = _groups(lowest)
    names = [", ".join(texts[i] for i in group) for group in groups]
    points = [lowest[group[0]] for group in groups]
    marks = [_around(dot) for places in dots.values() for dot in places]
    roof = np.asarray(axes.lines[0].get_xydata(), float)
    marks += [_around(at, 1) for at in _places(figure, axes, roof[:, 0], roof[:, 1])]
    bounds = _in_points(figure, axes.get_window_extent())
    labels = placed_labels(points, [_size(figure, name) for name in names], bounds, marks)
    for group, name, point, label in zip(groups, names, points, labels, strict=True):
        if label is None:
            continue
        box = label.box
        end_x, end_y = line_end(point, box)
        width, height = box.right - box.left, box.top - box.bottom
        at = min(group, key=lambda i: lowest[i][1])
        axes.annotate(
            name,
            (across[at], min(values[at] for values in attained.values())),
            xytext=(box.left - lowest[at][0], box.bottom - lowest[at][1]),
            textcoords="offset points",
            va="bottom",
            fontsize=FONT,
            arrowprops={
                "arrowstyle": "-",
                "lw": 0.6 if label.has_line else 0.0,
                "color": "#57616b",
                "shrinkA": 0,
                "shrinkB": DOT / 2,
                "relpos": ((end_x - box.left) / width, (end_y - box.bottom) / height),
            },
        ).set_in_layout(False)


def _groups(places: Sequence[tuple[float, float]]) -> list[list[int]]:
    """The indices of places that all but coincide."""
    groups = list[list[int]]()
    for index, (x, y) in enumerate(places):
        for group in groups:
            first_x, first_y = places[group[0]]
            if abs(first_x - x) < NEAR and abs(first_y - y) < NEAR:
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _columns(layers: Sequence[Layer]) -> int:
    """Columns of the list of names; none where all names are short."""
    if all(len(layer.name) <= LONGEST_LABEL for layer in layers):
        return 0
    return -(-min(len(layers), MOST_LISTED) // LISTED)


def _texts(figure: Figure, layers: Sequence[Layer]) -> list[str]:
    """Labels at each layer's dots: short names themselves, else numbers, with a list of the
    names beside the axes."""
    names = [plain_label(layer.name, LONGEST_NAME) for layer in layers]
    if not (columns := _columns(layers)):
        return names
    numbers = [str(place) for place in range(1, len(names) + 1)]
    rows = [f"{number}  {name}" for number, name in zip(numbers, names, strict=True)]
    if len(rows) > MOST_LISTED:
        rows = [*rows[: MOST_LISTED - 1], f"and {len(rows) - MOST_LISTED + 1} more"]
    from matplotlib.lines import Line2D

    figure.legend(
        [Line2D([], [], lw=0) for _ in rows],
        rows,
        loc="outside right upper",
        fontsize=FONT,
        frameon=False,
        handlelength=0,
        handletextpad=0,
        ncols=columns,
    )
    return numbers


def _places(
    figure: Figure, axes: Axes, across: Iterable[float], up: Iterable[float]
) -> list[tuple[float, float]]:
    """Places of values, in points."""
    scale = POINTS_PER_INCH / figure.dpi
    pixels = [axes.transData.transform(at) for at in zip(across, up, strict=True)]
    return [(float(x) * scale, float(y) * scale) for x, y in pixels]


def _around(point: tuple[float, float], half: float = DOT / 2) -> Box:
    x, y = point
    return Box(x - half, y - half, x + half, y + half)


def _in_points(figure: Figure, box: BboxBase) -> Box:
    scale = POINTS_PER_INCH / figure.dpi
    return Box(box.x0 * scale, box.y0 * scale, box.x1 * scale, box.y1 * scale)


def _size(figure: Figure, text: str) -> tuple[float, float]:
    """Width and height of a label, in points."""
    shown = figure.text(0, 0, text, fontsize=FONT)
    box = _in_points(figure, shown.get_window_extent())
    shown.remove()
    return box.right - box.left, box.top - box.bottom
