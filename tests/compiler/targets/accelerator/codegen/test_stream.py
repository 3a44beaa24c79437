"""Passes over instruction lists: order, micro-ops, tokens, addresses."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from vdla.compiler.targets.accelerator.codegen import tokens
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError, allocate
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.codegen.order import conflict, hoist_alu, reorder, sink_loads
from vdla.compiler.targets.accelerator.codegen.tokens import insert_tokens
from vdla.compiler.targets.accelerator.codegen.uops import UOPS, UopPlanner
from vdla.compiler.tir.ir import Alloc, Buffer, PrimFunc, Seq
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Gemm, Load, Store, Uop
from vdla.isa.ring import Engine, Ring, ring_of

PAPER = load_config("paper")
RING = ring_of(PAPER)
KINDS = {"load": Load, "gemm": Gemm, "alu": Alu, "store": Store}


def op(kind: str, name: str, reads: str = "", writes: str = "") -> Op:
    """An op that touches ACC entries, one per letter."""
    accesses = [Access("acc", ord(c), (), False) for c in reads]
    accesses += [Access("acc", ord(c), (), True) for c in writes]
    return Op(KINDS[kind](), tuple(accesses), name)


def names(ops):
    return [each.name for each in ops]


def test_alu_moves_up_to_what_it_needs():
    ops = [
        op("gemm", "gemm 0", writes="a"), op("gemm", "gemm 1", writes="b"),
        op("alu", "rq 0", "a", "a"), op("alu", "rq 1", "b", "b"),
    ]  # fmt: skip
    assert names(hoist_alu(ops)) == ["gemm 0", "rq 0", "gemm 1", "rq 1"]


def test_loads_sink_to_their_first_reader():
    ops = [
        op("load", "inp 0", writes="a"), op("load", "inp 1", writes="b"),
        op("load", "wgt 0", writes="c"), op("load", "wgt 1", writes="d"),
        op("gemm", "gemm 0", "ac", "x"), op("gemm", "gemm 1", "bd", "y"),
    ]  # fmt: skip
    expected = ["inp 0", "wgt 0", "gemm 0", "inp 1", "wgt 1", "gemm 1"]
    assert names(sink_loads(ops)) == expected


def random_ops(seed: int, count: int) -> list[Op]:
    rng = random.Random(seed)
    letters = "abcdef"
    return [
        op(
            rng.choice(list(KINDS)),
            str(i),
            "".join(rng.sample(letters, rng.randrange(3))),
            "".join(rng.sample(letters, rng.randrange(2))),
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_reordering_keeps_every_dependence(seed):
    ops = random_ops(seed, 40)
    moved = reorder(ops)
    place = {each.name: i for i, each in enumerate(moved)}
    assert sorted(place) == sorted(names(ops))
    for i, first in enumerate(ops):
        for second in ops[i + 1 :]:
            if conflict(first, second):
                assert place[first.name] < place[second.name]


def flagged(instructions, engine, flag):
    return [
        i for i, e in enumerate(instructions) if RING.engine_of(e) == engine and getattr(e, flag)
    ]


def happens_before(instructions):
    """Pairs (i, j) where i finishes before j starts: tokens, program order, and their closure."""
    after = {i: set() for i in range(len(instructions))}
    last = dict.fromkeys(RING.engines, None)
    runs_on = [RING.engine_of(each) for each in instructions]
    tokens = {}
    for queue in RING.token_queues:
        given = flagged(instructions, queue.giver, queue.push)
        taken = flagged(instructions, queue.taker, queue.pop)
        assert len(given) == len(taken)
        for g, t in zip(given, taken, strict=True):
            tokens.setdefault(t, []).append(g)
    for j, engine in enumerate(runs_on):
        if last[engine] is not None:
            after[j] |= after[last[engine]]
        for giver in tokens.get(j, []):
            after[j] |= after[giver]
            after[j] |= {i for i in range(giver + 1) if runs_on[i] == runs_on[giver]}
        last[engine] = j
    return after


@pytest.mark.parametrize("limit", [1, 2, 64])
@pytest.mark.parametrize("seed", range(30))
def test_tokens_order_every_conflict(seed, limit):
    ops = random_ops(seed, 60)
    config = dataclasses.replace(PAPER, token_queue=limit)
    instructions = insert_tokens(ops, {"": 0}, 64, config)
    assert fullest(instructions) <= limit
    after = happens_before(instructions)
    for j, second in enumerate(ops):
        for i, first in enumerate(ops[:j]):
            other = RING.engine_of(first.instruction) != RING.engine_of(second.instruction)
            if other and conflict(first, second):
                assert i in after[j], (i, j)


def test_engines_may_have_any_numbers(monkeypatch):
    """A ring whose engines are numbered with a gap gets the tokens of one without."""
    ops = random_ops(0, 40)
    expected = insert_tokens(ops, {}, 0, PAPER)
    *roles, store = RING.roles
    moved = dataclasses.replace(store, engine=Engine.VECTOR)
    gap = Ring((*roles, moved), RING.instructions)
    monkeypatch.setattr(tokens, "ring_of", lambda config: gap)
    assert insert_tokens(ops, {}, 0, PAPER) == expected
    assert any(each.pop_prev for each in expected)


@pytest.mark.parametrize("limit", [1, 64])
@pytest.mark.parametrize("alone", [RING.engines, *((each,) for each in RING.engines)])
def test_an_engine_alone_is_ordered_with_all_others(alone, limit):
    ops = random_ops(1, 60)
    config = dataclasses.replace(PAPER, token_queue=limit)
    instructions = insert_tokens(ops, {"": 0}, 64, config, alone)
    assert fullest(instructions) <= limit
    after, runs_on = happens_before(instructions), [RING.engine_of(op.instruction) for op in ops]
    for j, taker in enumerate(runs_on):
        for i, giver in enumerate(runs_on[:j]):
            if giver != taker and {giver, taker} & set(alone):
                assert i in after[j], (i, j)


def test_engines_that_all_work_alone_wait_for_the_instruction_before():
    ops = random_ops(2, 60)
    instructions = insert_tokens(ops, {"": 0}, 64, PAPER, RING.engines)
    turns = sum(RING.engine_of(a) != RING.engine_of(b) for a, b in itertools.pairwise(instructions))
    given = [getattr(each, queue.push) for queue in RING.token_queues
             for each in instructions if RING.engine_of(each) == queue.giver]  # fmt: skip
    assert sum(given) == turns


def fullest(instructions):
    """The most tokens any queue holds when the stream runs one by one."""
    held = dict.fromkeys(RING.token_queues, 0)
    most = 0
    for each in instructions:
        me = RING.engine_of(each)
        for queue in (q for q in RING.token_queues if q.taker == me):
            held[queue] -= getattr(each, queue.pop)
        assert min(held.values()) >= 0
        for queue in (q for q in RING.token_queues if q.giver == me):
            held[queue] += getattr(each, queue.push)
        most = max(most, *held.values())
    return most


def test_a_queue_that_would_overflow():
    """With one slot, the first GEMM waits for both LOADs; with two, for its own."""
    ops = [
        op("load", "l0", writes="a"), op("load", "l1", writes="b"),
        op("gemm", "g0", "a"), op("gemm", "g1", "b"),
    ]  # fmt: skip
    for limit, given, taken in ((1, [0, 1], [1, 0]), (2, [1, 1], [1, 1])):
        config = dataclasses.replace(PAPER, token_queue=limit)
        l0, l1, g0, g1 = insert_tokens(ops, {"": 0}, 64, config)
        assert [l0.push_next, l1.push_next] == given
        assert [g0.pop_prev, g1.pop_prev] == taken


def test_a_token_is_not_placed_twice():
    """The store's wait for COMPUTE covers what COMPUTE waited for."""
    ops = [op("load", "l", writes="a"), op("gemm", "g", "a", "b"), op("store", "s", "ab")]
    load, gemm, store = insert_tokens(ops, {"": 0}, 64, PAPER)
    assert (load.push_next, load.push_prev) == (1, 0)
    assert (gemm.pop_prev, gemm.push_next) == (1, 1)
    assert (store.pop_prev, store.pop_next) == (1, 0)


def with_uops(name: str, rows, first=None) -> Op:
    return Op(Gemm(uop_count=len(rows)), (), name, uops=tuple(rows), first=first)


def test_equal_micro_ops_are_stored_once():
    planner = UopPlanner(PAPER)
    rows = [(0, k, k) for k in range(9)]
    start = (True, *[False] * 8)
    placed = planner.place("a", [with_uops("first", rows, start), with_uops("next", rows)])
    assert names(placed) == ["uops", "first", "next"]
    assert placed[1].instruction.uop_begin == placed[2].instruction.uop_begin == 0
    assert names(planner.place("b", [with_uops("again", rows)])) == ["again"]
    assert len(planner.image) == 10 * PAPER.uop_entry  # whole port words
    assert placed[0].tensor == UOPS


def begins(planner, *ops):
    return [each.instruction.uop_begin for each in planner.place("layer", ops) if each.uops]


def test_sequences_that_start_elsewhere_are_not_shared():
    """Marks matter where a reduction starts: other marks are another sequence."""
    rows = [(0, k, k) for k in range(4)]
    marks = [(True, False, False, False), (False, False, True, False)]
    first, second = begins(UopPlanner(PAPER), *(with_uops("g", rows, m) for m in marks))
    assert first != second


def test_sequences_that_read_other_weights_are_not_shared():
    same = [[(0, k, wgt + k) for k in range(4)] for wgt in (0, 7)]
    first, second = begins(UopPlanner(PAPER), *(with_uops("g", rows) for rows in same))
    assert first != second


def test_the_stored_sequence_is_what_the_instruction_runs():
    """Decoded from the image, an op's micro-ops have its rows, and its marks where they matter."""
    rows = [(0, k, 2 * k) for k in range(5)]
    start = (True, False, False, True, False)
    planner = UopPlanner(PAPER)
    ops = [with_uops("a", rows, start), with_uops("b", rows), with_uops("c", rows[:3])]
    placed = [each for each in planner.place("layer", ops) if each.uops]
    size = PAPER.uop_entry
    for each in placed:
        begin = each.instruction.uop_begin
        raw = [bytes(planner.image[n * size : (n + 1) * size]) for n in range(begin, begin + 9)]
        found = [Uop.decode(word, PAPER) for word in raw[: len(each.uops)]]
        assert [(u.dst, u.src, u.wgt) for u in found] == list(each.uops)
        if each.first:
            assert tuple(bool(u.first) for u in found) == each.first


def test_micro_ops_are_evicted_and_loaded_again():
    config = load_config("tiny")
    planner = UopPlanner(config)
    one, two = ([(k % 8, b, 0) for k in range(200)] for b in range(2))
    assert names(planner.place("a", [with_uops("a", one)]))[0] == "uops"
    assert names(planner.place("b", [with_uops("b", two)]))[0] == "uops"
    assert names(planner.place("c", [with_uops("c", one)]))[0] == "uops"


def test_too_many_micro_ops():
    planner = UopPlanner(load_config("tiny"))
    with pytest.raises(AllocationError) as caught:
        planner.place("layer", [with_uops("a", [(0, k, 0) for k in range(300)])])
    assert str(caught.value) == (
        "layer: expected micro-ops within 256 words (config tiny), found 300"
    )


def test_nested_buffers_stack_up_and_neighbours_share():
    a, b, c = (Buffer(n, (8, 16), "int8", "vdla.inp") for n in "abc")
    body = Alloc(a, Seq((Alloc(b, Seq(())), Alloc(c, Seq(())))))
    assert list(allocate(PrimFunc("f", (), body), PAPER).values()) == [0, 8, 8]


def test_buffers_that_do_not_fit():
    big = Buffer("big", (3000, 16), "int8", "vdla.inp")
    with pytest.raises(AllocationError) as caught:
        allocate(PrimFunc("f", (), Alloc(big, Seq(()))), PAPER)
    assert str(caught.value) == (
        "f: expected inp buffers within 2048 entries (config paper), found 3000 with big; "
        "split its loops and compute_at a smaller tile"
    )
