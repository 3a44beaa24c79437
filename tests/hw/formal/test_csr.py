"""The registers behind AXI4-Lite (Arm IHI 0022, chapter B1), against ``isa/registers.py``.

1. RVALID and BVALID stay until READY, with RDATA, RRESP and BRESP.
2. Each request has exactly one answer: what was accepted and not answered is what is shown.
3. A read gives the register's value in the cycle in which it is accepted, 0 where the register is
   write-only, and SLVERR where there is none.
4. A write changes the bytes that the strobes name, in the bits that exist, of the register at its
   address, and no other. Where there is none, or it is read-only or locked, nothing changes and
   SLVERR answers.
5. A command pulses with the write that names it. An event sets its bit, a written 1 clears it, and
   the event wins.
6. The interrupt is high while an event is set that is enabled.

Assumed of the manager: AWVALID and WVALID stay until READY. What a register should hold is
computed anew here, from ``isa/registers.py``, in ghost registers.
"""

from __future__ import annotations

from amaranth import Cat, Const, Mux, Signal

from vdla.hw.csr import Csr
from vdla.isa.config import load_config
from vdla.isa.registers import registers

TINY = load_config("tiny")
REGISTERS = registers(TINY)

OKAY, SLVERR = 0, 2


def bits_of(register):
    """The bits that exist."""
    return sum(b.mask for b in register.bits) or 0xFFFF_FFFF


def model(proof, csr, write):
    """Ghosts: per register what a read of it should give."""
    m, bus = proof.m, csr.bus
    lanes = Cat(bus.wstrb[i // 8] for i in range(32))
    values = {}
    for register in REGISTERS:
        member = getattr(csr, register.name.lower())
        here = write & (bus.awaddr[2:] == register.offset // 4)
        here &= ~(csr.locked & Const(register.locked))
        exist = bits_of(register)
        if register.access == "ro":
            values[register] = member
        elif register.access == "wo":
            values[register] = Const(0, 32)
            proof.check(member == Mux(here, bus.wdata & lanes & exist, 0))
        else:
            value = Signal(32, name=f"ghost_{register.name.lower()}")
            named = Mux(here, lanes & exist, 0)
            if register.access == "rw":
                m.d.sync += value.eq((value & ~named) | (bus.wdata & named))
            else:
                m.d.sync += value.eq((value & ~(bus.wdata & named)) | member)
            proof.check((value & ~exist) == 0)
            if register.access == "rw":
                proof.check(member == value)
            values[register] = value
    return values


def accepted(proof, up, shown, name):
    """Requests accepted and not answered are the answer shown."""
    valid, ready = shown
    balance = proof.ghost(1, up, valid & ready, name)
    proof.check(balance == valid)


def test_registers(proof, state):
    csr = Csr(TINY)
    inner = proof.add(csr)
    bus = csr.bus
    read, write = bus.arvalid & bus.arready, bus.awvalid & bus.awready
    for valid, ready in ((bus.awvalid, bus.awready), (bus.wvalid, bus.wready)):
        proof.assume(~proof.past(valid & ~ready) | valid)
    proof.check(write == (bus.wvalid & bus.wready))
    accepted(proof, read, (bus.rvalid, bus.rready), "reads")
    accepted(proof, write, (bus.bvalid, bus.bready), "writes")
    for valid, ready, answer in (
        (bus.rvalid, bus.rready, Cat(bus.rdata, bus.rresp)),
        (bus.bvalid, bus.bready, bus.bresp),
    ):
        waits = proof.past(valid & ~ready)
        proof.check(valid & (answer == proof.past(answer)), when=waits)

    values = model(proof, csr, write)
    expected, known, allowed = Const(0, 32), Const(0), Const(0)
    for register, value in values.items():
        here = bus.araddr[2:] == register.offset // 4
        expected, known = Mux(here, value, expected), known | here
        if register.access != "ro":
            there = bus.awaddr[2:] == register.offset // 4
            allowed = allowed | (there & ~(csr.locked & Const(register.locked)))
    proof.check(bus.rdata == proof.past(expected), when=proof.past(read & known))
    proof.check(bus.rresp == Mux(proof.past(known), OKAY, SLVERR), when=proof.past(read))
    proof.check(bus.bresp == Mux(proof.past(allowed), OKAY, SLVERR), when=proof.past(write))

    by_name = {register.name: value for register, value in values.items()}
    events = by_name["INTERRUPT_STATUS"]
    proof.check(state(inner, "interrupt_status_value") == events)
    proof.check(csr.irq == (events & by_name["INTERRUPT_ENABLE"]).any())

    proof.cover(proof.past(read & known) & (bus.rdata == 0x1234_5678))
    proof.cover(bus.rvalid & (bus.rresp == SLVERR) & bus.bvalid & (bus.bresp == SLVERR))
    proof.cover(csr.program_base == 0xAB00_00CD)
    proof.cover(csr.irq & csr.locked)
    proof.cover(proof.past(csr.interrupt_status[0] & write) & (events == 1) & bus.rvalid)
    proof.prove()


def test_locked_registers_stand_still(proof):
    """4 once more, said without the model: while locked, only unlocked registers change."""
    csr = Csr(TINY)
    proof.add(csr)
    for register in REGISTERS:
        if register.access == "rw" and register.locked:
            member = getattr(csr, register.name.lower())
            before = proof.past(member)
            was_reset = ~proof.past(1)
            proof.check((member == before) | was_reset, when=proof.past(csr.locked))
    proof.cover(proof.past(csr.locked) & (csr.interrupt_enable == 3))
    proof.cover(csr.dram_size != 0)
    proof.prove()
