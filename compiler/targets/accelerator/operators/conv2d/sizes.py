"""The sizes of a convolution in blocks, and the knobs of its tiles."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.numbers import add_terms
from vdla.compiler.graph.ops.epilogue import AddStep
from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.compiler.targets.accelerator.operators.window import Windowed
from vdla.support.numbers import ceil_div

APART = 64  # dilation from which on taps are loaded one by one


@dataclass(frozen=True)
class Residual:
    """``out = clip(rq((q - q_zero) · weight + (residual - zero) · imm, scale) + …)``."""

    weight: int
    imm: int
    zero: int
    out_zero: int
    low: int
    high: int

    @classmethod
    def of(cls, node: Node) -> Residual | None:
        """The addend of a node's epilogue; None where there is none."""
        if (step := node.step_of(AddStep)) is None:
            return None
        weight, imm, _ = add_terms(*step.requant.scale)
        return cls(weight, imm, step.zeros[1], *step.requant.limits)


ANY_RESIDUAL = Residual(1, 1, 0, 0, 0, 0)  # what tiles need to know of one


@dataclass(frozen=True)
class ConvTile(Tile):
    """A point of the schedule space: tile sizes, in blocks and pixels, and what hides latency.

    One tile is ``outputs`` blocks of ``rows × cols``; ``inputs`` blocks are reduced per step, in
    parts of ``weights`` output blocks. The tiles are dealt to ``vthreads`` virtual threads, which
    take turns; what they read streams through ``stages`` copies of its buffer.
    ``stationary`` names what stays on chip while tiles go by that share it: "wgt" the weights of
    ``outputs`` blocks, "inp" the image under ``rows × cols``. ``resident``: biases and scales of
    the whole layer stay on chip; otherwise each tile loads its own.
    """

    outputs: int
    rows: int
    cols: int
    inputs: int
    weights: int
    vthreads: int = 1
    resident: bool = True
    stationary: str = ""
    stages: int = 1

    @property
    def order(self) -> str:
        """The loops over tiles, outermost first: what stays on chip changes slowest."""
        return "ngyxo" if self.stationary == "inp" else "ngoyx"


@dataclass(frozen=True)
class ConvSizes(Windowed):
    """``inputs`` and ``outputs`` count channel blocks per group.

    ``in_zero`` pads; ``zero``, ``low``, ``high`` finish the requantization. With ``table`` the
    result is looked up in a table. With ``weights4`` the weights lie in DRAM as nibbles. With
    ``bytes`` the data are two images of bytes, low and high, of 16 bits; ``wide`` makes the result
    16 bits, as int32.
    """

    batch: int
    groups: int
    inputs: int
    outputs: int
    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    in_zero: int
    zero: int
    low: int
    high: int
    residual: Residual | None = None
    fixed: bool = False  # whether the residual is the same at all pixels
    table: bool = False
    weights4: bool = False
    bytes: bool = False
    wide: bool = False

    @property
    def planes(self) -> int:
        """Images of bytes for each image."""
        return 2 if self.bytes else 1

    @property
    def sampling(self) -> tuple[int, int]:
        """Strides that loading takes over: those along which the kernel has a size of one.

        A 1×1 convolution with a stride of 2 reads every second row and column alone, so the others
        aren't loaded. A larger kernel reads what lies between as well.
        """
        (kh, kw), (sy, sx) = self.kernel, self.strides
        return sy if kh == 1 else 1, sx if kw == 1 else 1

    @property
    def spread(self) -> bool:
        """Whether each tap of a window has loads of its own: what lies between taps that are far
        apart is more than tiles hold."""
        apart = self.kernel[1] > 1 and self.dilations[1] >= APART
        return apart and self.kernel[0] == 1 and self.strides[1] == 1 and not self.padded

    @property
    def moving(self) -> bool:
        """Whether a residual has a value of its own for each pixel."""
        return self.residual is not None and not self.fixed

    @property
    def alu_steps(self) -> int:
        """Operations of the ALU on each vector of sums before it is stored."""
        return 2 * (self.residual is not None) + 2 * self.table + 4 * self.bytes + 6 * self.wide

    @property
    def multiplications(self) -> int:
        """Operations of the ALU on each vector that multiply: all but a look into the table."""
        return self.alu_steps - self.table - 2 * self.bytes - 3 * self.wide


def kept_copies(shape: ConvSizes, tile: ConvTile) -> int:
    """Copies of what a tile keeps: one if it never changes, else one per thread."""
    if tile.stationary == "inp":
        changes = ceil_div(shape.out_height, tile.rows) * ceil_div(shape.out_width, tile.cols)
    else:
        changes = shape.outputs // tile.outputs
    return 1 + (tile.vthreads - 1) * (shape.batch * shape.groups * changes > 1)
