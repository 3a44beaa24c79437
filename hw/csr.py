"""The registers behind AXI4-Lite: ``isa/registers.py`` lists them, this file only decodes.

1. One write and one read at a time; a write takes its address and its data in the same cycle. READY
   comes from a register: AXI wants no path from its inputs to its outputs (Arm IHI 0022, A3.2.1).
2. An address that no register has answers SLVERR, with anything, and changes nothing; so does a
   write to a register that is read only, or locked while a program runs. Byte strobes are heeded:
   only the bytes they name are written.
3. A 1 written to a command bit is a pulse of one cycle; registers of that kind read 0.
4. An event sets its bit in INTERRUPT_STATUS, a written 1 clears it, and the event wins. The
   interrupt is high while any event that INTERRUPT_ENABLE names is set.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Member, Out

from vdla.hw.interfaces import axi_lite
from vdla.isa.config import Config
from vdla.isa.registers import SPACE_BYTES, Register, registers

ADDRESS_BITS = (SPACE_BYTES - 1).bit_length()
OKAY, SLVERR = 0b00, 0b10


def port(register: Register) -> Member:
    """Member that the core sees of a register: its value, its commands, or its events."""
    if register.access == "ro":
        return In(32)
    if register.access == "w1c":
        return In(len(register.bits))
    return Out(32)


class Csr(Component):
    """A member per register, named like it in lower case; ``locked`` while a program runs."""

    def __init__(self, config: Config) -> None:
        self.registers = registers(config)
        members = {r.name.lower(): port(r) for r in self.registers}
        super().__init__(
            {"bus": In(axi_lite(ADDRESS_BITS)), "locked": In(1), "irq": Out(1), **members}
        )

    def elaborate(self, platform: object) -> Module:
        """A register for each one of the config, the interrupt line, AXI4-Lite's two directions."""
        m = Module()
        values = {r.name: self._value(m, r) for r in self.registers}
        m.d.comb += self.irq.eq((values["INTERRUPT_STATUS"] & values["INTERRUPT_ENABLE"]).any())
        self._read(m, values)
        self._write(m, values)
        return m

    def _value(self, m: Module, register: Register) -> Value:
        """The register as a read sees it."""
        member = getattr(self, register.name.lower())
        if register.access == "ro":
            return member
        if register.access == "wo":
            return Signal(32, name=f"{register.name.lower()}_reads")
        value = Signal(32, name=f"{register.name.lower()}_value")
        if register.access == "rw":
            m.d.comb += member.eq(value)
        return value

    def _read(self, m: Module, values: dict[str, Value]) -> None:
        bus = self.bus
        known = Signal()
        m.d.comb += known.eq(bus.araddr[2:].matches(*(r.offset >> 2 for r in self.registers)))
        data = _chosen(bus.araddr[2:], {r.offset >> 2: values[r.name] for r in self.registers})
        m.d.comb += bus.arready.eq(~bus.rvalid)
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [
                bus.rvalid.eq(1),
                bus.rdata.eq(data),
                bus.rresp.eq(Mux(known, OKAY, SLVERR)),
            ]
        with m.Elif(bus.rready):
            m.d.sync += bus.rvalid.eq(0)

    def _write(self, m: Module, values: dict[str, Value]) -> None:
        bus = self.bus
        ready = Signal()
        go = Signal()
        known = Signal()
        m.d.comb += [
            go.eq(ready & bus.awvalid & bus.wvalid),
            bus.awready.eq(ready),
            bus.wready.eq(ready),
        ]
        m.d.sync += ready.eq(bus.awvalid & bus.wvalid & ~ready & ~bus.bvalid)
        for register in self.registers:
            if register.access == "w1c":  # events come at any time
                events = getattr(self, register.name.lower())
                m.d.sync += values[register.name].eq(values[register.name] | events)
        with m.If(go), m.Switch(bus.awaddr[2:]):
            for register in self.registers:
                if register.access != "ro":
                    with m.Case(register.offset >> 2), m.If(~self.locked | (not register.locked)):
                        m.d.comb += known.eq(1)
                        self._take(m, register, values[register.name])
        with m.If(go):
            m.d.sync += [bus.bvalid.eq(1), bus.bresp.eq(Mux(known, OKAY, SLVERR))]
        with m.Elif(bus.bready):
            m.d.sync += bus.bvalid.eq(0)

    def _take(self, m: Module, register: Register, value: Value) -> None:
        """Writes one register: the bits that exist, of the bytes that the strobes name."""
        member = getattr(self, register.name.lower())
        data = self.bus.wdata & _writable(register)
        if register.access == "rw":  # strobes enable flip-flops: a choice in logic would cost LUTs
            for byte, strobe in enumerate(self.bus.wstrb):
                with m.If(strobe):
                    m.d.sync += value.word_select(byte, 8).eq(data.word_select(byte, 8))
            return
        written = data & Cat(strobe.replicate(8) for strobe in self.bus.wstrb)
        if register.access == "wo":
            m.d.comb += member.eq(written)
        else:
            m.d.sync += value.eq((value & ~written) | member)


def _chosen(index: Value, options: dict[int, Value]) -> Value:
    """The option of that index, by its bits, the highest first; any of them where there is none.

    A comparison of the index for each option would cost more than the choice.
    """
    if len(options) == 1:
        return next(iter(options.values()))
    bit = max(options).bit_length() - 1
    while len({number >> bit & 1 for number in options}) == 1:
        bit -= 1
    ones, zeros = (
        _chosen(index, {n: value for n, value in options.items() if n >> bit & 1 == side})
        for side in (1, 0)
    )
    return Mux(index[bit], ones, zeros)


def _writable(register: Register) -> int:
    """The bits that exist; all of them in a register without fields."""
    return sum(b.mask for b in register.bits) if register.bits else 0xFFFF_FFFF
