"""The DMA's side of AXI4 (Arm IHI 0022, chapter A3), and its promises to the units.

Reads
1. ARVALID stays until ARREADY, and address, length and ID with it.
2. A burst has 1 to ``burst_beats`` beats, doesn't cross a page, and lies within DRAM.
3. Each burst that the bus takes is one that its unit, named by the ID, sees taken in that cycle.
   Fetch goes first where both ask.
4. After ``stop`` nothing new is shown.
5. A beat goes to the unit that its ID names, unchanged; an error is reported with it.

Writes
6. AWVALID and WVALID stay until READY, and their payloads with them.
7. Each of STORE's beats is taken from the bus's view exactly once, its address once per burst, and
   WLAST stands on beat AWLEN + 1 and on no other.
8. No data of a burst goes ahead of the first beat of the one before, whose address is taken first.

Both
9. ``quiet`` says exactly that nothing is shown, open, or unanswered.

Assumed of the units (hw/interfaces.py): a request stays until it is taken, and is within a page of
DRAM; they have no more bursts under way than they may. STORE's beats stay until they are taken;
``first`` and ``last`` fit ``beats``. Assumed of the bus: beats and answers only for what is
outstanding.
"""

from __future__ import annotations

import pytest
from amaranth import Cat, Mux, Signal

from vdla.hw.bursts import PAGE_BITS
from vdla.hw.dma import Dma
from vdla.isa.config import PAGE_BYTES, load_config

CONFIGS = {"tiny": [], "paper": ["burst_beats=5"]}


@pytest.fixture(params=["tiny", pytest.param("paper", marks=pytest.mark.long)])
def config(request):
    return load_config(request.param, CONFIGS[request.param])


def stays(proof, valid, ready, *payload):
    """Whether what was shown and not taken is still there, and whether its payload is."""
    waits = proof.past(valid & ~ready)
    kept = Cat(proof.past(each) == each for each in payload).all()
    return ~waits | valid, ~waits | kept


def in_page(config, request):
    """Whether a request is a burst within a page, and on a beat."""
    port = config.port_bytes
    return (
        (request.beats != 0)
        & (request.beats <= config.burst_beats)
        & (request.address % port == 0)
        & (request.address % PAGE_BYTES + request.beats * port <= PAGE_BYTES)
    )


def with_base(proof, config):
    """The DMA; DRAM lies anywhere, but stays there."""
    dma = Dma(config)
    inner = proof.add(dma, dma.dram_base)
    proof.m.d.comb += dma.dram_base.eq(proof.constant(len(dma.dram_base), "base"))
    return dma, inner


def on_bus(dma, address):
    """Where an address that counts from DRAM_BASE lies."""
    return (address + (dma.dram_base << PAGE_BITS))[: len(address)]


def reads(proof, config, state):
    dma, inner = with_base(proof, config)
    axi, units = dma.axi, (dma.fetch, dma.load)
    proof.assume(~dma.store.valid & ~axi.bvalid)
    for unit in units:
        valid, kept = stays(proof, unit.valid, unit.ready, unit.address, unit.beats)
        proof.assume(kept)
        proof.assume(valid)
        proof.assume(~unit.valid | in_page(config, unit))
    proof.check(state(inner, "shown") == proof.past(axi.arvalid & ~axi.arready))
    proof.check(state(inner, "shown_load") == proof.past(axi.arid), when=state(inner, "shown"))
    proof.check(proof.count(inner, "unanswered", dma.most_writes) == 0)
    return dma, inner, axi


def test_reads(proof, config, state):
    dma, inner, axi = reads(proof, config, state)
    m, fetch, load = proof.m, dma.fetch, dma.load

    # Shown: it stays, in a page, in DRAM.
    for condition in stays(proof, axi.arvalid, axi.arready, axi.araddr, axi.arlen, axi.arid):
        proof.check(condition)
    end = axi.araddr % PAGE_BYTES + (axi.arlen + 1) * config.port_bytes
    proof.check((axi.arlen < config.burst_beats) & (end <= PAGE_BYTES), when=axi.arvalid)
    pages = proof.constant(21, "pages")
    proof.assume(dma.dram_base + pages <= 1 << 20)
    for unit in (fetch, load):
        proof.assume(~unit.valid | (unit.address[PAGE_BITS:] < pages))
    page = axi.araddr[PAGE_BITS:]
    inside = (page >= dma.dram_base) & (page < dma.dram_base + pages)
    proof.check(inside, when=axi.arvalid)

    # Taken: from the unit that the ID names, which sees it.
    taken = axi.arvalid & axi.arready
    proof.check(Mux(axi.arid, load.valid, fetch.valid), when=axi.arvalid)
    for unit, identity in ((fetch, 0), (load, 1)):
        proof.check((unit.valid & unit.ready) == (taken & (axi.arid == identity)))
        same = (axi.araddr == on_bus(dma, unit.address)) & (axi.arlen + 1 == unit.beats)
        proof.check(same, when=unit.valid & unit.ready)
    was_shown = proof.past(axi.arvalid & ~axi.arready)
    proof.check(axi.arid == 0, when=axi.arvalid & fetch.valid & ~was_shown)
    proof.check(was_shown, when=axi.arvalid & dma.stop)
    proof.check(axi.arvalid, when=(fetch.valid | load.valid) & ~dma.stop)
    proof.check((axi.arburst == 1) & (1 << axi.arsize == config.port_bytes))

    # Answered: to the unit that the ID names.
    outstanding = proof.ghost(dma.most_reads, taken, axi.rvalid & axi.rlast, "outstanding")
    proof.assume(~axi.rvalid | (outstanding != 0))
    proof.assume((outstanding < dma.most_reads) | ~taken)
    for port, identity in ((dma.fetch_data, 0), (dma.load_data, 1)):
        proof.check(port.valid == (axi.rvalid & (axi.rid == identity)))
        proof.check((port.data == axi.rdata) & (port.last == axi.rlast), when=port.valid)
    proof.check(axi.rready)
    proof.check(dma.read_error == (axi.rvalid & axi.rresp.matches(0b10, 0b11)))
    proof.check(dma.error_load == axi.rid, when=dma.read_error)
    proof.check(dma.quiet == ((outstanding == 0) & ~was_shown))
    proof.check(proof.count(inner, "unfinished", dma.most_reads) == outstanding)

    seen = Signal(2)
    m.d.sync += seen.eq(seen | Cat(fetch.ready & fetch.valid, load.ready & load.valid))
    proof.cover((seen == 3) & (outstanding == 0) & ~dma.quiet)
    proof.cover((seen == 3) & dma.quiet)
    proof.cover(was_shown & axi.arid & fetch.valid & dma.stop)
    proof.prove()


def writes(proof, config, *, contract=True):
    """The DMA with STORE; how many beats of the open burst are to come from STORE."""
    dma, inner = with_base(proof, config)
    m, axi, store = proof.m, dma.axi, dma.store
    proof.assume(~dma.fetch.valid & ~dma.load.valid & ~axi.rvalid)
    taken = store.valid & store.ready
    left = Signal(range(config.burst_beats + 1))
    m.d.sync += left.eq(Mux(taken, Mux(store.first, store.beats, left) - 1, left))
    if contract:
        payload = (store.first, store.last, store.data)
        proof.assume(Cat(stays(proof, store.valid, store.ready, *payload)).all())
        _, kept = stays(proof, store.valid & store.first, store.ready, store.address, store.beats)
        proof.assume(kept)
        proof.assume(~store.valid | (store.first == (left == 0)))
        proof.assume(~store.valid | (store.last == Mux(store.first, store.beats == 1, left == 1)))
        proof.assume(~(store.valid & store.first) | in_page(config, store))
    return dma, inner, taken, left


def test_writes(proof, config, state):
    dma, inner, taken, left = writes(proof, config)
    m, axi, store = proof.m, dma.axi, dma.store
    for valid, ready, *payload in (
        (axi.awvalid, axi.awready, axi.awaddr, axi.awlen),
        (axi.wvalid, axi.wready, axi.wdata, axi.wlast, axi.wstrb),
    ):
        for condition in stays(proof, valid, ready, *payload):
            proof.check(condition)
    end = axi.awaddr % PAGE_BYTES + (axi.awlen + 1) * config.port_bytes
    proof.check((axi.awlen < config.burst_beats) & (end <= PAGE_BYTES), when=axi.awvalid)
    proof.check(axi.awaddr == on_bus(dma, store.address), when=axi.awvalid)
    proof.check(axi.wstrb.all() & (axi.wdata == store.data), when=axi.wvalid)
    proof.check((axi.awburst == 1) & (1 << axi.awsize == config.port_bytes))

    # What the bus has taken. An address and the first beat of its burst wait for each other, and
    # nothing else goes on meanwhile, so the bus is at most one of the two ahead of STORE.
    address_ahead, beat_ahead = state(inner, "address_done"), state(inner, "beat_done")
    addresses, beats = Signal(8, name="addresses"), Signal(8, name="beats")
    bursts_taken, beats_taken = Signal(8, name="bursts_taken"), Signal(8, name="beats_taken")
    beat = axi.wvalid & axi.wready
    m.d.sync += [
        addresses.eq(addresses + (axi.awvalid & axi.awready)),
        beats.eq(beats + beat),
        bursts_taken.eq(bursts_taken + (taken & store.first)),
        beats_taken.eq(beats_taken + taken),
    ]
    proof.check(beats == (beats_taken + beat_ahead)[:8])
    proof.check(addresses == (bursts_taken + address_ahead)[:8])
    proof.check(~(address_ahead & beat_ahead))
    proof.check(store.valid & store.first, when=address_ahead | beat_ahead)

    # WLAST, as the bus counts: from the length that was taken with the address, or is shown.
    length = Mux(address_ahead, proof.past(store.beats), store.beats)
    to_come = Signal(range(config.burst_beats + 1))  # beats of the open burst, from the bus's view
    with m.If(beat):
        m.d.sync += to_come.eq(Mux(to_come == 0, length, to_come) - 1)
    proof.check(axi.wlast == (Mux(to_come == 0, length, to_come) == 1), when=axi.wvalid)
    proof.check(to_come == Mux(beat_ahead, store.beats - 1, left))
    proof.check(left <= config.burst_beats)

    # Answers: each burst has one, after its address and its last beat.
    owed = proof.ghost(dma.most_writes, taken & store.last, axi.bvalid, "owed")
    proof.assume(~axi.bvalid | (owed != 0))
    proof.assume((owed + (left != 0) < dma.most_writes) | ~(taken & store.first))
    proof.check(proof.count(inner, "unanswered", dma.most_writes) == owed + (left != 0))
    proof.check((proof.count(inner, "unfinished", dma.most_reads) == 0) & ~state(inner, "shown"))
    proof.check(axi.bready & (store.answered == axi.bvalid))
    proof.check(dma.write_error == (axi.bvalid & axi.bresp.matches(0b10, 0b11)))
    proof.check(dma.quiet == (~store.valid & (left == 0) & (owed == 0)))
    proof.check(~axi.awvalid & ~axi.wvalid & (to_come == 0), when=dma.quiet)

    proof.cover((bursts_taken == 2) & dma.quiet & (beats_taken == 3))
    proof.cover(address_ahead & axi.wvalid)
    proof.cover(beat_ahead & axi.awvalid & (store.beats == 2))
    proof.prove()


def test_a_beat_taken_back_breaks_the_rules(proof):
    config = load_config("tiny")
    dma, _, _, _ = writes(proof, config, contract=False)
    proof.check(Cat(stays(proof, dma.axi.awvalid, dma.axi.awready, dma.axi.awaddr)).all())
    proof.refute()
