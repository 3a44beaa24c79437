"""The model of a board's SDRAM in a virtual board, on the core's clock or on one of its own."""

from __future__ import annotations

from typing import Any

from amaranth import DomainRenamer, Module
from amaranth.hdl import ClockDomain
from amaranth.lib.wiring import In, Member

from vdla.boards.models.sdram import Sdram
from vdla.boards.soc.sdram import FAST, Pads
from vdla.boards.soc.soc import Soc

STORAGE = "sdram_storage"


def fast_clock(pads: Pads) -> dict[str, Member]:
    """The input of a virtual board for its SDRAM's clock, where that isn't the core's."""
    return {FAST: In(1)} if pads.ratio > 1 else {}


def model_of(soc: Soc) -> Sdram:
    """The SDRAM that a board's design is for."""
    words = 8 * soc.config.port_bytes // soc.chip.word_bits
    return Sdram(soc.chip, soc.pads.ratio * soc.clock_hz, words, STORAGE)


def add_model(m: Module, top: Any, soc: Soc, sdram: Sdram) -> None:
    """Adds the SDRAM's model to a virtual board, behind the registers at its pads; ``top`` has the
    input of its clock."""
    domain = soc.sdram_domain
    if domain == FAST:
        m.domains.fast = fast = ClockDomain(FAST, reset_less=True)
        m.d.comb += fast.clk.eq(top.fast)
    m.submodules.sdram = DomainRenamer(domain)(sdram)
    sdram.join(m, soc.sdram, domain, soc.pads.late)
