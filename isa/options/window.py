"""The window of GEMM: outputs see vectors of several micro-ops, and of two rows of an image.

With the flag ``window`` and ``window_taps`` = T, output o of a GEMM takes its lanes i < 2·T from
elsewhere: lane ``(2·⌊o / 2⌋ + i mod 2) mod block_in`` of the vector that the micro-op ⌊i / 2⌋ steps
before this one read. So each output sees both channels of its pair at T places of a row, as a
depthwise convolution does. The vectors before an instruction's first micro-op are zero.

With ``window_rows`` = 2, such a micro-op reads a second vector, too, which is ``inp[src + pitch]``.
Lane 2·T + i, for i < 2·T, comes from these vectors as lane i does from the first ones. So each
output sees T places of two rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.fields import Field, Instruction, OptionFlag
from vdla.isa.options.option import AddedField, Expectations, Option, Parameter, Probes

if TYPE_CHECKING:
    from vdla.isa.config import Config

TAPS = Parameter("window_taps", "vectors that the window of a GEMM sees; 0: no window", high=128)
ROWS = Parameter(
    "window_rows", "rows that the window of a GEMM sees; 1: that of its src", off=1, low=1, high=2
)


def window_taps(config: Config) -> int:
    """Vectors that the window sees, those before and the present one; 0: there is no window."""
    return TAPS.of(config)


def window_rows(config: Config) -> int:
    """Rows that the window sees; 1 without a second one, and without a window."""
    return ROWS.of(config)


def has_window(config: Config) -> bool:
    """Whether a GEMM of the config may see a window."""
    return window_taps(config) > 0


def has_second_row(config: Config) -> bool:
    """Whether the window has two rows."""
    return window_rows(config) > 1


def sees_window(gemm: Instruction) -> bool:
    """Whether a GEMM's outputs see the window."""
    return bool(vars(gemm)["window"])


def pitch(gemm: Instruction) -> int:
    """Entries of INP from what a GEMM's first row reads to what its second one does."""
    return int(vars(gemm)["pitch"])


def _check_taps(config: Config) -> Expectations:
    """A place of a row takes two lanes, one for each channel of a pair."""
    taps, most = window_taps(config), config.block_in // 2
    yield (
        taps == 0 or 2 <= taps <= most,
        f"window_taps to be 0 or from 2 to block_in / 2 = {most}, found {taps}",
    )


def _check_rows(config: Config) -> Expectations:
    """Two rows take twice the lanes."""
    if not has_second_row(config):
        return
    taps, most = window_taps(config), config.block_in // 2
    yield (
        most >= 4,
        f"block_in ≥ 8 where window_rows = 2, found {config.block_in}; set window_rows to 1",
    )
    yield (
        2 <= taps <= most // 2,
        f"window_taps to be from 2 to block_in / 4 = {most // 2} where window_rows = 2, "
        f"found {taps}; change one of the two",
    )


def _pitch_bits(config: Config) -> int:
    """No bits where a window has one row."""
    return config.index_bits("inp") if has_second_row(config) else 0


_FLAG = OptionFlag("lanes below 2·T come from the window", present=has_window)
_PITCH = Field(
    _pitch_bits, "added to src for the window's second row; nothing reads it without ``window``"
)

OPTIONS = (
    Option(
        rank=3,
        title="a window",
        parameter=TAPS,
        checks=_check_taps,
        fields=(AddedField("GEMM", "init", "window", _FLAG),),
        probes=Probes((("a", {TAPS.name: 3}), ("c", {TAPS.name: 2})), "da3b9923"),
    ),
    Option(
        rank=4,
        title="a window of two rows",
        parameter=ROWS,
        checks=_check_rows,
        needs=frozenset({TAPS.name}),
        fields=(AddedField("GEMM", "window", "pitch", _PITCH),),
        probes=Probes(
            (("a", {TAPS.name: 3, ROWS.name: 2}), ("b", {TAPS.name: 2, ROWS.name: 2})), "eb727a2d"
        ),
    ),
)
