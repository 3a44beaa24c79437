"""Where a burst may lie, and where it ends: at most ``burst_beats``, within its 4 KiB page.

AXI4 forbids bursts across pages (Arm IHI 0022, section A3.4.1). A run of beats is cut greedily, as
docs/timing.md, section 2, says; fetch, LOAD and STORE all cut this way.
"""

from __future__ import annotations

from amaranth import Const, Mux, Value

from vdla.isa.config import PAGE_BYTES, Config

PAGE_BITS = (PAGE_BYTES - 1).bit_length()


def burst_beats(config: Config, address: Value, left: Value) -> Value:
    """Beats of the burst at ``address`` when ``left`` beats of its run are still to move."""
    return cut(config, address, left)[0]


def cut(config: Config, address: Value, left: Value) -> tuple[Value, Value]:
    """``burst_beats``, and whether these are all that is left.

    No carry runs through the whole of either number: only within reach of the page's end can the
    page limit the burst, and only a small ``left`` can.
    """
    offset_bits = (config.port_bytes - 1).bit_length()
    reach = (config.burst_beats - 1).bit_length()  # of the limit, in bits
    beat = address[offset_bits:PAGE_BITS]
    to_end = ((1 << reach) - beat[:reach])[: reach + 1]
    limit = Const(config.burst_beats, reach + 1)
    if config.burst_beats < 1 << reach:
        to_end = Mux(to_end < limit, to_end, limit)
    most = Mux(beat[reach:].all(), to_end, limit)
    few, many = left[: reach + 1], left[reach + 1 :].any()
    beats = Mux(many | (few > most), most, few)
    return beats, ~many & (few <= most)


def is_outside(address: Value, config: Config, dram_pages: Value) -> Value:
    """Whether a burst there would be a fault: beyond DRAM, or not on a beat.

    The comparison takes long, so it is made when the address is, and kept with it.
    """
    offset = (config.port_bytes - 1).bit_length()
    return (address[PAGE_BITS:] >= dram_pages) | address[:offset].any()
