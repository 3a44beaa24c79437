"""Weights of 4 bits: each beat of WGT4 fills two columns of WGT, a byte for each nibble."""

from __future__ import annotations

from amaranth import Cat, Value

from vdla.hw.load.memory_ports import FormHooks
from vdla.isa.options.weights4 import NIBBLE_BITS, OPTIONS, WGT4


class Nibbles(FormHooks):
    """WGT4, which is WGT seen through int4."""

    option, memory = OPTIONS[0], WGT4

    def columns(self, beat: Value) -> Value:
        """Each nibble with its sign in the bits above, the first of them lowest."""
        count = len(beat) // NIBBLE_BITS
        nibbles = (beat.word_select(n, NIBBLE_BITS) for n in range(count))
        return Cat(Cat(nibble, nibble[-1].replicate(NIBBLE_BITS)) for nibble in nibbles)
