"""Reads: addresses of READ and of stage 6 go to the scratchpads.

1. GEMM reads INP and WGT, an ALU micro-op its y at ACC's second port, from READ. A further place
   of an option has a port of its own, for the micro-ops that read it.
2. ACC's first port has the late read, and else READ's early x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amaranth import Const, Module, Mux, Value
from amaranth.lib import data

from vdla.hw.compute.seams import Place
from vdla.hw.interfaces import Port


@dataclass(frozen=True)
class ReadPorts:
    """Ports to the scratchpads that the engine has, all interfaces.read_port."""

    acc_x: Port
    acc_y: Port | None  # of ALU
    inp: Port | None  # of GEMM
    wgt: Port | None  # of GEMM
    places: Mapping[str, tuple[Place, Port]]  # of GEMM, by their names


@dataclass(frozen=True)
class Reads:
    """Micro-ops that read in this cycle."""

    read: data.View  # the micro-op in READ
    is_alu: Value  # what it is
    late: data.View  # the one in stage 6
    is_late: Value  # whether that one reads


def show_addresses(m: Module, ports: ReadPorts, reads: Reads) -> None:
    """Drives the ports' ``enable`` and ``address``; their data come in the next cycle."""
    read, x, early = reads.read, ports.acc_x, Const(0)
    is_gemm = read.valid & ~read.null & ~reads.is_alu
    for port, place in ((ports.inp, "src"), (ports.wgt, "wgt")):
        if port is not None:
            m.d.comb += [port.enable.eq(is_gemm), port.address.eq(read[place])]
    for name, (place, port) in ports.places.items():
        m.d.comb += [
            port.enable.eq(is_gemm & place.when(read.operation)),
            port.address.eq(read[name]),
        ]
    if ports.acc_y is not None:
        m.d.comb += [
            ports.acc_y.enable.eq(read.valid & read.reads_y),
            ports.acc_y.address.eq(read.src),
        ]
        early = read.valid & read.early
    m.d.comb += [
        x.enable.eq(reads.is_late | early),
        x.address.eq(Mux(reads.is_late, reads.late.late_at, read.dst)),
    ]
