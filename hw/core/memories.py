"""The scratchpads, between the engines.

1. LOAD writes INP, WGT and UOP, and COMPUTE reads them, at a port more for each further place; a
   second engine of micro-ops, if there is one, reads UOP at a port of its own. Where the ring says
   that others write INP too, each does in a cycle in which LOAD and those before it don't.
2. ACC has one write port, LOAD's, which passes on what the engines of micro-ops write.
3. ACC's first read port is COMPUTE's, and the second engine's where COMPUTE leaves it free. At the
   second STORE reads before whoever executes ALU, which waits.
4. Options add memories (``MemoryHooks``).
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Module, Mux
from amaranth.lib.wiring import connect

from vdla.hw.compute import Compute
from vdla.hw.core.units import Unit, Units
from vdla.hw.hooks import Hooks, hooks_of
from vdla.hw.layout import beats
from vdla.hw.load import results_port
from vdla.hw.scratchpad import Scratchpad
from vdla.isa.config import Config
from vdla.isa.ring import ring_of


class MemoryHooks(Hooks):
    """Seam of the scratchpads: an option adds memories of its own."""

    def connect(self, m: Module, units: Units) -> None:
        """Makes the option's memories, and connects them to the engines that write and read."""


class Memories:
    """INP, WGT, UOP, ACC, and those of options, connected to the engines."""

    def __init__(self, m: Module, config: Config, units: Units) -> None:
        self.m, self.config, self.units = m, config, units
        for name in ("inp", "wgt", "uop"):
            self._connect_direct(name)
        self._connect_acc()
        for hook in hooks_of(MemoryHooks, config):
            hook.connect(m, units)

    def _connect_direct(self, name: str) -> None:
        """A memory that LOAD writes, others too if it is INP, and that the engines of micro-ops
        read, at one port or more."""
        m, config = self.m, self.config
        bits = 8 * config.entry(name)
        readers = [port for unit in self.units.pipelines for port in unit.readers(name)]
        count = len(readers)
        pad = Scratchpad(config.depth(name), bits, beats(config, name), reads=count)
        m.submodules[name] = pad
        first, *others = (self.units.engines[e] for e in ring_of(config).writers(name))
        if others:
            self._share_inp(pad, others)
        else:
            connect(m, getattr(first, name), pad.write)
        for number, reader in enumerate(readers):
            connect(m, reader, getattr(pad, f"read_{number}"))

    def _share_inp(self, pad: Scratchpad, others: Sequence[Unit]) -> None:
        """INP's write port is LOAD's when it writes, else that of the first other that does."""
        m, load = self.m, self.units.load
        writers, taken, enable = [(load.writes_inp, load.inp)], load.writes_inp, load.inp.enable
        for other in others:
            m.d.comb += other.inp_taken.eq(taken)
            writes = other.inp.enable.any()
            taken, enable = taken | writes, enable | other.inp.enable
            writers.append((writes, other.inp))
        address, value = writers[-1][1].address, writers[-1][1].data
        for writes, port in reversed(writers[:-1]):
            address = Mux(writes, port.address, address)
            value = Mux(writes, port.data, value)
        m.d.comb += [
            pad.write.enable.eq(enable),
            pad.write.address.eq(address),
            pad.write.data.eq(value),
        ]

    def _connect_acc(self) -> None:
        m, config = self.m, self.config
        load, alu, store = self.units.load, self.units.alu, self.units.store
        m.submodules.acc = acc = Scratchpad(config.depth("acc"), 8 * config.acc_entry, 1, reads=2)
        taken = self.units.compute.acc_taken
        if alu is self.units.compute:
            connect(m, alu.acc_x, acc.read_0)
        else:
            self._share_acc(acc, alu)
            taken |= alu.acc_taken
        connect(m, self.units.compute.acc_write, load.computed)
        connect(m, load.acc, acc.write)
        m.d.comb += [
            load.acc_taken.eq(taken),
            alu.acc_y_taken.eq(store.acc.enable),
            acc.read_1.enable.eq(alu.acc_y.enable | store.acc.enable),
            acc.read_1.address.eq(Mux(store.acc.enable, store.acc.address, alu.acc_y.address)),
            alu.acc_y.data.eq(acc.read_1.data),
            store.acc.data.eq(acc.read_1.data),
        ]

    def _share_acc(self, acc: Scratchpad, alu: Compute) -> None:
        """ACC's first read port and its write port serve COMPUTE, and ``alu`` in other cycles."""
        m, compute = self.m, self.units.compute
        connect(m, compute.claims, alu.gemm)
        connect(m, alu.acc_write, getattr(self.units.load, results_port(alu.micro_ops.engine)))
        first, second = compute.acc_x, alu.acc_x
        m.d.comb += [
            acc.read_0.enable.eq(first.enable | second.enable),
            acc.read_0.address.eq(Mux(first.enable, first.address, second.address)),
            first.data.eq(acc.read_0.data),
            second.data.eq(acc.read_0.data),
        ]
