"""Parts that all pictures share: colours, an empty figure, foreign names, a file that is the same
for the same figure."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.support.files import atomic_write
from vdla.support.names import printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The light ones of the page, --t0 to --t7 of report/page.css: grey, blue, green, pink, orange,
# light blue, red, black. A test compares them.
COLOURS = (
    "#98a2ac", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#d55e00", "#1c2126"
)  # fmt: skip
UNLIKE = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}  # what differs between two runs
LONGEST_LABEL = 48  # characters of a name


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; what matplotlib says of a home that it can't write to is kept from users."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes."""
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    bare(axes)
    return figure, axes


def bare(axes: Axes) -> None:
    """Leaves of the frame the two axes, and draws lines at the y axis's ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)


def plain_label(name: str, most: int = LONGEST_LABEL) -> str:
    """A foreign name as matplotlib shows it letter by letter, in at most ``most`` of them: ``$``
    opens no formula."""
    return shortened(printable(name), most).replace("$", r"\$")


def save(figure: Figure, path: Path) -> Path:
    """Writes a picture without anything that differs between two runs."""
    from matplotlib import rc_context

    kind = path.suffix.removeprefix(".")
    metadata = {UNLIKE[kind]: None} if kind in UNLIKE else None
    with atomic_write(path) as beside, rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(beside, format=kind, metadata=metadata)
    return path
