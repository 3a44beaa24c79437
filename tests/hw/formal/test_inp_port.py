"""INP's write port where LOAD isn't alone in writing (hw/core/memories.py): no write is lost.

Whoever writes INP has the port with its own address, data and columns, whichever engine that is,
and the port writes in no other cycle. Assumed is what test_engines.py proves: LOAD says of each of
its writes that it writes, and another engine writes nothing in a cycle in which it is told that the
port is taken.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from amaranth import Module, Signal

from vdla.hw.core.memories import Memories
from vdla.hw.interfaces import write_port

DEPTH, BITS, COLUMNS = 4, 8, 2


def writer(proof, name):
    """An engine whose write port is free."""
    port = write_port(DEPTH, BITS, COLUMNS).create(path=(name,))
    for field in ("enable", "address", "data"):
        signal = getattr(port, field)
        proof.m.d.comb += signal.eq(proof.free(len(signal), f"{name}_{field}_free"))
    says = proof.free(name=f"{name}_says_that_it_writes")
    return SimpleNamespace(inp=port, inp_taken=Signal(), writes_inp=says)


@pytest.mark.parametrize("count", [1, 2], ids=["one other", "two others"])
@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_whoever_writes_has_the_port(proof, count, told):
    load, *others = (writer(proof, f"engine_{n}") for n in range(count + 1))
    inner, pad = Module(), SimpleNamespace(write=write_port(DEPTH, BITS, COLUMNS).create())
    memories = Memories.__new__(Memories)
    memories.m, memories.units = inner, SimpleNamespace(load=load)
    memories._share_inp(pad, others)
    proof.m.submodules += inner
    proof.assume(load.writes_inp | ~load.inp.enable.any())
    writers = [load.inp, *(other.inp for other in others)]
    for other in others if told else ():
        proof.assume(~(other.inp_taken & other.inp.enable.any()))
    for port in writers:
        writes = port.enable.any()
        proof.check(pad.write.enable == port.enable, when=writes)
        same = (pad.write.address == port.address) & (pad.write.data == port.data)
        proof.check(same, when=writes)
        proof.cover(writes)
    idle = ~sum((port.enable.any() for port in writers[1:]), writers[0].enable.any()).bool()
    proof.check(pad.write.enable == 0, when=idle)
    if told:
        proof.prove(depth=2, reach=2)
    else:
        proof.refute(depth=2)
