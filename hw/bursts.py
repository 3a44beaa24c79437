"""Where a burst may lie, and where it ends: at most ``burst_beats``, within its 4 KiB page.

AXI4 forbids bursts across pages (Arm IHI 0022, section A3.4.1). A run of beats is cut greedily, as
docs/timing.md, section 2, says; fetch, LOAD and STORE all cut this way.
"""

from __future__ import annotations

from amaranth import Mux, Value

from vdla.isa.config import PAGE_BYTES, Config

PAGE_BITS = (PAGE_BYTES - 1).bit_length()


def burst_beats(config: Config, address: Value, left: Value) -> Value:
    """Beats of the burst at ``address`` when ``left`` beats of its run are still to move."""
    offset_bits = (config.port_bytes - 1).bit_length()
    per_page = PAGE_BYTES // config.port_bytes
    to_end = (per_page - address[offset_bits:PAGE_BITS])[: per_page.bit_length()]
    most = Mux(to_end < config.burst_beats, to_end, config.burst_beats)
    return Mux(left < most, left, most)[: config.burst_beats.bit_length()]


def is_outside(address: Value, config: Config, dram_pages: Value) -> Value:
    """Whether a burst there would be a fault: beyond DRAM, or not on a beat.

    The comparison takes long, so it is made when the address is, and kept with it.
    """
    offset = (config.port_bytes - 1).bit_length()
    return (address[PAGE_BITS:] >= dram_pages) | address[:offset].any()
