"""The first-in first-out queues that the core uses, in LUTs and in block RAM.

1. Order is kept, nothing is lost or invented: any one entry, picked freely when it is written, is
   read after exactly those that were in the queue before it, unchanged.
2. The level = written − read; it can be written unless it holds ``depth`` entries, and read unless
   it is empty.

Nothing is assumed. Data are one bit wide: the queue doesn't look at them. Nor does it matter how
deep it is: deep ones, which lie in block RAM, are proved with few entries.
"""

from __future__ import annotations

import pytest
from amaranth import Mux, Signal

from vdla.hw.fifo import SHALLOW, Fifo


@pytest.mark.parametrize("shallow", [SHALLOW, 0], ids=["in LUTs", "in block RAM"])
@pytest.mark.parametrize(
    "depth", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 4)), 3]
)
def test_what_is_written_is_read_in_order(proof, state, monkeypatch, depth, shallow):
    monkeypatch.setattr("vdla.hw.fifo.SHALLOW", shallow)
    m = proof.m
    fifo = Fifo(width=1, depth=depth)
    inner = proof.add(fifo)
    asynchronous = [port.domain == "comb" for port in inner.submodules.storage.read_ports]
    assert asynchronous == [depth <= shallow]
    level = proof.level(inner, depth)
    writes, reads = fifo.w_en & fifo.w_rdy, fifo.r_en & fifo.r_rdy

    pick, tracked, kept = proof.free(name="pick"), Signal(), Signal()
    ahead = Signal(range(depth + 1))  # entries to be read before the one picked
    with m.If(writes & pick & ~tracked):
        m.d.sync += [tracked.eq(1), kept.eq(fifo.w_data), ahead.eq(level - reads)]
    with m.Elif(tracked & reads):
        m.d.sync += [tracked.eq(ahead != 0), ahead.eq(ahead - 1)]
    proof.check(fifo.r_rdy & (fifo.r_data == kept), when=tracked & (ahead == 0))
    proof.check(ahead < level, when=tracked)

    balance = proof.ghost(depth, writes, reads, "balance")
    proof.check(level == balance)
    proof.check(balance <= depth)
    proof.check(fifo.w_rdy == (level != depth))
    proof.check(fifo.r_rdy == (level != 0))

    # What makes it inductive: where the pointers stand, and where the picked entry lies.
    produce, consume = state(inner, "produce"), state(inner, "consume")
    look = inner.submodules.storage.read_port(domain="comb")
    place = consume + ahead
    m.d.comb += look.addr.eq(Mux(place >= depth, place - depth, place))
    proof.check(look.data == kept, when=tracked)
    oldest = inner.submodules.storage.read_port(domain="comb")
    m.d.comb += oldest.addr.eq(consume)
    proof.check(fifo.r_data == oldest.data, when=level != 0)
    if depth > shallow:
        following = inner.submodules.storage.read_port(domain="comb")
        m.d.comb += following.addr.eq(state(inner, "after_consume"))
        proof.check(state(inner, "second") == following.data, when=level > 1)
    end = consume + level
    proof.check(produce == Mux(end >= depth, end - depth, end))

    proof.cover(tracked & (ahead == depth - 1) & kept)
    proof.cover(tracked & (ahead == 0) & reads & (level == depth))
    proof.prove(reach=depth + 8)
