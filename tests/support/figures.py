"""Where the texts of a figure of matplotlib stand."""

from __future__ import annotations

from itertools import combinations

from matplotlib.axis import Tick
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

SLACK = 0.5  # pixels that two boxes may share


def text_boxes(figure):
    """Each visible text of a figure with its box in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, idle = canvas.get_renderer(), _idle_labels(figure)
    return [
        (text, text.get_window_extent(renderer))
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in idle
    ]


def overlapping_texts(figure):
    """Pairs of texts whose boxes overlap, and texts that leave the figure."""
    boxes = [(text.get_text(), box) for text, box in text_boxes(figure)]
    pairs = [
        (one, other)
        for (one, a), (other, b) in combinations(boxes, 2)
        if a.x0 + SLACK < b.x1 and b.x0 + SLACK < a.x1
        and a.y0 + SLACK < b.y1 and b.y0 + SLACK < a.y1
    ]  # fmt: skip
    width, height = figure.bbox.width, figure.bbox.height
    outside = [
        (text, "outside")
        for text, box in boxes
        if box.x0 < -SLACK or box.y0 < -SLACK or box.x1 > width + SLACK or box.y1 > height + SLACK
    ]
    return pairs + outside


def _idle_labels(figure):
    """Labels of ticks that matplotlib keeps and doesn't draw: beyond the ends of an axis, or left
    over from an earlier scale."""
    labels, drawn = set(), set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            current = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            for tick in axis.findobj(Tick):
                both = (tick.label1, tick.label2)
                labels.update(both)
                if tick in current and low <= tick.get_loc() <= high:
                    drawn.update(both)
    return labels - drawn


def markers(axes):
    """The points (x, y) that are drawn in axes as dots."""
    return [
        (x, y)
        for line in axes.lines
        if line.get_marker() not in ("", "None", None)
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
