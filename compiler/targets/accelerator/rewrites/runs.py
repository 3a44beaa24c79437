"""Pixels in another order, or in several images, by runs that are copied."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.form import Form, Places
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.types import Array, Shape

PIXELS = 3  # the axis of an image that has them


class Steps(NamedTuple):
    """Places of factors on the way to others: channels stay as they are from the first to the
    second, and addresses do the rest."""

    first: Places
    second: Places


def steps(form: Form, wanted: Places) -> Steps | None:
    """The ways between places whose channels have, or get, more factors by addresses: heads are
    channels of a sequence, and images of a product. None where there are none."""
    have = form.places
    for first in _apart(have):
        for second in _apart(wanted):
            if first.channels == second.channels and _same(first, second):
                return Steps(first, second)
    return None


def _apart(places: Places) -> list[Places]:
    """Places that are these by addresses: some of the last factors of a batch are channels."""
    batch, channels, pixels = places
    cuts = range(len(batch), -1, -1)
    return [Places(batch[:cut], batch[cut:] + channels, pixels) for cut in cuts]


def _same(a: Places, b: Places) -> bool:
    return sorted(a.batch + a.pixels) == sorted(b.batch + b.pixels)


def moved(image: str, name: str, form: Form, way: Steps, lanes: int) -> list[Node]:
    """The nodes that bring an image's pixels from the first places of a way to the second ones."""
    first, second = way
    inner = 0
    while inner < min(len(first.pixels), len(second.pixels)):
        if first.pixels[-1 - inner] != second.pixels[-1 - inner]:
            break
        inner += 1
    outer = slice(0, -inner or None)
    run = form.size(first.pixels[len(first.pixels) - inner :])
    blocks = form.size(first.channels) // lanes
    have = (*first.batch, None, *first.pixels[outer])
    want = (*second.batch, None, *second.pixels[outer])
    sizes = [blocks if factor is None else form.sizes[factor] for factor in have]
    numbers = np.arange(int(np.prod(sizes))).reshape(sizes)
    table = numbers.transpose([have.index(factor) for factor in want]).ravel()
    size = form.size(first.channels), form.size(second.pixels)
    return _copies(image, name, table.size, run, table, size, lanes)


def picked(
    image: str, name: str, shape: Shape, axis: int, table: Sequence[int], lanes: int
) -> list[Node]:
    """The nodes that take elements of an image along one of its axes; pixels of one row by runs."""
    n, channels, _, pixels = shape
    if axis == PIXELS and channels % lanes == 0:
        run = gcd(pixels, len(table))
        while not _is_run(table, run):
            run = next(r for r in range(run - 1, 0, -1) if run % r == 0)
        rows, each = n * channels // lanes, pixels // run
        units = np.arange(rows)[:, np.newaxis] * each + np.array(table[::run]) // run
        size = channels, len(table)
        return _copies(image, name, rows * each, run, units.ravel(), size, lanes)
    tables = [list(range(size)) for size in shape]
    tables[axis] = list(table)
    places = tuple(place for each in tables for place in each)
    sizes = tuple(map(len, tables))
    return [ops.QTake(name=name, output=name, data=image, shape=sizes, places=places)]


def _is_run(table: Sequence[int], run: int) -> bool:
    """Whether places are runs of a length that begin at its multiples."""
    rows = np.array(table).reshape(-1, run)
    return bool((rows[:, :1] % run == 0).all() and (np.diff(rows, axis=1) == 1).all())


def _copies(
    image: str, name: str, count: int, run: int, table: Array, size: tuple[int, int], lanes: int
) -> list[Node]:
    """The nodes that make images of ``size``, channels and pixels, of runs of an image's pixels:
    images of one block each, in the order of bytes."""
    runs, taken, (channels, pixels) = f"{name}.runs", f"{name}.taken", size
    one = lanes, 1, run
    places = (*map(int, table), *range(lanes), 0, *range(run))
    images = len(table) * lanes * run // (channels * pixels)
    whole = images, channels, 1, pixels
    return [
        ops.QView(name=runs, output=runs, data=image, shape=(count, *one), lanes=lanes),
        ops.QTake(name=taken, output=taken, data=runs, shape=(len(table), *one), places=places),
        ops.QView(name=name, output=name, data=taken, shape=whole, lanes=lanes),
    ]
