"""The window of GEMM: what its outputs see, what it reads, and a second row beyond INP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from vdla.analysis.cases import OUTSIDE
from vdla.analysis.coverage.replay import Hook, Place
from vdla.analysis.coverage.values import VALUES, seen_in
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Gemm, Instruction
from vdla.isa.options.window import (
    has_second_row,
    has_window,
    pitch,
    sees_window,
    window_rows,
    window_taps,
)

FIRST, SECOND = "GEMM's window", "GEMM's second row"


@VALUES.add
def goals(config: Config) -> Iterator[str]:
    """Kinds of a window: how far it is full, and where its second row lies."""
    older = "an older vector counts"
    if has_window(config):
        yield from (f"{FIRST}: {kind}" for kind in ("lacks older vectors", "is full", older))
    if has_second_row(config):
        yield from (f"{SECOND}: {kind}" for kind in ("is the first", "is another", older))


@OUTSIDE.add
def outside(config: Config) -> Mapping[str, Instruction]:
    """A GEMM whose second row is beyond INP, where its first isn't."""
    if not has_second_row(config):
        return {}
    gemm = Gemm(uop_count=1, extent_0=2, src_0=1, window=1, pitch=config.depth("inp") - 1)
    return {"a second row beyond INP": gemm}


class WindowHook(Hook):
    """The vectors that a GEMM's micro-ops have read so far, ``[row][step]``."""

    def begin(self, nest: Gemm | Alu) -> None:
        """Empties the window."""
        self.vectors: list[list[np.ndarray]] = [[] for _ in range(window_rows(self.config))]

    def reads(self, nest: Gemm | Alu, first: int, src: int) -> Iterable[Place]:
        """The second row's vector."""
        return [("inp", src + pitch(nest))] if isinstance(nest, Gemm) and sees_window(nest) else ()

    def lanes(self, gemm: Gemm, src: int, seen: np.ndarray) -> np.ndarray:
        """A part of the vector at ``src``, and the window."""
        if not sees_window(gemm):
            return seen
        outputs, lanes, taps = self.config.block_out, self.config.block_in, window_taps(self.config)
        for row, vectors in enumerate(self.vectors):
            vectors.append(self.state.inp[src + row * pitch(gemm)].astype(np.int64))
            window = [*vectors[: -taps - 1 : -1], *[np.zeros(lanes, np.int64)] * taps]
            for o, i in np.ndindex(outputs, 2 * taps):
                seen[o, 2 * taps * row + i] = window[i // 2][(o // 2 * 2 + i % 2) % lanes]
        self._values(gemm, seen)
        return seen

    def _values(self, gemm: Gemm, seen: np.ndarray) -> None:
        taps, steps = window_taps(self.config), len(self.vectors[0])
        kinds = {
            "lacks older vectors": steps < taps,
            "is full": steps >= taps,
            "an older vector counts": seen[:, 2 : 2 * taps].any(),
        }
        self.seen |= seen_in(FIRST, kinds)
        if has_second_row(self.config):
            older = seen[:, 2 * taps + 2 : 4 * taps].any()
            kinds = {"is the first": pitch(gemm) == 0, "is another": pitch(gemm) > 0,
                     "an older vector counts": older}  # fmt: skip
            self.seen |= seen_in(SECOND, kinds)
