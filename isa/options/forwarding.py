"""Forwarding: a STORE may write its results into INP, where GEMM reads them, and not to DRAM.

INP as a STORE's ``memory`` stands for the bytes that ACC8 stands for, written into INP.
``dram_base`` is then the byte of INP where the first entry goes, and strides count entries of
``block_out`` bytes, as in DRAM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.options.option import Expectations, Option, Parameter, Probes
from vdla.isa.scratchpads import Mem

if TYPE_CHECKING:
    from vdla.isa.config import Config

FORWARDING = Parameter("forwarding", "whether STORE may write INP; 0: it can't")


def forwards(config: Config) -> bool:
    """Whether a STORE of the config may write INP."""
    return bool(FORWARDING.of(config))


def _checks(config: Config) -> Expectations:
    """An entry of INP must have a power of two beats: STORE's address then names column and
    entry."""
    beats = config.inp_entry // config.port_bytes
    yield (
        not forwards(config) or beats & (beats - 1) == 0,
        "block_in / port_bytes to be a power of two where forwarding = 1, "
        f"found {beats}; change one of them, or forwarding to 0",
    )


OPTIONS = (
    Option(
        rank=2,
        title="forwarding",
        parameter=FORWARDING,
        checks=_checks,
        stores=(Mem.INP,),
        writes={"STORE": (Mem.INP.buffer,)},
        probes=Probes((("a", {FORWARDING.name: 1}), ("b", {FORWARDING.name: 1})), "20ccdcd1"),
    ),
)
