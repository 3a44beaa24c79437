"""Places and ends of bursts: each has at most ``burst_beats``, within its 4 KiB page.

Units number places in DRAM by **beats** of ``port_bytes``; fetch lets no address between two pass.
The DMA gets bytes.

AXI4 forbids bursts across pages (Arm IHI 0022, section A3.4.1). A run of beats is cut greedily, as
docs/timing.md, section 2, says; fetch, LOAD and STORE all cut this way.
"""

from __future__ import annotations

from amaranth import Cat, Const, Mux, Value

from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.instructions import DRAM_BITS

PAGE_BITS = (PAGE_BYTES - 1).bit_length()
PAGES_BITS = DRAM_BITS - PAGE_BITS + 1  # of a number of pages, up to all there are


def offset_bits(config: Config) -> int:
    """Bits of a byte address within a beat."""
    return (config.port_bytes - 1).bit_length()


def beat_bits(config: Config) -> int:
    """Bits of a beat's number."""
    return DRAM_BITS - offset_bits(config)


def to_bytes(config: Config, beat: Value) -> Value:
    """The byte address of a beat, in DRAM_BITS."""
    return Cat(Const(0, offset_bits(config)), beat[: beat_bits(config)])


def burst_beats(config: Config, beat: Value, left: Value) -> Value:
    """Beats of the burst at ``beat`` when ``left`` beats of its run are still to move."""
    return cut(config, beat, left)[0]


def cut(config: Config, beat: Value, left: Value) -> tuple[Value, Value]:
    """``burst_beats``, and whether these are all that is left.

    No carry runs through the whole of either number: only within reach of the page's end can the
    page limit the burst, and only a small ``left`` can.
    """
    reach = (config.burst_beats - 1).bit_length()  # of the limit, in bits
    beat = beat[: PAGE_BITS - offset_bits(config)]  # within its page
    to_end = ((1 << reach) - beat[:reach])[: reach + 1]
    limit = Const(config.burst_beats, reach + 1)
    if config.burst_beats < 1 << reach:
        to_end = Mux(to_end < limit, to_end, limit)
    most = Mux(beat[reach:].all(), to_end, limit)
    few, many = left[: reach + 1], left[reach + 1 :].any()
    if reach == 0:  # bursts of one beat: one bit can't be more
        return Mux(many, most, few), ~many
    beats = Mux(many | (few > most), most, few)
    return beats, ~many & (few <= most)


def is_outside(beat: Value, config: Config, dram_pages: Value) -> Value:
    """Whether a burst there would be a fault: beyond DRAM.

    The comparison takes long, so it is made when the place is, and kept with it.
    """
    return beat[PAGE_BITS - offset_bits(config) :] >= dram_pages
