"""The sizes of a depthwise convolution and its neighbours, in channel blocks; the tile's knobs."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.targets.accelerator.operators.conv2d.sizes import Residual
from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.compiler.targets.accelerator.operators.window import Windowed
from vdla.support.numbers import ceil_div

PORTIONS = 8  # of a result's channel blocks: one is stored while the next is computed


@dataclass(frozen=True)
class Limits:
    """``min(max(rq(sum, scale) + zero, low), high)``: what follows the sums of one convolution."""

    zero: int
    low: int
    high: int


ANY_LIMITS = Limits(0, 0, 0)  # what tiles need to know of some


@dataclass(frozen=True)
class SeparableTile(Tile):
    """A point of the schedule space.

    One tile is ``rows × cols`` pixels of the result, with all channels where a convolution projects
    it. The depthwise channels go by in steps of ``blocks`` channel blocks; with ``vthreads`` > 1
    steps run beside one another, in as many copies of what they leave to one another. ``stages`` is
    how many copies the data of a tile has, where a convolution expands it. ``resident``: all
    weights stay on chip; otherwise each step loads its own, of those that project it a
    portion at a time, in ``copies`` copies.
    """

    rows: int
    cols: int
    blocks: int
    vthreads: int = 1
    stages: int = 1
    resident: bool = False
    copies: int = 1


@dataclass(frozen=True)
class SeparableSizes(Windowed):
    """``expand → depthwise → project``, of which the first and the last may be missing.

    ``inputs`` counts the channel blocks that ``expand``, a 1 × 1 convolution, reads (0: there is
    none), ``blocks`` those of the depthwise convolution, ``outputs`` those that ``project``, a
    1 × 1 convolution too, writes (0: none). The window is the depthwise convolution's. ``taps`` is
    how many neighbouring pixels of a row one micro-op sees (1: a product with a diagonal for each
    tap), ``window_rows`` in how many rows. ``pad`` fills what the window sees outside the image.
    With ``weights4`` all weights lie in DRAM as nibbles.
    """

    batch: int
    inputs: int
    blocks: int
    outputs: int
    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    taps: int
    pad: int
    expanded: Limits | None
    filtered: Limits
    projected: Limits | None
    residual: Residual | None = None
    window_rows: int = 1
    weights4: bool = False

    @property
    def phases(self) -> int:
        """Into how many images of every so-many-th column the window's image is taken apart."""
        return self.strides[1] if self.taps > 1 else 1

    @property
    def reach(self) -> int:
        """Number of neighbouring columns of one phase that a row of the kernel sees."""
        return ceil_div(self.kernel[1], self.phases)

    @property
    def portions(self) -> int:
        """Micro-ops for one row of the kernel in one phase."""
        return ceil_div(self.reach, self.taps)

    @property
    def pairs_phases(self) -> bool:
        """Whether a window's two rows are the phases, and not two rows of the kernel."""
        return self.window_rows > 1 and self.phases == 2

    @property
    def steps(self) -> tuple[int, int]:
        """Steps of the window down the kernel, and over the phases of columns."""
        if self.pairs_phases:
            return self.kernel[0], 1
        return ceil_div(self.kernel[0], self.window_rows), self.phases

    @property
    def pitch(self) -> int:
        """Number of rows of the kernel from a window's first row to the second. The second rows end
        with the kernel; where there is an odd number of them, one is seen twice."""
        return 0 if self.pairs_phases else self.kernel[0] - self.steps[0]

    @property
    def micro_ops(self) -> int:
        """Micro-ops of the window for one vector of the result."""
        down, phases = self.steps
        return down * phases * self.portions
