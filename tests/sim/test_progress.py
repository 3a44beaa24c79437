"""A stream runs to its end or stands still: the static checker, its quick proof and the machine
agree, whatever the queues hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla import api
from vdla.compiler.targets.accelerator import lower
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Gemm, Load, Mem, Store
from vdla.isa.ring import Engine, ring_of
from vdla.sim.checker import check
from vdla.sim.checker.progress import QueueError, prove_progress
from vdla.sim.machine import SimulationError, simulate
from vdla.sim.random_programs import DRAM_BYTES, random_program
from vdla.sim.stream import memory_image
from vdla.support.errors import CheckError

FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
IDLE = {Engine.LOAD: Load(), Engine.COMPUTE: Gemm(), Engine.STORE: Store(memory=Mem.ACC)}
RING = ring_of(load_config("tiny"))
BASE = 0x8000


@st.composite
def configs(draw):
    """Queues of one token and of many, of two commands and of many; bursts of any length."""
    burst = draw(st.sampled_from((1, 3, 16, 97, 256)))
    return load_config("tiny", [
        f"token_queue={draw(st.sampled_from((1, 2, 3, 64, 1000)))}",
        f"command_queue={draw(st.sampled_from((2, 3, 16, 1000)))}",
        f"burst_beats={burst}", "read_buffer_beats=256",
        f"memory.latency={draw(st.sampled_from((0, 1, 300)))}",
        f"inp_bytes={draw(st.sampled_from((256, 2048)))}",
    ])  # fmt: skip


@st.composite
def token_streams(draw):
    """Instructions that only pass tokens: pairs of a push and a pop anywhere, and loose flags."""
    engines = draw(st.lists(st.sampled_from(RING.engines), min_size=2, max_size=40))
    flags = [dict.fromkeys(FLAGS, 0) for _ in engines]
    places = st.integers(0, len(engines) - 1)
    for giver, taker in draw(st.lists(st.tuples(places, places), max_size=40)):
        low, high = sorted((giver, taker))
        if draw(st.integers(0, 9)):  # mostly a token that runs forward
            giver, taker = low, high
        one, two = engines[giver], engines[taker]
        if one == two:
            continue
        queue = RING.token_queue(one, two)
        if not flags[giver][queue.push] and not flags[taker][queue.pop]:
            flags[giver][queue.push] = flags[taker][queue.pop] = 1
    for place in draw(st.lists(places, max_size=1)):
        flags[place][draw(st.sampled_from(FLAGS))] ^= 1
    stream = [IDLE[e].replace(**flagged) for e, flagged in zip(engines, flags, strict=True)]
    return [*stream, Finish()]


def proved(config, stream):
    try:
        prove_progress(config, stream)
    except (QueueError, CheckError):
        return False
    return True


def runs(config, stream, dram, base):
    try:
        simulate(config, stream, dram, base)
        return True
    except SimulationError as error:
        return not str(error).startswith("deadlock: ")


@settings(max_examples=400)
@given(configs(), token_streams())
def test_checker_and_machine_agree_on_deadlock(config, stream):
    ends = runs(config, stream, np.zeros(1 << 16, np.uint8), BASE)
    found = check(config, stream, np.zeros(1 << 16, np.uint8), BASE)
    assert ends == proved(config, stream) == all(each.kind != "deadlock" for each in found)


@settings(max_examples=100)
@given(configs(), st.integers(0, 1 << 30), st.data())
def test_they_agree_on_programs_that_work(config, seed, data):
    """A program made to end, and that program with a pop more, which stands still."""
    program = random_program(config, seed, 25)
    dram = memory_image(program, DRAM_BYTES)
    assert runs(config, program.instructions, dram.copy(), program.base)
    assert proved(config, program.instructions)
    free = [(i, f) for i, each in enumerate(program.instructions[:-1])
            for f in ("pop_prev", "pop_next") if not getattr(each, f)]  # fmt: skip
    at, flag = data.draw(st.sampled_from(free))
    stream = list(program.instructions)
    stream[at] = stream[at].replace(**{flag: 1})
    assert not runs(config, stream, dram, program.base)
    assert not proved(config, stream)


@settings(max_examples=100)
@given(configs(), token_streams())
def test_the_sizes_it_asks_for_are_enough_and_no_larger_than_needed(config, stream):
    text = refusal(config, stream)
    roomy = load_config("tiny", ["token_queue=1000", "command_queue=1000"])
    assert text.startswith("deadlock: ") == (not proved(roomy, stream))
    if text.startswith("config tiny: "):
        for remedy in text.split("expected ")[1].split(", found")[0].split(" or "):
            sizes = {k: int(n) for k, n in (need.split(" ≥ ") for need in remedy.split(" and "))}
            assert proved(config.override([f"{k}={v}" for k, v in sizes.items()]), stream)
            for key in sizes:
                less = [f"{k}={v - (k == key)}" for k, v in sizes.items()]
                assert not proved(config.override(less), stream)


def refusal(config, stream):
    """What is said of a stream that stands still; nothing of one that ends."""
    try:
        prove_progress(config, stream)
    except (QueueError, CheckError) as error:
        return str(error)
    return ""


def ahead(tokens, more):
    """LOADs that give tokens to GEMMs which are dispatched behind some LOADs more."""
    return [*[Load(push_next=1)] * tokens, *[Load()] * more, *[Gemm(pop_prev=1)] * tokens, Finish()]


def test_what_to_enlarge():
    """LOAD's queue fills with what waits for a slot, and the GEMMs behind are never dispatched."""
    config = load_config("tiny", ["token_queue=2", "command_queue=3"])
    assert refusal(config, ahead(3, 4)) == (
        "config tiny: expected token_queue ≥ 3 or command_queue ≥ 5, found token_queue = 2, "
        "command_queue = 3: deadlock: LOAD stands at LOAD 2: the queue it pushes to COMPUTE holds "
        "2 tokens, all taken; 2 is `LOAD push_next`"
    )
    assert refusal(load_config("tiny", ["token_queue=3", "command_queue=2"]), ahead(3, 4)) == ""
    assert refusal(load_config("tiny", ["token_queue=2", "command_queue=5"]), ahead(3, 4)) == ""


def test_what_to_enlarge_when_both_are_too_small():
    """Four GEMMs wait, in front of the LOADs whose three tokens wait for the first GEMM's."""
    stream = [
        Gemm(pop_next=1), *[Gemm(pop_prev=1)] * 3, *[Load(push_next=1)] * 3, Load(push_prev=1),
        Store(memory=Mem.ACC, pop_next=1, push_prev=1), Finish(),
    ]  # fmt: skip
    assert refusal(load_config("tiny", ["token_queue=2", "command_queue=2"]), stream).startswith(
        "config tiny: expected token_queue ≥ 3 and command_queue ≥ 4, found token_queue = 2, "
        "command_queue = 2: deadlock: COMPUTE stands at GEMM 0: the token it pops from STORE is "
        "one that STORE 8 would give"
    )
    assert not refusal(load_config("tiny", ["token_queue=3", "command_queue=4"]), stream)


def test_a_token_that_nobody_gives():
    """No size of a queue helps."""
    assert refusal(load_config("tiny"), [Gemm(pop_prev=1), Finish()]).startswith(
        "deadlock: COMPUTE stands at GEMM 0: the token it pops from LOAD is one that no "
        "instruction gives"
    )


def test_the_compiler_proves_its_streams(monkeypatch):
    """Were its tokens placed for larger queues than there are, it would refuse to write them."""
    insert, small = lower.insert_tokens, load_config("tiny", ["token_queue=1"])
    assert api.compile("digits", small).programs

    def careless(ops, addresses, dram_bytes, config, alone):
        return insert(ops, addresses, dram_bytes, load_config("tiny"), alone)

    monkeypatch.setattr(lower, "insert_tokens", careless)
    with pytest.raises(QueueError, match=r"^config tiny: expected token_queue ≥ \d+, found "):
        api.compile("digits", small)
