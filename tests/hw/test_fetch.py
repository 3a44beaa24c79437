"""Fetch, in front of a memory that answers as docs/timing.md, section 2, says."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random

import pytest
from amaranth.sim import Simulator

from vdla.hw.fetch import Fetch
from vdla.isa.config import PAGE_BYTES, load_config
from vdla.isa.instructions import (
    OPCODE_BITS,
    Alu,
    AluOp,
    Finish,
    Gemm,
    Load,
    Mem,
    Store,
    instruction_bytes,
    memories,
    operations,
)
from vdla.isa.registers import Fault
from vdla.isa.ring import Engine, ring_of

TINY = load_config("tiny")
PER = instruction_bytes(TINY) // TINY.port_bytes  # beats of an instruction
FETCH_INSTRUCTIONS = 16  # docs/timing.md, section 3
HEAD = 1  # cycles from an instruction's beats being there to its being at the head
LONG = ["inp_bytes=256", "read_buffer_beats=256"]  # 6 beats an instruction
CONFIGS = {
    "tiny": TINY,
    "paper": load_config("paper"),
    "wide": load_config("wide", ["port_bytes=16", "burst_beats=5"]),
    **{f"bursts of {n}": load_config("tiny", [*LONG, f"burst_beats={n}"]) for n in (96, 97, 256)},
}


@dataclass
class Seen:
    """What fetch did, cycle by cycle."""

    dispatched: list = field(default_factory=list)  # (cycle, engine, word, index)
    requests: list = field(default_factory=list)  # (cycle, address, beats)
    arrived: int = 0
    finished: int | None = None
    fault: tuple | None = None  # (cycle, cause, index)


def fetch_stream(
    words,
    config=TINY,
    *,
    base=0,
    pages=16,
    length=None,
    latency=4,
    cycles=600,
    room=lambda cycle: 7,
    busy=lambda cycle: 0,
    ready=lambda cycle: 1,
    gap=lambda cycle: 0,
):
    """Runs fetch until it ends, stops, or the cycles are over."""
    fetch, seen = Fetch(config), Seen()
    port = config.port_bytes
    memory = {base + i: byte for i, byte in enumerate(encoded(words, config))}

    async def drive(ctx):
        ctx.set(fetch.base, base)
        ctx.set(fetch.length, len(words) if length is None else length)
        ctx.set(fetch.dram_pages, pages)
        ctx.set(fetch.idle, 1)
        await ctx.tick()
        await ctx.tick()
        ctx.set(fetch.idle, 0)
        ctx.set(fetch.awake, 1)
        coming = deque()
        for cycle in range(cycles):
            ctx.set(fetch.room, room(cycle))
            ctx.set(fetch.busy, busy(cycle))
            ctx.set(fetch.request.ready, ready(cycle))
            moves = coming and coming[0][0] <= cycle and not gap(cycle)
            ctx.set(fetch.data.valid, bool(moves))
            if moves:
                address = coming.popleft()[1]
                raw = bytes(memory.get(address + i, 0) for i in range(port))
                ctx.set(fetch.data.data, int.from_bytes(raw, "little"))
                seen.arrived += 1
            if ctx.get(fetch.fault.valid):
                cause = Fault(int(ctx.get(fetch.fault.cause)))
                seen.fault = cycle, cause, ctx.get(fetch.fault.index)
                return
            if ctx.get(fetch.finished):
                seen.finished = cycle
                return
            if ctx.get(fetch.request.valid) and ctx.get(fetch.request.ready):
                address, beats = ctx.get(fetch.request.address), ctx.get(fetch.request.beats)
                seen.requests.append((cycle, address, beats))
                coming.extend((cycle + 1 + latency, address + i * port) for i in range(beats))
            put = ctx.get(fetch.put)
            if put:
                engine = Engine(put.bit_length() - 1)
                assert put == 1 << engine
                assert put & ctx.get(fetch.room)
                seen.dispatched.append((cycle, engine, ctx.get(fetch.word), ctx.get(fetch.index)))
            await ctx.tick()

    simulator = Simulator(fetch)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return seen


def encoded(words, config):
    size = instruction_bytes(config)
    return b"".join(
        w.to_bytes(size, "little") if isinstance(w, int) else w.encode(config) for w in words
    )


def random_words(count, seed, config=TINY):
    random = Random(seed)
    kinds = [Load, lambda **f: Store(memory=Mem.ACC8, **f), Gemm, Alu]
    return [
        random.choice(kinds)(push_next=random.randrange(2), pop_prev=random.randrange(2))
        for _ in range(count)
    ] + [Finish()]


def set_field(instruction, name, value, config=TINY):
    """The instruction's word with a value that its class may not allow."""
    word = instruction.pack(config)
    for each, bit, width in type(instruction).layout(config):
        if each.name == name:
            return word & ~(((1 << width) - 1) << bit) | value << bit
    raise KeyError(name)


# Order and time ---------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("seed", range(3))
def test_it_dispatches_in_order_whatever_the_others_do(config, seed):
    words, random = random_words(90, seed, config), Random(seed)
    chance = random.choice([0.2, 0.6, 1.0])

    def often(width):
        return lambda cycle: sum((random.random() < chance) << i for i in range(width))

    seen = fetch_stream(
        words,
        config,
        base=PAGE_BYTES - 8 * instruction_bytes(config) - seed * config.port_bytes,
        cycles=20000,
        room=often(3),
        ready=often(1),
        gap=lambda cycle: random.random() > chance,
    )
    expected = [(ring_of(config).engine_of(w), w.pack(config), i) for i, w in enumerate(words[:-1])]
    assert [entry[1:] for entry in seen.dispatched] == expected
    assert seen.finished is not None
    assert seen.fault is None


def test_the_cycles_of_the_shortest_programs():
    """First request in 0, first beat in 1 + latency, 8 beats, all there a cycle later, at the head
    in the next one."""
    assert fetch_stream([Finish()], latency=4).finished == 1 + 4 + PER + HEAD
    seen = fetch_stream([Gemm(), Load(), Finish()], latency=10)
    assert [entry[0] for entry in seen.dispatched] == [11 + PER + HEAD, 11 + 2 * PER + HEAD]
    assert seen.finished == 11 + 3 * PER + HEAD


def test_one_instruction_a_cycle_once_they_are_there():
    words = [*(Gemm() for _ in range(12)), Finish()]
    seen = fetch_stream(words, room=lambda cycle: 7 * (cycle >= 200))
    assert [entry[0] for entry in seen.dispatched] == list(range(200, 212))
    assert seen.finished == 212


# Prefetch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_it_requests_what_fits_its_buffer(config):
    """Nothing leaves, so it stops where another whole burst has no room."""
    seen = fetch_stream(random_words(90, 1, config), config, room=lambda cycle: 0)
    per, burst = instruction_bytes(config) // config.port_bytes, config.burst_beats
    capacity = max(FETCH_INSTRUCTIONS * per, burst + per - 1)
    requested = sum(beats for _, _, beats in seen.requests)
    assert capacity - burst < requested <= capacity
    assert seen.arrived == requested
    assert [cycle for cycle, _, _ in seen.requests] == list(range(len(seen.requests)))


def test_room_is_requested_again_in_the_cycle_after_a_dispatch():
    words = random_words(60, 2)
    seen = fetch_stream(words, room=lambda cycle: 7 * (cycle in (300, 301)))
    later = [entry for entry in seen.requests if entry[0] >= 300]
    assert [cycle for cycle, _, _ in later] == [302]
    assert later[0][2] == TINY.burst_beats == 2 * PER


def test_bursts_end_with_their_page_and_with_the_stream():
    base = PAGE_BYTES - 5 * TINY.port_bytes
    seen = fetch_stream([Gemm(), Gemm(), Finish()], base=base)
    assert [entry[1:] for entry in seen.requests] == [
        (base, 5),
        (PAGE_BYTES, 16),
        (PAGE_BYTES + 64, 3),
    ]
    assert seen.finished is not None


# The end ------------------------------------------------------------------------------------------


def test_finish_waits_until_no_queue_is_busy():
    for quiet in (20, 90):
        seen = fetch_stream([Gemm(), Finish()], busy=lambda cycle: cycle < quiet)
        assert seen.finished == max(quiet, 1 + 4 + 2 * PER + HEAD)


def test_finish_waits_for_no_room():
    assert fetch_stream([Finish()], room=lambda cycle: 0).finished is not None


# Faults -------------------------------------------------------------------------------------------

STORE = Store(memory=Mem.ACC)
ILLEGAL = {
    "opcode 5": 5,
    "opcode 6": 6,
    "opcode 7 and all else": (1 << 256) - 1,
    "LOAD memory": set_field(Load(), "memory", 5),
    "LOAD memory 7": set_field(Load(), "memory", 7),
    **{f"STORE {m}": set_field(STORE, "memory", m) for m in (0, 1, 4, 5, 7)},
    "GEMM init": set_field(Gemm(), "init", 3),
    "ALU alu_op": set_field(Alu(), "alu_op", 7),
    "FINISH before the end": Finish(),
}


@pytest.mark.parametrize("name", ILLEGAL)
@pytest.mark.parametrize("at", [0, 2])
def test_illegal_instructions(name, at):
    """In the cycle in which it is at the head, whether its engine has room or not."""
    words = [Gemm()] * at + [ILLEGAL[name], Gemm(), Finish()]
    for room in (7, 0) if at == 0 else (7,):
        seen = fetch_stream(words, room=lambda cycle: room)
        assert seen.fault == (5 + PER * (at + 1) + HEAD, Fault.ILLEGAL, at)
        assert [entry[3] for entry in seen.dispatched] == list(range(at))


@pytest.mark.parametrize("last", [Gemm(), Load(), STORE, 6])
def test_a_stream_that_finish_does_not_end(last):
    seen = fetch_stream([Gemm(), last])
    assert seen.fault == (5 + 2 * PER + HEAD, Fault.ILLEGAL, 1)
    assert len(seen.dispatched) == 1


def test_a_length_that_cuts_the_stream():
    seen = fetch_stream([Gemm(), Gemm(), Finish()], length=2)
    assert seen.fault == (5 + 2 * PER + HEAD, Fault.ILLEGAL, 1)


def test_every_legal_value_passes():
    words = [Load(memory=memory) for memory in memories(TINY)]
    words += [Store(memory=memory) for memory in (Mem.ACC, Mem.ACC8)]
    words += [Gemm(init=init) for init in range(3)] + [Alu(alu_op=op) for op in operations(TINY)]
    seen = fetch_stream([*words, Finish()])
    assert len(seen.dispatched) == len(words)
    assert seen.finished is not None


def test_tables_are_legal_where_there_are_any():
    config = load_config("tiny", ["table_bytes=512"])
    words = [Load(memory=Mem.TAB), Alu(alu_op=AluOp.TABLE), Finish()]
    seen = fetch_stream(words, config)
    assert len(seen.dispatched) == 2
    assert seen.finished is not None


def test_bits_above_the_fields_do_not_matter():
    words = [w.pack(TINY) | ((1 << 256) - (1 << type(w).bits(TINY))) for w in (Gemm(), Finish())]
    assert all(word & ((1 << OPCODE_BITS) - 1) in (2, 4) for word in words)
    assert fetch_stream(words).finished is not None


def test_a_stream_outside_dram():
    """The burst that would leave it is the fault, at the instruction at the head."""
    assert fetch_stream([Finish()], base=16 * PAGE_BYTES).fault == (0, Fault.ADDRESS, 0)
    base = 16 * PAGE_BYTES - 2 * PER * TINY.port_bytes
    seen = fetch_stream(random_words(9, 3), base=base)
    assert seen.fault == (1, Fault.ADDRESS, 0)
    held = 30 * PER * TINY.port_bytes  # the page's end is met when 16 are requested: after 14 left
    seen = fetch_stream(random_words(50, 3), base=16 * PAGE_BYTES - held)
    cycle, cause, index = seen.fault
    assert cause == Fault.ADDRESS
    assert index == len(seen.dispatched) == 16
    assert cycle == seen.dispatched[-1][0] + 1


def test_a_stream_off_the_beats():
    assert fetch_stream([Finish()], base=2).fault == (0, Fault.ADDRESS, 0)


def test_a_stream_beyond_the_last_address_is_not_at_the_first():
    base = (1 << 32) - TINY.port_bytes * PER
    seen = fetch_stream([Gemm(), Finish()], base=base, pages=1 << 20)
    assert seen.requests == [(0, base, PER)]
    assert seen.fault == (1, Fault.ADDRESS, 0)


def test_all_of_4_gib_is_dram_when_the_pages_say_so():
    base = (1 << 32) - TINY.port_bytes * PER
    assert fetch_stream([Finish()], base=base, pages=1 << 20).finished is not None


def test_address_goes_before_illegal():
    """Both in one cycle: the room for the next burst comes with the dispatch before a bad head."""
    beats = FETCH_INSTRUCTIONS * PER
    words = [Gemm()] * 2 + [7] + [Gemm()] * 30 + [Finish()]
    base = 16 * PAGE_BYTES - beats * TINY.port_bytes
    seen = fetch_stream(words, base=base, room=lambda cycle: 7 * (cycle >= 300))
    assert seen.fault == (302, Fault.ADDRESS, 2)
