"""Labels beside points, none over another: each stands at the nearest free place around its point,
and a line leads to it where that is some way off.

``report/labels.js`` does the same for the page of ``vdla compare --report``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import hypot
from typing import NamedTuple

GAP = 6.0  # from a point to its label where there is room; units are the caller's: pixels, points
STEPS = 16  # distances tried, each a GAP farther
AROUND = ((0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1))  # as they are tried
APART = 4.0  # places of a line that are kept free


class Box(NamedTuple):
    """A rectangle, y upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def holds(self, other: Box) -> bool:
        """Whether the other lies within."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.bottom <= other.bottom
            and other.top <= self.top
        )


class Label(NamedTuple):
    """A label's rectangle, and whether a line leads to it from its point."""

    box: Box
    has_line: bool


def placed_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    bounds: Box,
    obstacles: Sequence[Box],
) -> list[Label | None]:
    """A label for each point, or None where no place around it is free.

    Args:
        points: what the labels name.
        sizes: width and height of each label.
        bounds: where labels may be.
        obstacles: what no label may cover; a point's own mark may be among them.
    """
    labels: list[Label | None] = [None] * len(points)
    taken, texts = list(obstacles), list[Box]()
    for index in sorted(range(len(points)), key=lambda i: points[i]):
        for step, box in _candidates(points[index], sizes[index]):
            line = _line(points[index], box) if step else []
            if (
                bounds.holds(box)
                and not any(box.overlaps(other) for other in taken)
                and not any(place.overlaps(text) for place in line for text in texts)
            ):
                labels[index] = Label(box, bool(step))
                taken += [box, *line]
                texts.append(box)
                break
    return labels


def line_end(point: tuple[float, float], box: Box) -> tuple[float, float]:
    """Place where a line from a point meets a label: the nearest place of its edge."""
    x, y = point
    return min(max(x, box.left), box.right), min(max(y, box.bottom), box.top)


def _candidates(point: tuple[float, float], size: tuple[float, float]) -> Iterator[tuple[int, Box]]:
    """Places for a label, the nearest first, with how many steps away each is."""
    (x, y), (width, height) = point, size
    for step in range(STEPS):
        away = GAP * (1 + step)
        for across, up in AROUND:
            left = x - width / 2 + across * (away + width / 2)
            bottom = y - height / 2 + up * (away + height / 2)
            yield step, Box(left, bottom, left + width, bottom + height)


def _line(point: tuple[float, float], box: Box) -> list[Box]:
    """Small boxes along the line from a point to its label, without those at the point itself."""
    (x, y), (end_x, end_y) = point, line_end(point, box)
    count = int(hypot(end_x - x, end_y - y) / APART)
    shares = [i / count for i in range(1, count)]
    places = [(x + s * (end_x - x), y + s * (end_y - y)) for s in shares]
    return [Box(a - 1, b - 1, a + 1, b + 1) for a, b in places]
