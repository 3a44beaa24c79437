"""The registers, one by one, as a driver sees them over AXI4-Lite."""

from __future__ import annotations

from random import Random

import pytest
from amaranth.sim import Simulator

from vdla.hw.csr import Csr
from vdla.isa.config import load_config
from vdla.isa.registers import SPACE_BYTES, register, registers

TINY = load_config("tiny")
REGISTERS = registers(TINY)

OKAY, SLVERR = 0, 2
PATTERN = 0xA5C3_96F0


class Driver:
    """An AXI4-Lite manager that delays everything by random cycles."""

    def __init__(self, csr, ctx, seed=0):
        self.csr, self.bus, self.ctx, self.random = csr, csr.bus, ctx, Random(seed)
        self.commands = 0  # cycles in which a command was seen, with what it said

    async def tick(self):
        self.commands = self.commands or self.ctx.get(self.csr.control)
        await self.ctx.tick()

    async def pause(self):
        for _ in range(self.random.randrange(3)):
            await self.tick()

    async def read(self, address):
        ctx, bus = self.ctx, self.bus
        await self.pause()
        ctx.set(bus.araddr, address)
        ctx.set(bus.arvalid, 1)
        while not ctx.get(bus.arready):
            await self.tick()
        await self.tick()
        ctx.set(bus.arvalid, 0)
        answer = ctx.get(bus.rvalid), ctx.get(bus.rdata), ctx.get(bus.rresp)
        await self.pause()
        assert (ctx.get(bus.rvalid), ctx.get(bus.rdata), ctx.get(bus.rresp)) == answer
        assert answer[0]
        ctx.set(bus.rready, 1)
        await self.tick()
        ctx.set(bus.rready, 0)
        assert not ctx.get(bus.rvalid)
        return answer[1:]

    async def write(self, address, data, strobe=0b1111):
        """Address and data come in any order; returns the response."""
        ctx, bus = self.ctx, self.bus
        ports = [
            (bus.awvalid, ((bus.awaddr, address),)),
            (bus.wvalid, ((bus.wdata, data), (bus.wstrb, strobe))),
        ]
        self.random.shuffle(ports)
        for valid, payload in ports:
            await self.pause()
            for port, value in payload:
                ctx.set(port, value)
            ctx.set(valid, 1)
        while not ctx.get(bus.awready):
            await self.tick()
        assert ctx.get(bus.wready)
        await self.tick()
        ctx.set(bus.awvalid, 0)
        ctx.set(bus.wvalid, 0)
        assert ctx.get(bus.bvalid)
        response = ctx.get(bus.bresp)
        await self.pause()
        ctx.set(bus.bready, 1)
        await self.tick()
        ctx.set(bus.bready, 0)
        assert not ctx.get(bus.bvalid)
        return response


def drive(test):
    """Runs ``test(driver, csr, ctx)`` in a simulation."""
    csr = Csr(TINY)

    async def testbench(ctx):
        await test(Driver(csr, ctx), csr, ctx)

    simulator = Simulator(csr)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def exists(each):
    return sum(b.mask for b in each.bits) or 0xFFFF_FFFF


def of(access):
    return [pytest.param(r, id=r.name) for r in REGISTERS if r.access == access]


@pytest.mark.parametrize("each", of("ro"))
def test_what_can_only_be_read(each):
    async def test(driver, csr, ctx):
        for value in (0, PATTERN, 0xFFFF_FFFF):
            ctx.set(getattr(csr, each.name.lower()), value)
            assert await driver.read(each.offset) == (value, OKAY)
            assert await driver.write(each.offset, ~value & 0xFFFF_FFFF) == SLVERR
            assert await driver.read(each.offset) == (value, OKAY)

    drive(test)


@pytest.mark.parametrize("each", of("rw"))
def test_what_can_be_written(each):
    """It starts at 0, keeps the bits that exist, heeds strobes, and the others stand still."""

    async def test(driver, csr, ctx):
        member, mask = getattr(csr, each.name.lower()), exists(each)
        others = [r for r in REGISTERS if r.access == "rw" and r != each]
        assert await driver.read(each.offset) == (0, OKAY)
        assert await driver.write(each.offset, 0xFFFF_FFFF) == OKAY
        assert await driver.read(each.offset) == (mask, OKAY)
        value = mask
        for strobe in range(16):
            data = PATTERN ^ (0x0101_0101 * strobe)
            lanes = sum(0xFF << 8 * i for i in range(4) if strobe >> i & 1)
            assert await driver.write(each.offset, data, strobe) == OKAY
            value = (value & ~lanes | data & lanes) & mask
            assert await driver.read(each.offset) == (value, OKAY)
            assert ctx.get(member) == value
        ctx.set(csr.locked, 1)
        response = await driver.write(each.offset, ~value & 0xFFFF_FFFF)
        assert response == (SLVERR if each.locked else OKAY)
        expected = value if each.locked else ~value & mask
        assert await driver.read(each.offset) == (expected, OKAY)
        for other in others:
            assert await driver.read(other.offset) == (0, OKAY)

    drive(test)


def test_the_locked_are_those_that_say_what_runs():
    assert [r.name for r in REGISTERS if r.locked] == [
        "PROGRAM_ISA",
        "PROGRAM_CONFIG",
        "PROGRAM_BASE",
        "PROGRAM_LENGTH",
        "DRAM_BASE",
        "DRAM_SIZE",
    ]


def test_a_command_is_a_pulse_and_reads_as_zero():
    async def test(driver, csr, ctx):
        control = register("CONTROL")
        for locked in (0, 1):  # RESET must pass while a program runs
            ctx.set(csr.locked, locked)
            for command in (1, 2, 3):
                driver.commands = 0
                assert await driver.write(control.offset, 0xFFFF_FFF0 | command) == OKAY
                assert driver.commands == command
                assert ctx.get(csr.control) == 0
                assert await driver.read(control.offset) == (0, OKAY)
        driver.commands = 0
        assert await driver.write(control.offset, 1, strobe=0b1110) == OKAY
        assert driver.commands == 0

    drive(test)


def test_events_stay_until_a_one_is_written():
    async def test(driver, csr, ctx):
        status, enable = (register(f"INTERRUPT_{n}").offset for n in ("STATUS", "ENABLE"))

        async def happens(events):
            ctx.set(csr.interrupt_status, events)
            await driver.tick()
            ctx.set(csr.interrupt_status, 0)

        await happens(1)
        assert await driver.read(status) == (1, OKAY)
        await happens(2)
        assert await driver.read(status) == (3, OKAY)
        assert not ctx.get(csr.irq)
        await driver.write(enable, 2)
        assert ctx.get(csr.irq)
        await driver.write(status, 2, strobe=0b1110)
        assert await driver.read(status) == (3, OKAY)
        await driver.write(status, 2)
        assert await driver.read(status) == (1, OKAY)
        assert not ctx.get(csr.irq)
        await driver.write(status, 0xFFFF_FFFC)
        assert await driver.read(status) == (1, OKAY)
        await driver.write(enable, 1)
        assert ctx.get(csr.irq)

    drive(test)


def test_an_event_wins_over_the_write_that_clears_it():
    async def test(driver, csr, ctx):
        status = register("INTERRUPT_STATUS").offset
        ctx.set(csr.interrupt_status, 1)  # in every cycle
        await driver.write(status, 3)
        ctx.set(csr.interrupt_status, 0)
        assert await driver.read(status) == (1, OKAY)
        await driver.write(status, 3)
        assert await driver.read(status) == (0, OKAY)

    drive(test)


def test_addresses_that_no_register_has():
    async def test(driver, csr, ctx):
        known = {r.offset for r in REGISTERS}
        for address in sorted({*range(0, 0x140, 4), SPACE_BYTES // 2, SPACE_BYTES - 4} - known):
            assert (await driver.read(address))[1] == SLVERR
            assert await driver.write(address, PATTERN) == SLVERR
        for each in REGISTERS:
            assert await driver.read(each.offset) == (0, OKAY)

    drive(test)
