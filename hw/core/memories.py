"""The scratchpads, between the engines.

1. LOAD writes INP, WGT and UOP, and COMPUTE reads them. In a config with forwarding STORE writes
   INP, too, where LOAD doesn't.
2. ACC has one write port, LOAD's, which passes on what COMPUTE writes.
3. ACC's first read port is COMPUTE's. At the second STORE reads before COMPUTE, which waits.
4. A config with tables has TAB, too: LOAD writes it where COMPUTE doesn't read it.
"""

from __future__ import annotations

from amaranth import Module, Mux
from amaranth.lib.wiring import connect

from vdla.hw.core.units import Units
from vdla.hw.layout import beats
from vdla.hw.scratchpad import Scratchpad
from vdla.hw.tables import TablePads
from vdla.isa.config import Config


class Memories:
    """INP, WGT, UOP, ACC, and TAB if there is one, connected to the engines."""

    def __init__(self, m: Module, config: Config, units: Units) -> None:
        self.m, self.config, self.units = m, config, units
        for name in ("inp", "wgt", "uop"):
            self._connect_direct(name)
        self._connect_acc()
        if config.tables:
            self._connect_tab()

    def _connect_direct(self, name: str) -> None:
        """A memory that LOAD writes, STORE too if it is INP and may be, and COMPUTE reads."""
        m, config = self.m, self.config
        bits = 8 * config.entry(name)
        pad = Scratchpad(config.depth(name), bits, beats(config, name), reads=1)
        m.submodules[name] = pad
        if name == "inp" and config.forwarding:
            self._share_inp(pad)
        else:
            connect(m, getattr(self.units.load, name), pad.write)
        connect(m, getattr(self.units.compute, name), pad.read_0)

    def _share_inp(self, pad: Scratchpad) -> None:
        """INP's write port is LOAD's when it writes, else STORE's."""
        load, store = self.units.load, self.units.store
        self.m.d.comb += [
            store.inp_taken.eq(load.writes_inp),
            pad.write.enable.eq(load.inp.enable | store.inp.enable),
            pad.write.address.eq(Mux(load.writes_inp, load.inp.address, store.inp.address)),
            pad.write.data.eq(Mux(load.writes_inp, load.inp.data, store.inp.data)),
        ]

    def _connect_acc(self) -> None:
        m, config = self.m, self.config
        load, compute, store = self.units.load, self.units.compute, self.units.store
        m.submodules.acc = acc = Scratchpad(config.depth("acc"), 8 * config.acc_entry, 1, reads=2)
        connect(m, compute.acc_x, acc.read_0)
        connect(m, compute.acc_write, load.computed)
        connect(m, load.acc, acc.write)
        m.d.comb += [
            load.acc_taken.eq(compute.acc_taken),
            compute.acc_y_taken.eq(store.acc.enable),
            acc.read_1.enable.eq(compute.acc_y.enable | store.acc.enable),
            acc.read_1.address.eq(Mux(store.acc.enable, store.acc.address, compute.acc_y.address)),
            compute.acc_y.data.eq(acc.read_1.data),
            store.acc.data.eq(acc.read_1.data),
        ]

    def _connect_tab(self) -> None:
        m, load, compute = self.m, self.units.load, self.units.compute
        m.submodules.tab = tab = TablePads(self.config)
        connect(m, load.tab, tab.write)
        connect(m, compute.tab, tab.read)
        m.d.comb += load.tab_taken.eq(compute.tab.enable)
