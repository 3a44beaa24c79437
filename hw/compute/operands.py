"""COMPUTE's reads: addresses of READ and of stage 5 go to the scratchpads.

1. GEMM reads INP and WGT, an ALU micro-op its y at ACC's second port, from READ.
2. ACC's first port has the late read, and else READ's early x.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Value
from amaranth.lib import data

from vdla.hw.interfaces import Port


@dataclass(frozen=True)
class ReadPorts:
    """Ports to the scratchpads, all interfaces.read_port but ``tab``, a table_read_port."""

    inp: Port
    wgt: Port
    acc_x: Port
    acc_y: Port
    tab: Port | None  # if there is TAB


@dataclass(frozen=True)
class Reads:
    """What reads in this cycle."""

    read: data.View  # the micro-op in READ
    late: data.View  # the one in stage 5
    is_late: Value  # whether that one reads


def show_addresses(m: Module, ports: ReadPorts, reads: Reads) -> None:
    """Drives the ports' ``enable`` and ``address``; their data come in the next cycle."""
    read = reads.read
    is_gemm = read.valid & ~read.null & ~read.operation.is_alu
    m.d.comb += [
        ports.inp.enable.eq(is_gemm),
        ports.inp.address.eq(read.src),
        ports.wgt.enable.eq(is_gemm),
        ports.wgt.address.eq(read.wgt),
        ports.acc_y.enable.eq(read.valid & read.reads_y),
        ports.acc_y.address.eq(read.src),
        ports.acc_x.enable.eq(reads.is_late | (read.valid & read.early)),
        ports.acc_x.address.eq(Mux(reads.is_late, reads.late.late_at, read.dst)),
    ]
