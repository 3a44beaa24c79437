"""The DMA against a memory that delays, reorders nothing it may not, and checks AXI's rules."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest
from amaranth.sim import Simulator

from vdla.hw.dma import FETCH_ID, LOAD_ID, Dma
from vdla.isa.config import PAGE_BYTES, load_config

CONFIGS = [load_config("tiny"), load_config("paper", ["burst_beats=7"])]
BASE = 0x10  # DRAM's first page
BYTES = 16 * PAGE_BYTES


class Bench:
    """The units, the memory, and what has passed between them."""

    def __init__(self, config, seed, *, chance=0.6, errors=()):
        self.config, self.random, self.chance = config, Random(seed), chance
        self.dma = Dma(config)
        self.port = config.port_bytes
        self.memory = bytearray(self.random.randbytes(BYTES))
        self.errors = set(errors)  # byte addresses of beats that bear an error
        self.reads = {"fetch": deque(), "load": deque()}  # bursts to ask for
        self.received = {"fetch": [], "load": []}
        self.bad_reads, self.bad_writes = [], 0
        self.writes = deque()  # beats: (first, last, address, beats, data)
        self.answers = 0
        self.queue = []  # read bursts under way: [id, address, beats left]
        self.write_address, self.write_data = deque(), deque()
        self.responses = deque()
        self.order = []  # (cycle, id) of accepted reads
        self.stop_at = None
        self.cycle = 0

    def burst(self):
        beats = self.random.randint(1, self.config.burst_beats)
        page = self.random.randrange(BYTES // PAGE_BYTES) * PAGE_BYTES
        last = PAGE_BYTES // self.port - beats
        return page + self.random.randint(0, last) * self.port, beats

    def often(self):
        return self.random.random() < self.chance

    def run(self, cycles=20000):
        simulator = Simulator(self.dma)
        simulator.add_clock(1e-6)
        simulator.add_testbench(self._drive)
        self.limit = cycles
        simulator.run()
        return self

    async def _drive(self, ctx):
        dma, axi = self.dma, self.dma.axi
        ctx.set(dma.dram_base, BASE)
        units = {"fetch": dma.fetch, "load": dma.load}
        asking = dict.fromkeys(units, False)
        showing, shown = False, {}
        self.quiet = []
        for cycle in range(self.limit):
            self.cycle = cycle
            stopped = self.stop_at is not None and self.cycle >= self.stop_at
            ctx.set(dma.stop, stopped)
            for name, unit in units.items():
                asking[name] |= bool(self.reads[name]) and self.often()
                ctx.set(unit.valid, asking[name])
                if asking[name]:
                    address, beats = self.reads[name][0]
                    ctx.set(unit.address, address)
                    ctx.set(unit.beats, beats)
            opens_more = not stopped or (self.writes and not self.writes[0][0])
            showing |= bool(self.writes) and opens_more and self.often()
            ctx.set(dma.store.valid, showing)
            if self.writes:
                first, last, address, beats, data = self.writes[0]
                ctx.set(dma.store.first, first)
                ctx.set(dma.store.last, last)
                ctx.set(dma.store.address, address)
                ctx.set(dma.store.beats, beats)
                ctx.set(dma.store.data, data)
            for ready in (axi.arready, axi.awready, axi.wready):
                ctx.set(ready, self.often())
            under_way = self._under_way()
            self._answer(ctx)
            self._check_stays(ctx, shown)
            self.quiet.append(ctx.get(dma.quiet))
            assert not (under_way and self.quiet[-1])
            self._receive(ctx)
            if ctx.get(axi.arvalid) and ctx.get(axi.arready):
                name = "load" if ctx.get(axi.arid) == LOAD_ID else "fetch"
                assert ctx.get(units[name].ready)
                assert asking[name]
                address, beats = self.reads[name].popleft()
                asking[name] = False
                assert ctx.get(axi.araddr) == address + BASE * PAGE_BYTES
                assert ctx.get(axi.arlen) + 1 == beats
                self.queue.append([ctx.get(axi.arid), address, beats])
                self.order.append((self.cycle, ctx.get(axi.arid)))
            else:
                assert not any(asking[n] and ctx.get(u.ready) for n, u in units.items())
            if ctx.get(axi.awvalid) and ctx.get(axi.awready):
                address = ctx.get(axi.awaddr) - BASE * PAGE_BYTES
                self.write_address.append((address, ctx.get(axi.awlen) + 1))
            if ctx.get(axi.wvalid) and ctx.get(axi.wready):
                assert ctx.get(axi.wstrb) == (1 << self.port) - 1
                self.write_data.append((ctx.get(axi.wdata), ctx.get(axi.wlast)))
            if showing and ctx.get(dma.store.ready):
                self.writes.popleft()
                showing = False
            self._write()
            await ctx.tick()
            wanted = any(self.reads.values()) or self.writes
            if not (wanted or under_way or self._under_way()):
                return

    def _under_way(self):
        return bool(self.queue or self.write_address or self.write_data or self.responses)

    def _check_stays(self, ctx, shown):
        """AXI: what is shown stays, unchanged, until it is taken."""
        axi = self.dma.axi
        for valid, ready, *payload in (
            (axi.arvalid, axi.arready, axi.araddr, axi.arlen, axi.arid),
            (axi.awvalid, axi.awready, axi.awaddr, axi.awlen),
            (axi.wvalid, axi.wready, axi.wdata, axi.wlast),
        ):
            now = [ctx.get(each) for each in payload] if ctx.get(valid) else None
            before = shown.get(id(valid))
            assert before is None or now == before
            shown[id(valid)] = None if ctx.get(ready) else now

    def _answer(self, ctx):
        """Beats of either ID, each ID's in order; answers of writes."""
        axi = self.dma.axi
        heads = {}
        for entry in self.queue:
            heads.setdefault(entry[0], entry)
        moves = bool(heads) and self.often()
        ctx.set(axi.rvalid, moves)
        if moves:
            entry = self.random.choice(list(heads.values()))
            identity, address, left = entry
            raw = self.memory[address : address + self.port]
            ctx.set(axi.rid, identity)
            ctx.set(axi.rdata, int.from_bytes(raw, "little"))
            ctx.set(axi.rlast, left == 1)
            ctx.set(axi.rresp, 2 if address in self.errors else 0)
            entry[1:] = address + self.port, left - 1
            if left == 1:
                self.queue.remove(entry)
        answers = bool(self.responses) and self.often()
        ctx.set(axi.bvalid, answers)
        if answers:
            ctx.set(axi.bresp, 2 if self.responses.popleft() in self.errors else 0)

    def _receive(self, ctx):
        dma, axi = self.dma, self.dma.axi
        assert ctx.get(axi.rready)
        assert ctx.get(axi.bready)
        for name, port in (("fetch", dma.fetch_data), ("load", dma.load_data)):
            if ctx.get(port.valid):
                self.received[name].append((ctx.get(port.data), ctx.get(port.last)))
        if ctx.get(dma.read_error):
            self.bad_reads.append("load" if ctx.get(dma.error_load) else "fetch")
        self.answers += ctx.get(dma.store.answered)
        self.bad_writes += ctx.get(dma.write_error)

    def _write(self):
        """A burst is in memory when its address and all its beats are there."""
        while self.write_address and len(self.write_data) >= self.write_address[0][1]:
            address, beats = self.write_address.popleft()
            for i in range(beats):
                data, last = self.write_data.popleft()
                assert last == (i == beats - 1)
                at = address + i * self.port
                self.memory[at : at + self.port] = data.to_bytes(self.port, "little")
            self.responses.append(address)

    # What the units want ------------------------------------------------------------------------

    def ask(self, name, count):
        for _ in range(count):
            self.reads[name].append(self.burst())
        return list(self.reads[name])

    def store(self, count):
        """Bursts with random data; returns what memory should hold."""
        memory = bytearray(self.memory)
        for _ in range(count):
            address, beats = self.burst()
            for i in range(beats):
                raw = self.random.randbytes(self.port)
                at = address + i * self.port
                memory[at : at + self.port] = raw
                data = int.from_bytes(raw, "little")
                self.writes.append((i == 0, i == beats - 1, address, beats, data))
        return memory

    def beats(self, bursts):
        return [
            (
                int.from_bytes(self.memory[at : at + self.port], "little"),
                at == address + (beats - 1) * self.port,
            )
            for address, beats in bursts
            for at in range(address, address + beats * self.port, self.port)
        ]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
@pytest.mark.parametrize("chance", [0.15, 0.6, 1.0])
def test_reads_arrive_complete_and_in_order(config, chance):
    bench = Bench(config, 1, chance=chance)
    expected = {name: bench.beats(bench.ask(name, 60)) for name in ("fetch", "load")}
    bench.run()
    assert bench.received == expected
    assert bench.quiet[-1]
    assert bench.bad_reads == []


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
@pytest.mark.parametrize("chance", [0.15, 0.6, 1.0])
def test_writes_arrive_complete_and_in_order(config, chance):
    bench = Bench(config, 2, chance=chance)
    expected = bench.store(60)
    bench.run()
    assert bench.memory == expected
    assert bench.answers == 60
    assert bench.quiet[-1]


@pytest.mark.parametrize("seed", range(4))
def test_both_at_once(seed):
    bench = Bench(CONFIGS[seed % 2], seed)
    count = bench.ask("fetch", 50), bench.ask("load", 50)
    expected = bench.store(50)
    bench.run()
    assert bench.memory == expected
    for name, bursts in zip(("fetch", "load"), count, strict=True):
        assert len(bench.received[name]) == sum(beats for _, beats in bursts)


def test_fetch_goes_before_load():
    bench = Bench(CONFIGS[0], 3, chance=1.0)
    bench.ask("fetch", 20)
    bench.ask("load", 20)
    bench.run()
    assert bench.order == [(i, FETCH_ID if i < 20 else LOAD_ID) for i in range(40)]


def test_a_beat_moves_in_each_cycle_that_the_bus_allows():
    bench = Bench(CONFIGS[0], 4, chance=1.0)
    bench.store(30)
    beats = len(bench.writes)
    bench.run()
    assert bench.cycle <= beats + 3


@pytest.mark.parametrize("seed", range(3))
def test_after_stop_nothing_new_is_opened_and_all_that_is_ends(seed):
    bench = Bench(CONFIGS[seed % 2], seed, chance=0.4)
    bench.ask("fetch", 40)
    bench.ask("load", 40)
    bench.store(40)
    bench.stop_at = 60
    bench.run(1200)
    assert all(cycle <= bench.stop_at + 20 for cycle, _ in bench.order)
    assert sum(cycle >= bench.stop_at for cycle, _ in bench.order) <= 1  # it was shown before
    assert bench.quiet[-1]
    assert any(bench.reads.values())
    assert bench.writes


def test_errors_name_their_reader():
    bench = Bench(CONFIGS[0], 5)
    bursts = {name: bench.ask(name, 20) for name in ("fetch", "load")}
    bench.store(20)
    (bad, beats), last = bursts["load"][7], bench.writes[-1][2]
    bench.errors = {bad + (beats - 1) * 4, last}
    hits = {
        n: sum(e in range(a, a + 4 * b, 4) for a, b in bs for e in bench.errors)
        for n, bs in bursts.items()
    }
    bench.run()
    assert {n: bench.bad_reads.count(n) for n in hits} == hits
    assert hits["load"] >= 1
    assert bench.bad_writes == 1
