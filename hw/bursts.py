"""Where a burst may lie, and where it ends: at most ``burst_beats``, within its 4 KiB page.

AXI4 forbids bursts across pages (Arm IHI 0022, section A3.4.1). A run of beats is cut greedily, as
docs/timing.md, section 2, says; fetch, LOAD and STORE all cut this way.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value

from vdla.isa.config import PAGE_BYTES, Config

PAGE_BITS = (PAGE_BYTES - 1).bit_length()


def burst_beats(m: Module, config: Config, address: Value, left: Value) -> Signal:
    """Beats of the burst at ``address`` when ``left`` beats of its run are still to move."""
    offset_bits = (config.port_bytes - 1).bit_length()
    per_page = PAGE_BYTES // config.port_bytes
    to_end = Signal(range(per_page + 1), name="beats_to_page_end")
    most = Signal(range(config.burst_beats + 1), name="beats_at_most")
    beats = Signal(range(config.burst_beats + 1), name="burst_beats")
    m.d.comb += [
        to_end.eq(per_page - address[offset_bits:PAGE_BITS]),
        most.eq(Mux(to_end < config.burst_beats, to_end, config.burst_beats)),
        beats.eq(Mux(left < most, left, most)),
    ]
    return beats


def is_outside(address: Value, config: Config, dram_pages: Value) -> Value:
    """Whether a burst there would be a fault: beyond DRAM, or not on a beat.

    The comparison takes long, so it is made when the address is, and kept with it.
    """
    offset = (config.port_bytes - 1).bit_length()
    return (address[PAGE_BITS:] >= dram_pages) | address[:offset].any()
