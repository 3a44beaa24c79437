"""What the proof of the DMA (test_dma.py) assumes of LOAD and STORE, proved of them.

LOAD
1. A request stays, with its payload, until it is taken; it is a burst within a page of DRAM.
2. No more than ``reads_in_flight`` bursts are under way, nor ``read_buffer_beats`` beats under way
   or buffered: there is room for every beat that comes.
3. What is known a cycle ahead of a request is what its address and the rest of its run say: its
   length, whether it ends the run, whether it lies outside DRAM. A run that is offered has beats.
4. It says of every cycle in which it writes INP that it does: so STORE, which then writes nothing,
   takes no write from it.

STORE
5. A beat stays, with its payload, until it is taken, even when the core stops meanwhile.
6. ``first`` opens a burst of ``beats`` beats within a page of DRAM, ``last`` closes it with the
   last of them.
7. No more than ``writes_in_flight`` bursts are unanswered, and after ``stop`` none is opened that
   had not been shown.
8. What is known ahead of a burst is what its address and the rest of its run say: its length,
   whether it ends the run, whether it lies outside DRAM or its destination.
9. Instructions in flight are those that haven't sent everything, and those that wait for answers.
   Of the former, as many have a walk, in its queue, at work, or with its last run alone, as have
   beats at all.
10. Each beat goes to the bus or into INP, once, and in order: it leaves the buffer in that cycle.
    One for INP stays, with its place, while LOAD writes INP; it lies within INP, and is written in
    one column of an entry.

Assumed: beats and answers come only for what is outstanding; what DRAM is doesn't change. Commands
are free, but fetch lets only memories pass that exist. STORE's arithmetic is cut out: its results
are free as well.
"""

from __future__ import annotations

import pytest
from amaranth import Cat, Mux, Signal
from amaranth.lib import data

from vdla.hw.bursts import PAGE_BITS, beat_bits, cut, is_outside
from vdla.hw.layout import beats, layout
from vdla.hw.load import Load
from vdla.hw.load.memories import longest_run
from vdla.hw.store import IN_FLIGHT, Store
from vdla.hw.store.destination import is_outside_target
from vdla.isa import instructions as isa
from vdla.isa.config import PAGE_BYTES, load_config
from vdla.isa.instructions import memories

MULTIPLIED = ("result", "total")
REQUANTIZED = ("moved", "above", "below")
CONFIG = load_config(
    "tiny",
    ["burst_beats=5", "read_buffer_beats=24", "reads_in_flight=3", "writes_in_flight=3"],
)
TABLES = CONFIG.override(["table_bytes=512"])
FORWARDING = CONFIG.override(["forwarding=1", "block_in=8", "wgt_bytes=4096"])


def stays(proof, valid, ready, *payload):
    """What was shown and not taken is still there, unchanged."""
    waits = proof.past(valid & ~ready)
    kept = Cat(proof.past(each) == each for each in payload).all()
    return ~waits | (valid & kept)


def burst_is_legal(pages, address, beats):
    port = CONFIG.port_bytes
    return (
        (beats != 0)
        & (beats <= CONFIG.burst_beats)
        & (address % port == 0)
        & (address % PAGE_BYTES + beats * port <= PAGE_BYTES)
        & (address[PAGE_BITS:] < pages)
    )


def sound(proof, state, inner, name):
    """A queue whose registers are proved to fit each other."""
    fifo, opened = getattr(inner.submodules, name), proof.open(inner, name)
    return proof.level(opened, fifo.depth), opened


def used_entries(m, opened, level, state):
    """What lies in each slot of a queue, and whether it is in use."""
    oldest = state(opened, "consume")
    for slot in range(IN_FLIGHT):
        look = opened.submodules.storage.read_port(domain="comb")
        m.d.comb += look.addr.eq(slot)
        yield (slot - oldest)[: len(oldest)] < level, look.data


def check_bursts(proof, config, state, inner, is_next, one_by_one=0):
    """What is known of the burst that is next, in registers that were filled a cycle ahead; it is
    of one beat where they go ``one_by_one``."""
    left = ~state(inner, "asked")
    length, is_all = cut(config, state(inner, "place"), left)
    proof.check(left != 0, when=is_next)
    proof.check(state(inner, "beats") == Mux(one_by_one, 1, length), when=is_next)
    proof.check(state(inner, "ends_run") == Mux(one_by_one, left == 1, is_all), when=is_next)


def dram(proof, unit):
    """DRAM may end anywhere, but stays as it is."""
    proof.m.d.comb += unit.dram_pages.eq(proof.constant(len(unit.dram_pages), "pages"))
    return unit.dram_pages


@pytest.mark.long
@pytest.mark.parametrize(
    "config", [CONFIG, TABLES, FORWARDING], ids=["", "with tables", "with forwarding"]
)
def test_load(config, proof, state):
    load = Load(config)
    inner = proof.add(load, load.dram_pages)
    m, request, beat = proof.m, load.request, load.data
    pages = dram(proof, load)
    taken = request.valid & request.ready
    coming, bursts = Signal(16), Signal(16)
    m.d.sync += coming.eq(coming + Mux(taken, request.beats, 0) - beat.valid)
    m.d.sync += bursts.eq(bursts + taken - (beat.valid & beat.last))
    proof.assume(~beat.valid | (coming != 0))
    proof.assume(~(beat.valid & beat.last) | (bursts != 0))
    proof.assume(~load.command.start | (load.head.memory <= max(memories(config))))

    if config.forwarding:
        proof.check(load.writes_inp, when=load.inp.enable.any())
        proof.cover(load.inp.enable.any())
        proof.cover(proof.past(load.writes_inp) & ~load.writes_inp)
    proof.check(stays(proof, request.valid, request.ready, request.address, request.beats))
    proof.check(burst_is_legal(pages, request.address, request.beats), when=request.valid)
    level = sound(proof, state, inner, "buffer")[0]
    proof.check(state(inner, "room") + coming + level == config.read_buffer_beats)
    proof.check(proof.count(inner, "bursts", config.reads_in_flight) == bursts)
    proof.check(coming + level <= config.read_buffer_beats)
    proof.check(bursts <= config.reads_in_flight)
    # A run on offer has beats, and so has the run of a burst that is next.
    run = state(inner, "run_kept")
    proof.check((run != 0) & (run <= longest_run(config)), when=state(inner, "offers"))
    check_bursts(proof, config, state, inner, state(inner, "asks"))
    outside = is_outside(state(inner, "place"), config, pages)
    proof.check(state(inner, "outside") == outside, when=state(inner, "asks"))
    proof.check(state(inner, "asks"), when=request.valid)

    proof.cover(bursts == config.reads_in_flight)
    proof.cover(level == 4)
    proof.cover(proof.past(request.valid & ~request.ready) & (request.beats == 3))
    proof.prove(reach=20)


def check_inp(proof, state, inner, store, waits):
    """What STORE writes into INP; ``waits``: a beat of the walk at work is buffered."""
    inp, write, place = store.inp, store.write, state(inner, "place")
    written, taken = inp.enable.any(), write.valid & write.ready
    columns = beats(store.config, "inp")
    offered = waits & state(inner, "forwards") & ~state(inner, "outside")
    proof.check(state(inner, "sent") == (taken | written))
    proof.check(~(taken & written))
    proof.check(written == ~store.inp_taken, when=offered)
    proof.check(offered, when=written)
    held = proof.past(offered & store.inp_taken)
    proof.check(offered & (place == proof.past(place)), when=held)
    proof.check(write.data == proof.past(write.data), when=held)
    at = inp.address * columns + sum(n * inp.enable[n] for n in range(columns))
    proof.check((at == place) & (sum(inp.enable) == 1), when=written)
    proof.check(place < store.config.depth("inp") * columns, when=written)
    column = (inp.data >> 8 * store.config.port_bytes * n for n in range(columns))
    same = (each[: len(write.data)] == write.data for each in column)
    proof.check(Cat(~inp.enable[n] | one for n, one in enumerate(same)).all(), when=written)
    proof.cover(written & held)
    proof.cover(proof.past(taken & write.last) & written)


@pytest.mark.long
@pytest.mark.parametrize("config", [CONFIG, FORWARDING], ids=["", "with forwarding"])
def test_store(config, proof, state):
    store = Store(config)
    inner = proof.add(store, store.dram_pages)
    for lane in range(config.port_bytes):
        for name, outputs in (("multiply", MULTIPLIED), ("requantize", REQUANTIZED)):
            part = getattr(inner.submodules, f"{name}_{lane}")
            proof.cut(inner, f"{name}_{lane}", *(getattr(part, n) for n in outputs))
    m, write = proof.m, store.write
    pages = dram(proof, store)
    taken = write.valid & write.ready
    left = Signal(range(config.burst_beats + 1))  # beats of the open burst
    m.d.sync += left.eq(Mux(taken, Mux(write.first, write.beats, left) - 1, left))
    owed = Signal(16)
    m.d.sync += owed.eq(owed + (taken & write.last) - write.answered)
    proof.assume(~write.answered | (owed != 0))

    proof.check(stays(proof, write.valid, write.ready, write.first, write.last, write.data))
    opens = write.valid & write.first
    proof.check(stays(proof, opens, write.ready, write.address, write.beats))
    proof.check(write.first == (left == 0), when=write.valid)
    proof.check(write.last == Mux(write.first, write.beats == 1, left == 1), when=write.valid)
    proof.check(burst_is_legal(pages, write.address, write.beats), when=opens)
    was_shown = proof.past(write.valid & ~write.ready)
    proof.check(was_shown, when=opens & store.stop)
    unanswered = owed + (left != 0)
    proof.check(unanswered <= config.writes_in_flight)

    # What makes it inductive: the queues' pointers, and what lies in them.
    levels, entries = {}, {}
    for name in ("context", "walks", "waiting", "buffer"):
        levels[name], opened = sound(proof, state, inner, name)
        if name in ("context", "walks"):
            entries[name] = list(used_entries(m, opened, levels[name], state))
    sizes = layout(isa.Store, config)["x_size"].width
    for is_used, entry in entries["walks"]:  # a place, then the entries of a run
        proof.check(entry[beat_bits(config) :][:sizes] != 0, when=is_used)
    contexts = [(u, data.View(store.started.sender.shape(), e)) for u, e in entries["context"]]
    on_offer, active = state(inner, "walks_on"), state(inner, "sends")
    sends_last = active & state(inner, "last_run")  # of its walk, which is on offer no more
    walks = sum(is_used & ~entry.empty for is_used, entry in contexts)
    proof.check(walks == levels["walks"] + on_offer + sends_last)
    proof.check(on_offer, when=active & ~sends_last)
    in_flight = proof.count(inner, "in_flight", IN_FLIGHT)
    proof.check(in_flight == levels["context"] + levels["waiting"])
    proof.check(state(inner, "opens") == (left == 0))
    proof.check(state(inner, "burst_left") == left)
    proof.check(proof.count(inner, "unanswered", config.writes_in_flight) == unanswered)
    proof.check(state(inner, "shown") == was_shown)
    proof.check(state(inner, "run_kept") != 0, when=on_offer)
    chosen = {each: state(inner, each.flag) for each in store.destinations}
    on_chip = Cat(*chosen.values()).any()
    check_bursts(proof, config, state, inner, active, on_chip)
    under_way = active & ~on_chip & (left < state(inner, "beats"))
    proof.check((left == 0) | under_way)
    if chosen:
        proof.check(state(inner, "one_by_one") == on_chip, when=active)
    outside = is_outside_target(config, state(inner, "place"), pages, chosen)
    proof.check(state(inner, "outside") == outside, when=active)

    if config.forwarding:
        sender = store.started.sender
        check_inp(proof, state, inner, store, active & ~sender.empty & (levels["buffer"] != 0))
    proof.cover(taken & write.first & (write.beats == 4))
    proof.cover(was_shown & store.stop & write.first)
    proof.prove(reach=16)
