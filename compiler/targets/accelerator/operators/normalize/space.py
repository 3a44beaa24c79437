"""The sizes of a normalization, and its tiles."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.targets.accelerator.operators.template import Tile


@dataclass(frozen=True)
class NormalizeTile(Tile):
    """Blocks of pixels in a tile, channels of a portion, and blocks of channels of which pixels
    are inputs at a time. ``resident``: all digits stay on chip."""

    blocks: int
    channels: int
    inputs: int
    vthreads: int = 1
    resident: bool = True


@dataclass(frozen=True)
class NormalizeSizes:
    """The normalization of ``pixels`` of ``channels`` each, of ``batch`` images; the numbers are
    the node's. ``bytes``: pixels have 16 bits, and are two images of bytes. ``is_wide``: results
    have 16 bits, too, and are int32."""

    batch: int
    channels: int
    pixels: int
    centered: bool
    epsilon: int
    shift: int
    in_zero: int
    zero: int
    low: int
    high: int
    bytes: bool = False
    is_wide: bool = False
