"""A board's LEDs: each shows the bit of its number; bits past the last LED aren't shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import Module, Value
from amaranth.build import ResourceError
from amaranth.lib import io


def show(m: Module, platform: Any, bits: Value) -> None:
    """Joins a design's bits to the board's LEDs."""
    for number, pad in enumerate(_pads(platform, len(bits))):
        m.submodules[f"led_{number}"] = led = io.Buffer("o", pad)
        m.d.comb += led.o.eq(bits[number])


def _pads(platform: Any, count: int) -> Iterator[Any]:
    for number in range(count):
        try:
            yield platform.request("led", number, dir="-")
        except ResourceError:
            return
