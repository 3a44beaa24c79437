"""The serial link's end on the board, byte by byte, against plain dictionaries."""

from random import Random
from types import SimpleNamespace

import pytest
from amaranth import Signal
from amaranth.sim import Simulator

from vdla.boards.soc.bridge import Bridge
from vdla.runtime.board import link
from vdla.runtime.board.link import Op, Status

AT_BITS, REGISTER_BITS = 14, 12
READ_ONLY = 0x40  # a register that refuses to be written, as 0x44 refuses to be read
CLOCK = 1e5  # Hz: QUIET is 2,000 clocks


class Harsh(Bridge):
    """What its buffer shows of a word that is written in the same cycle is wrong: block RAM of an
    ECP5 may give anything then."""

    def _buffer(self, m):
        super()._buffer(m)
        put, get = self.put, self.get
        collides, shown = Signal(), Signal(8 * link.WORD)
        m.d.sync += collides.eq(put.en & (put.addr == get.addr))
        m.d.comb += shown.eq(get.data ^ collides.replicate(len(shown)))
        self.get = SimpleNamespace(addr=get.addr, en=get.en, data=shown)


class Host:
    """A bridge between a host's bytes, registers and a memory, all of them Python's."""

    def __init__(self, port_bytes=4, seed=0):
        self.bridge, self.port_bytes = Harsh(CLOCK, port_bytes, AT_BITS, REGISTER_BITS), port_bytes
        self.random = Random(seed)
        self.registers, self.memory = {}, {}
        self.writes = []  # to registers, in order
        self.over = False

    def run(self, test):
        async def host(ctx):
            await test(self, ctx)
            self.over = True

        simulator = Simulator(self.bridge)
        simulator.add_clock(1e-6)
        for bench in (host, self._serve_registers, self._serve_memory):
            simulator.add_testbench(bench)
        simulator.run()

    async def send(self, ctx, frame, gap=0):
        for byte in frame:
            ctx.set(self.bridge.data, byte)
            ctx.set(self.bridge.valid, 1)
            await ctx.tick()
            ctx.set(self.bridge.valid, 0)
            for _ in range(self.random.randrange(3) + gap):
                await ctx.tick()

    async def receive(self, ctx, count=0, patience=4000):
        """A reply; None when there is none."""
        found = bytearray()
        expected = link.REPLY_HEADER + link.CHECKSUM
        while len(found) < expected:
            ready = self.random.random() < 0.7
            ctx.set(self.bridge.out_ready, ready)
            if ctx.get(self.bridge.out_valid) and ready:
                found.append(ctx.get(self.bridge.out_data))
                if len(found) == link.REPLY_HEADER and found[2] == Status.OK:
                    expected += count * link.WORD
            await ctx.tick()
            patience -= 1
            if patience == 0:
                assert not found
                return None
        ctx.set(self.bridge.out_ready, 0)
        return link.check(bytes(found))

    async def ask(self, ctx, tag, op, address, count, words=b""):
        await self.send(ctx, link.request(tag, op, address, count, words))
        body = await self.receive(ctx, 0 if words else count)
        assert body[:2] == bytes([link.REPLY_SYNC, tag])
        assert body[3] == count - 1
        return Status(body[2]), body[4:]

    async def _serve_registers(self, ctx):
        bus = self.bridge.registers
        while not self.over:
            for name in ("arready", "awready", "wready", "rvalid", "bvalid"):
                ctx.set(getattr(bus, name), 0)
            await ctx.tick()
            if ctx.get(bus.arvalid):
                address = ctx.get(bus.araddr)
                await self._pulse(ctx, bus.arready)
                ctx.set(bus.rdata, self.registers.get(address, 0))
                ctx.set(bus.rresp, 2 if address == 0x44 else 0)
                await self._answer(ctx, bus.rvalid, bus.rready)
            elif ctx.get(bus.awvalid):
                address, data = ctx.get(bus.awaddr), ctx.get(bus.wdata)
                ready = [bus.awready, bus.wready]
                self.random.shuffle(ready)
                if self.random.random() < 0.5:
                    for each in ready:
                        await self._pulse(ctx, each)
                else:
                    await self._pulse(ctx, *ready)
                refused = address == READ_ONLY
                if not refused:
                    self.registers[address] = data
                    self.writes.append((address, data))
                ctx.set(bus.bresp, 2 if refused else 0)
                await self._answer(ctx, bus.bvalid, bus.bready)

    async def _pulse(self, ctx, *readies):
        for _ in range(self.random.randrange(3)):
            await ctx.tick()
        for ready in readies:
            ctx.set(ready, 1)
        await ctx.tick()
        for ready in readies:
            ctx.set(ready, 0)

    async def _answer(self, ctx, valid, ready):
        ctx.set(valid, 1)
        while not ctx.get(ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(valid, 0)

    async def _serve_memory(self, ctx):
        memory = self.bridge.memory
        while not self.over:
            ctx.set(memory.ready, self.random.random() < 0.5)
            if ctx.get(memory.valid) and ctx.get(memory.ready):
                at, count, write = (ctx.get(v) for v in (memory.at, memory.count, memory.write))
                assert 1 <= count <= 16
                await ctx.tick()
                ctx.set(memory.ready, 0)
                for beat in range(at, at + count):
                    await (self._take if write else self._give)(ctx, beat)
            else:
                await ctx.tick()

    async def _take(self, ctx, beat):
        memory = self.bridge.memory
        while self.random.random() < 0.3:
            await ctx.tick()
        ctx.set(memory.write_ready, 1)
        while not ctx.get(memory.write_valid):
            await ctx.tick()
        self.memory[beat] = ctx.get(memory.write_data)
        await ctx.tick()
        ctx.set(memory.write_ready, 0)

    async def _give(self, ctx, beat):
        memory = self.bridge.memory
        for _ in range(self.port_bytes // 2 - 1 + self.random.randrange(2)):
            await ctx.tick()
        ctx.set(memory.read_valid, 1)
        ctx.set(memory.read_data, self.memory.get(beat, 0))
        await ctx.tick()
        ctx.set(memory.read_valid, 0)


def run(test, **changes):
    host = Host(**changes)
    host.run(test)
    return host


def test_registers():
    async def test(host, ctx):
        words = host.random.randbytes(12)
        assert await host.ask(ctx, 1, Op.WRITE_REGISTERS, 0x20, 3, words) == (Status.OK, b"")
        assert await host.ask(ctx, 2, Op.READ_REGISTERS, 0x20, 3) == (Status.OK, words)
        assert await host.ask(ctx, 3, Op.READ_REGISTERS, 0x24, 1) == (Status.OK, words[4:8])

    assert len(run(test).writes) == 3


@pytest.mark.parametrize("port_bytes", [4, 8, 16])
def test_memory(port_bytes):
    async def test(host, ctx):
        per = port_bytes // link.WORD
        for tag, beats in enumerate((1, 2, 17, 256 // per)):
            at = host.random.randrange(1 << AT_BITS - 1)
            words = host.random.randbytes(beats * port_bytes)
            asked = at * port_bytes, beats * per
            wrote = await host.ask(ctx, 2 * tag, Op.WRITE_MEMORY, *asked, words)
            assert wrote == (Status.OK, b"")
            whole = b"".join(
                host.memory[at + k].to_bytes(port_bytes, "little") for k in range(beats)
            )
            assert whole == words
            read = await host.ask(ctx, 2 * tag + 1, Op.READ_MEMORY, *asked)
            assert read == (Status.OK, words)

    run(test, port_bytes=port_bytes, seed=port_bytes)


def test_a_write_that_comes_twice_is_done_once():
    async def test(host, ctx):
        frame = link.request(9, Op.WRITE_REGISTERS, 0x10, 1, b"abcd")
        for _ in range(3):
            await host.send(ctx, frame)
            assert (await host.receive(ctx))[2] == Status.OK
        await host.ask(ctx, 10, Op.WRITE_REGISTERS, 0x10, 1, b"abcd")  # another request
        refused = link.request(11, Op.WRITE_REGISTERS, READ_ONLY, 1, b"abcd")
        for _ in range(2):
            await host.send(ctx, refused)
            assert (await host.receive(ctx))[2] == Status.BAD_ADDRESS

    assert len(run(test).writes) == 2


def test_damaged_requests_do_nothing():
    async def test(host, ctx):
        frame = link.request(4, Op.WRITE_REGISTERS, 0x10, 2, b"abcdefgh")
        for at in (1, 2, 5, 9, 15, 17):
            damaged = bytearray(frame)
            damaged[at] ^= 1 if at != 2 else 4
            await host.send(ctx, damaged)
            assert (await host.receive(ctx))[2] == Status.BAD_CHECKSUM
        assert not host.writes
        await host.send(ctx, frame)
        assert (await host.receive(ctx))[2] == Status.OK

    assert len(run(test).writes) == 2


def test_half_a_frame_is_forgotten_and_noise_passed_over():
    async def test(host, ctx):
        frame = link.request(4, Op.READ_REGISTERS, 0x10, 1)
        await host.send(ctx, frame[:7])
        assert await host.receive(ctx, patience=int(1.2 * link.QUIET * CLOCK)) is None
        await host.send(ctx, b"\x00\xffabc\x76" + frame)
        assert (await host.receive(ctx, 1))[2] == Status.OK

    run(test)


@pytest.mark.parametrize(("op", "address", "count", "status"), [
    (0x83, 0, 1, Status.BAD_OP),
    (Op.READ_REGISTERS, 2, 1, Status.BAD_ADDRESS),
    (Op.READ_REGISTERS, 0x44, 1, Status.BAD_ADDRESS),
    (Op.READ_REGISTERS, 1 << REGISTER_BITS, 1, Status.BAD_ADDRESS),
    (Op.READ_MEMORY, 4, 2, Status.BAD_ADDRESS),
    (Op.READ_MEMORY, 0, 1, Status.BAD_ADDRESS),
    (Op.READ_MEMORY, 8 << AT_BITS, 2, Status.BAD_ADDRESS),
])  # fmt: skip
def test_what_cannot_be_done_is_said(op, address, count, status):
    async def test(host, ctx):
        words = b"" if not op & 1 else b"abcd"
        assert (await host.ask(ctx, 1, op, address, count, words))[0] == status
        assert (await host.ask(ctx, 2, Op.READ_REGISTERS, 0x10, 1))[0] == Status.OK

    run(test, port_bytes=8)
