"""The loops of an operator's tiles, for thousands of tiles at once: what the learned model sees.

A schedule is a nest of four loop levels, outermost first: the **layer**, a **tile** of its output,
a **step** of the tile's reduction and a **part** of the step's weights. Lowering a candidate to
read the same off its loops costs half a second, and annealing looks at every tile; so templates
compute it from their sizes and knobs. ``tests/compiler/tune/test_features.py`` holds it against the
lowered loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = dict[str, Floats]
Knobs = Mapping[str, NDArray[Any]]  # a tile's fields, one entry per tile


@dataclass(frozen=True)
class Nest:
    """One entry per tile of the space in every array.

    ``trips`` counts the iterations of each level in all. ``touched[buffer][level]`` are bytes per
    iteration, ``moved`` bytes in all, ``commands`` instructions in all. ``ends`` are the bytes that
    nothing hides: what the first operation waits for, and what is stored after the last. ``ops``
    are multiply-adds, or operations of the ALU where there are none.
    """

    ops: float
    trips: Columns
    touched: Mapping[str, Columns]
    moved: Columns
    commands: Columns
    ends: Floats


def flat(tiles: Floats) -> Columns:
    """The trips of a nest without a reduction: each tile is one step of one part."""
    return dict.fromkeys(("tile", "step", "part"), tiles)
