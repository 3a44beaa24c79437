"""Words for random programs, often at the corners of what an operation can meet."""

from __future__ import annotations

from random import Random

import numpy as np

from vdla.isa.numbers import INT32_MAX, INT32_MIN, pack_scale

BLOCK = 64  # bytes of data that are of one kind

# Words for ACC and for scales: odd numbers by 2**-k are ties, and the rest are ends of ranges.
CORNER_VALUES = (
    *(0, 1, -1, 3, -3, 5, -5, 127, -128, 31, -32, 32, -33, 63, INT32_MAX, INT32_MIN),
    *(sign * (1 << bit) + one for sign in (1, -1) for bit in (17, 24, 30) for one in (0, -1, 1)),
)
CORNER_SCALES = (
    *(pack_scale(scale) for scale in (0.5, 0.25, 0.75, 1.0, 1.5, 2.0**-40, 2.0**22)),
    *(0, 1, 0xFFFFFF, 1 << 24 | 1, 2 << 24 | 1, 2 << 24 | 3, 63 << 24, 63 << 24 | 0xFFFFFF),
)
CORNER_WORDS = np.array(CORNER_VALUES + CORNER_SCALES, np.int64).astype(np.uint32)


def random_words(size: int, random: Random) -> bytes:
    """``size`` bytes, a multiple of BLOCK: blocks of random words, and of words at the corners."""
    rng = np.random.Generator(np.random.PCG64(random.getrandbits(64)))
    shape = size // BLOCK, BLOCK // 4
    anything = rng.integers(0, 1 << 32, shape, np.uint32)
    corners = CORNER_WORDS[rng.integers(0, len(CORNER_WORDS), shape)]
    words = np.where(rng.random((shape[0], 1)) < 0.5, corners, anything)
    return words.astype("<u4").tobytes()
