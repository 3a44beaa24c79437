"""Fetch: what it asks for, what it holds, what it gives away.

1. Beats requested and not dispatched fit its buffer, so that beats never need to wait.
2. Bursts follow each other from the stream's base on, and never ask beyond its length.
3. A burst lies within DRAM and within a page, and stays until it is taken.
4. At most one instruction is dispatched a cycle, into a queue that has room, from the head, where
   it is when all its beats have arrived; the last one never is. ``index`` counts them. What the
   head keeps of an instruction beside its word is what the word says.
5. What is dispatched are the beats that arrived for it: any one of them, picked freely when it
   arrives, is found in its place in the word that is dispatched after as many as were ahead.
6. The end is announced when the last is at the head and no queue is busy.
7. Fetch never starves: with no beat on its way and no instruction complete, the next burst fits.
   One that is complete comes to the head in the next cycle, if none is there that stays.

Assumed: a beat arrives only after the burst that asks for it was taken; the stream's place doesn't
change, and the core is idle only when nothing is under way. From a reset on it is idle for two
cycles at least: a program's length is written before START, and not in the cycle before.
"""

from __future__ import annotations

import pytest
from amaranth import Mux, Signal

from vdla.hw.bursts import PAGE_BITS, cut, is_outside, offset_bits
from vdla.hw.fetch import Fetch
from vdla.isa.config import PAGE_BYTES, load_config
from vdla.isa.instructions import OPCODE_BITS, Finish, instruction_bytes
from vdla.isa.ring import numbered, ring_of

FETCH_INSTRUCTIONS = 16  # docs/timing.md, section 3


def build(proof, config):
    """Fetch of a stream that lies anywhere; ghosts of beats asked for and beats to come."""
    fetch = Fetch(config)
    m = proof.m
    inner = proof.add(fetch, fetch.base, fetch.length, fetch.dram_pages, fetch.awake)
    m.d.comb += fetch.awake.eq(~fetch.idle)
    for port, name in ((fetch.base, "base"), (fetch.length, "length"), (fetch.dram_pages, "pages")):
        m.d.comb += port.eq(proof.constant(len(port), name))
    request = fetch.request
    taken = Mux(request.valid & request.ready, request.beats, 0)
    coming = Signal(16)
    m.d.sync += coming.eq(coming + taken - fetch.data.valid)
    proof.assume(~fetch.data.valid | (coming != 0))
    proof.assume(~fetch.idle | (coming == 0))
    proof.assume(fetch.idle | proof.past(proof.past(1)))
    return fetch, inner, taken, coming


def buffer_beats(config, per):
    """Beats of the buffer: docs/timing.md, section 3."""
    return max(FETCH_INSTRUCTIONS * per, config.burst_beats + per - 1)


@pytest.fixture(params=["tiny", pytest.param("paper", marks=pytest.mark.long)])
def config(request):
    settings = {"tiny": ["burst_beats=24"], "paper": ["port_bytes=16", "burst_beats=48"]}
    return load_config(request.param, [*settings[request.param], "read_buffer_beats=256"])


@pytest.mark.long
def test_requests(proof, state, config):
    fetch, inner, taken, coming = build(proof, config)
    m, request = proof.m, fetch.request
    port, per = config.port_bytes, instruction_bytes(config) // config.port_bytes
    room = buffer_beats(config, per)
    held, column = state(inner, "held"), state(inner, "column")
    left = ~state(inner, "asked")
    whole = proof.count(inner, "whole", -(-room // per))
    at_head, dispatch = fetch.head.valid, fetch.put.any()

    proof.check((held == coming + (whole + at_head) * per + column) & (column < per))
    proof.check((held <= room) & (taken + held <= room))
    proof.check(at_head, when=dispatch)
    comes = proof.past((whole != 0) & (~at_head | dispatch) & ~fetch.idle)
    proof.check(at_head, when=comes)
    stays = proof.past(at_head & ~dispatch & ~fetch.idle)
    proof.check(at_head & (fetch.word == proof.past(fetch.word)), when=stays)
    proof.check(~request.valid, when=fetch.idle)

    asked = Signal(40)
    m.d.sync += asked.eq(Mux(fetch.idle, 0, asked + taken))
    started, known = Signal(), proof.past(1)  # ``known``: a register has the stream's beats
    m.d.sync += started.eq(started | (fetch.idle & known))
    proof.check(state(inner, "stream") == fetch.length * per, when=known)
    proof.check(started | fetch.idle)
    place, offset = state(inner, "place"), offset_bits(config)
    proof.check(started | (held == 0))
    proof.check(asked + left == fetch.length * per, when=started)
    proof.check(place == fetch.base[offset:] + asked, when=started)
    outside = is_outside(place, config, fetch.dram_pages) | fetch.base[:offset].any()
    proof.check(state(inner, "outside") == outside, when=started)
    proof.check(state(inner, "more") == (left != 0), when=started)
    proof.check(state(inner, "fits") == (held + config.burst_beats <= room), when=started)
    proof.check(state(inner, "fits") | (coming != 0) | (whole != 0) | at_head, when=started)
    beats, is_all = cut(config, place, left)
    proof.check(request.beats == beats, when=started)
    proof.check(state(inner, "ends_run") == is_all, when=started)
    proof.check(request.address == (fetch.base + asked * port)[:32], when=request.valid)

    end = request.address % PAGE_BYTES + request.beats * port
    inside = fetch.base + asked * port < (fetch.dram_pages << PAGE_BITS)
    proof.check(inside & (end <= PAGE_BYTES) & (request.address % port == 0), when=request.valid)
    proof.check((request.beats != 0) & (request.beats <= config.burst_beats), when=request.valid)
    waits = proof.past(request.valid & ~request.ready) & ~fetch.idle
    same = (request.address == proof.past(request.address)) & (
        request.beats == proof.past(request.beats)
    )
    proof.check(request.valid & same, when=waits)

    proof.cover(proof.past(request.valid) & ~request.valid & (left != 0))
    proof.cover(waits & (request.beats == 1) & (left > 1))
    proof.prove()


def check_head(proof, fetch, config):
    """What the head keeps of its instruction, against what fetch says of that word."""
    head, opcode, numbers = fetch.head, fetch.head.word[:OPCODE_BITS], numbered(config)
    told = {
        "malformed": fetch._malformed(proof.m, head.word),
        "misaligned": fetch._misaligned(proof.m, head.word),
        "ends": opcode == Finish.opcode,
    }
    for name, value in told.items():
        proof.check(head[name] == value, when=head.valid)
    for role in ring_of(config).roles:
        mine = [cls.opcode for cls in role.executes if cls is not Finish]
        is_its = head.engine[numbers.index(role.engine)]
        proof.check(is_its == opcode.matches(*mine), when=head.valid)


@pytest.mark.long
def test_dispatch(proof, state, config):
    fetch, inner, _, coming = build(proof, config)
    m, beat = proof.m, fetch.data
    bits, per = 8 * config.port_bytes, instruction_bytes(config) // config.port_bytes
    slots = -(-buffer_beats(config, per) // per)
    held, column = state(inner, "held"), state(inner, "column")
    whole = proof.count(inner, "whole", slots)
    at_head, arrived = fetch.head.valid, whole * per + column
    proof.check((held == coming + at_head * per + arrived) & (held <= slots * per))
    proof.check(held + config.burst_beats <= slots * per, when=state(inner, "fits"))
    proof.check(fetch.request.beats <= config.burst_beats)
    is_last, after = fetch.dispatched, state(inner, "after")

    # One at a time, in order, into a queue that has room; the last stays.
    end = (fetch.length - 1)[: len(fetch.length)]
    dispatch, last = fetch.put.any(), fetch.index == end
    given = Signal(24)
    m.d.sync += given.eq(Mux(fetch.idle, 0, given + dispatch))
    proof.check(fetch.index == given)
    started = Signal()
    m.d.sync += started.eq(started | fetch.idle)
    proof.check((after == (given + 1)[: len(after)]) & (is_last == last), when=started)
    proof.check(started | ((held == 0) & ~state(inner, "more")))
    proof.check((fetch.put & ~fetch.room) == 0)
    proof.check((fetch.put & (fetch.put - 1)) == 0)
    proof.check(at_head & ~last & fetch.word[:3].matches(0, 1, 2, 3), when=dispatch)
    proof.check(fetch.finished == (at_head & last & ~fetch.busy))
    check_head(proof, fetch, config)

    # Any one beat: ``ahead`` instructions are dispatched before the one that it belongs to.
    pick, tracked = proof.free(name="pick"), Signal()
    kept, place, ahead = Signal(bits), Signal(range(per)), Signal(range(slots + 1))
    with m.If(fetch.idle):
        m.d.sync += tracked.eq(0)
    with m.Elif(beat.valid & pick & ~tracked):
        m.d.sync += [tracked.eq(1), kept.eq(beat.data), place.eq(column)]
        m.d.sync += ahead.eq(whole + at_head - dispatch)
    with m.Elif(dispatch & tracked):
        m.d.sync += [tracked.eq(ahead != 0), ahead.eq(ahead - 1)]
    here = tracked & (ahead == 0) & dispatch
    proof.check(fetch.word.word_select(place, bits) == kept, when=here)

    # What makes it inductive: where the slots stand, and where the picked beat lies.
    buffer = inner.submodules.buffer
    (write,), (read, *_) = buffer.write_ports, buffer.read_ports
    look = buffer.read_port(domain="comb")

    def slot(ahead):
        total = read.addr + ahead
        return Mux(total >= slots, total - slots, total)

    m.d.comb += look.addr.eq(slot(ahead - at_head))
    proof.check((read.addr < slots) & (write.addr < slots) & (column < per))
    proof.check(write.addr == slot(whole))
    proof.check(ahead * per + place < at_head * per + arrived, when=tracked)
    holds = Mux(at_head & (ahead == 0), fetch.word, look.data)
    proof.check(holds.word_select(place, bits) == kept, when=tracked)

    proof.cover(here & (given == 1) & (kept == 0x5A))
    proof.cover(fetch.finished & (given == 1))
    proof.prove(depth=1, reach=2 * per + 8)
