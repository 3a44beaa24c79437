"""The memory port: the DMA connects the units to the bus; registers say where DRAM lies.

1. Fetch and LOAD read, STORE writes.
2. DRAM_BASE and DRAM_SIZE are whole pages. A size of 0 stands for the whole 32-bit space, whose
   number of pages has a bit more than the register's.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib.wiring import connect, flipped

from vdla.hw.bursts import PAGE_BITS, PAGES_BITS
from vdla.hw.core.units import Units
from vdla.hw.interfaces import Port


def connect_memory_port(m: Module, units: Units, bus: Port) -> None:
    """Connects the DMA to ``bus``, the core's port of interfaces.axi4, and to the units."""
    dma, fetch, load, store = units.dma, units.fetch, units.load, units.store
    connect(m, dma.axi, flipped(bus))
    connect(m, fetch.request, dma.fetch)
    connect(m, dma.fetch_data, fetch.data)
    connect(m, load.request, dma.load)
    connect(m, dma.load_data, load.data)
    connect(m, store.write, dma.store)
    _show_registers(m, units)


def _show_registers(m: Module, units: Units) -> None:
    """Shows the units where DRAM ends and where the program lies, as the registers say."""
    csr, fetch = units.csr, units.fetch
    pages = Signal(PAGES_BITS)
    size = csr.dram_size[PAGE_BITS:]
    m.d.comb += [
        units.dma.dram_base.eq(csr.dram_base[PAGE_BITS:]),
        pages.eq(Mux(size == 0, 1 << len(size), size)),
        fetch.dram_pages.eq(pages),
        units.load.dram_pages.eq(pages),
        units.store.dram_pages.eq(pages),
        fetch.base.eq(csr.program_base),
        fetch.length.eq(csr.program_length),
    ]
